#pragma once

#include <cstdint>
#include <string_view>

namespace stoat::store {

// CRC-32C (Castagnoli) of `bytes`, the checksum of RocksDB's log; by the processor's instruction
// where it has one. `crc` is that of what went before, 0 at the beginning.
std::uint32_t crc32c(std::uint32_t crc, std::string_view bytes);

// The same from a table, for processors without; apart for the test that compares the two.
std::uint32_t crc32c_from_table(std::uint32_t crc, std::string_view bytes);

}  // namespace stoat::store
