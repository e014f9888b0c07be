#pragma once

#include <filesystem>

namespace stoat::test {

// A fresh folder under the system's temporary one, removed with everything in it at the end.
//
// Owner: one test. Thread: any.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stoat::test
