#include <cstddef>
#include <cstdint>

#include "store/crc32c.hpp"

// The checksum of RocksDB's log. Debian builds its RocksDB for any x86-64 processor, and so without
// the instruction for it: the log's checksums took an eighth of all the processor time of a publish
// with a confirm. Where RocksDB is linked in, the linker sends its calls here (--wrap in
// cmake/libraries.cmake); where it is a shared library it keeps its own.

namespace stoat::store {

// In place of rocksdb::crc32c::Extend: the CRC-32C of what `crc` is of, followed by these bytes.
std::uint32_t extend_checksum(std::uint32_t crc, const char* data,
                              std::size_t size) __asm__("__wrap__ZN7rocksdb6crc32c6ExtendEjPKcm");

std::uint32_t extend_checksum(std::uint32_t crc, const char* data, std::size_t size) {
  return crc32c(crc, {data, size});
}

}  // namespace stoat::store
