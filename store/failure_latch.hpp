#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "store/store.hpp"

namespace stoat::store {

// Closes at the first failed write or sync and never opens again. RocksDB resumes by itself after
// some errors, for example once a full disk has room; what had been promised in between would be
// lost, so its own error state is not relied on.
//
// Owner: RocksStore. Thread: any.
// Invariants: the error never changes once set; on_failure has run once, on the thread that failed.
class FailureLatch {
 public:
  using OnFailure = std::function<void(const StoreError&)>;

  explicit FailureLatch(OnFailure on_failure) : on_failure_(std::move(on_failure)) {}

  bool closed() const { return closed_.load(std::memory_order_acquire); }

  void close(std::string text) {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    error_.text = std::move(text);
    // First told, then seen: whoever gets the error can rely on on_failure having run.
    if (on_failure_) on_failure_(error_);
    closed_.store(true, std::memory_order_release);
  }

  // The error every completion gets; nullopt while open.
  std::optional<StoreError> error() const {
    if (!closed()) return std::nullopt;
    return error_;
  }

 private:
  const OnFailure on_failure_;
  std::mutex mutex_;  // only so that one closer wins
  std::atomic<bool> closed_ = false;
  StoreError error_;
};

}  // namespace stoat::store
