#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/store.hpp"

namespace stoat::store {

// A file in which something cannot be read, or holds what it should not.
struct Damage {
  std::string file;
  std::string what;
};

// What a look at a data folder found, whether to tell of it or to salvage it.
struct FolderReport {
  struct Stream {
    StreamId stream;
    std::optional<std::uint64_t> counted;  // by the stream's record; unknown when that is lost
    std::uint64_t readable = 0;            // durable messages alive
    std::uint64_t bytes = 0;               // of these
  };

  std::vector<Damage> damage;                                 // none: all is well
  std::vector<Stream> streams;                                // by queue and stream
  std::vector<std::pair<std::string, std::string>> topology;  // what can be read of it
  std::string kept_aside;  // by a salvage: the folder with the files as they were
};

}  // namespace stoat::store
