#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "rocksdb/env.h"

namespace stoat::store {

// RocksDB's own messages, warnings and errors only, handed on line by line instead of being written
// to its LOG file: the broker's log is one place to look at instead of two, and a full disk does
// not make RocksDB stumble over its log file before it can report the failure that matters.
//
// Owner: Database. Thread: RocksDB's.
class InfoLog final : public rocksdb::Logger {
 public:
  using OnLine = std::function<void(std::string_view)>;

  explicit InfoLog(OnLine on_line)
      : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL), on_line_(std::move(on_line)) {}

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    if (!on_line_) return;
    char line[kMaxLineBytes];
    const int length = std::vsnprintf(line, sizeof line, format, arguments);
    if (length <= 0) return;
    std::string_view text(line, std::min(static_cast<std::size_t>(length), sizeof line - 1));
    on_line_(text.substr(0, text.find_last_not_of(" \n") + 1));
  }

 private:
  static constexpr std::size_t kMaxLineBytes = 512;

  const OnLine on_line_;
};

}  // namespace stoat::store
