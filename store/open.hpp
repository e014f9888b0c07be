#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "store/folder_report.hpp"
#include "store/store.hpp"

namespace rocksdb {
class Env;
}

namespace stoat::store {

// A data folder that cannot be used: not ours, of a newer format, locked by another process,
// unreadable or damaged. what() is one clear line that names the folder; nothing in it was changed.
struct StoreOpenError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Ends the error's line where something is damaged.
inline constexpr const char* kDamagedAdvice =
    "; stoatd --check tells what is damaged, stoatd --salvage keeps all that can be read";

struct RocksOptions {
  std::filesystem::path data_dir;  // created when absent; refused when not empty and not ours
  std::size_t write_buffer_bytes = 32u << 20;
  int write_buffers = 3;
  // A group is closed at this many bytes even if more wait.
  std::size_t max_group_bytes = 8u << 20;
  // Makes the folder anew of what can be read of it, if anything in it is damaged, instead of
  // refusing it (store/salvage.hpp); on_salvaged then tells what was found.
  bool salvage = false;
  std::function<void(const FolderReport&)> on_salvaged;
  // Runs once, on a thread of the store's, when a write or sync failed.
  std::function<void(const StoreError&)> on_failure;
  // A warning or error of the engine's own, for the log; from any thread.
  std::function<void(std::string_view)> on_log_line;
  // Tests hand in a file system that forgets; nullptr: the machine's own.
  rocksdb::Env* env = nullptr;
};

// The durable engine. Throws StoreOpenError.
std::unique_ptr<Store> open_rocks_store(RocksOptions options);

// Keeps everything in memory, same contract save for the surviving: for tests and for
// Stoat::testing.
std::unique_ptr<Store> make_memory_store();

}  // namespace stoat::store
