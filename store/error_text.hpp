#pragma once

#include <string>

#include "rocksdb/status.h"

namespace stoat::store {

// RocksDB's words for an error. A table that is missing it calls by the name that it tries last,
// which is one from before RocksDB's time.
inline std::string error_text(const rocksdb::Status& status) {
  std::string text = status.ToString();
  for (auto at = text.find(".ldb"); at != std::string::npos; at = text.find(".ldb", at)) {
    text.replace(at, 4, ".sst");
  }
  return text;
}

}  // namespace stoat::store
