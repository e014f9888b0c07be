#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rocksdb/env.h"
#include "store/key_layout.hpp"

namespace stoat::store {

// The whole entries in one file of RocksDB's write-ahead log, in order, and the bad spots between
// them. The file is a row of 32 KiB blocks; an entry is one fragment or several, none of which
// crosses a block:
//
//    0          4        6      7
//   +----------+--------+------+--------------------+
//   | checksum | length | type | payload            |     type 1 whole, 2 first, 3 middle, 4 last
//   +----------+--------+------+--------------------+
//   checksum: CRC-32C of type and payload, masked; length and checksum little-endian. Types 5 to 8
//   are 1 to 4 of a recycled file, with four more bytes of header before the payload.
//
// Behind a bad spot it looks for the next valid fragment byte by byte, since a damaged length says
// nothing about where that begins. What was never written (zeros, a file cut short) counts as bad.
//
// Owner: check_wal. Thread: one. Throws StoreOpenError when the file cannot be read.
// Memory: one block, and one entry when entries are read whole.
std::optional<GroupMark> mark_of(std::string_view batch);

class WalReader {
 public:
  struct Item {
    std::uint64_t offset = 0;  // of the entry, or of the first bad byte
    bool bad = false;
    // Of a whole entry: what it says of itself; nullopt when it is none of ours.
    std::optional<GroupMark> mark;
    std::string batch;  // of a whole entry, when entries are read whole
  };
  enum class Entries { marks, whole };

  WalReader(rocksdb::Env& env, std::string path, Entries entries = Entries::marks);

  // nullopt at the end of the file.
  std::optional<Item> next();

 private:
  // An entry's payload as gathered from its fragments: all of it, or as much as the mark needs.
  struct Entry {
    std::uint64_t offset = 0;
    std::string beginning;
  };
  struct Fragment {
    int type = 0;
    std::string_view payload;
    std::size_t size = 0;  // with its header
  };

  bool load_block();
  std::optional<Fragment> fragment_at(std::size_t at) const;
  std::optional<Item> take(const Fragment& fragment, std::uint64_t offset);

  const std::string path_;
  const Entries entries_;
  std::unique_ptr<rocksdb::SequentialFile> file_;
  std::vector<char> block_;
  std::size_t at_ = 0;              // in the block
  std::uint64_t block_offset_ = 0;  // of the block in the file
  bool searching_ = false;          // behind a bad spot that has been answered
  std::optional<Entry> open_entry_;
};

}  // namespace stoat::store
