#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/store/store_fixture.hpp"

// Whose folder it is, and that a folder which cannot be used is left as it was.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;
namespace fs = std::filesystem;

class DataFolder : public ::testing::Test {
 protected:
  RocksOptions options() const {
    RocksOptions options;
    options.data_dir = dir_;
    return options;
  }
  std::string refusal() const {
    try {
      open_rocks_store(options())->recover();
      return "";
    } catch (const StoreOpenError& error) {
      return error.what();
    }
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
  }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(dir_)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path());
      files[entry.path().string()] =
          std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return files;
  }
  void expect_refused(const std::string& why) const {
    const auto before = contents();
    const std::string text = refusal();
    EXPECT_NE(text.find(why), std::string::npos) << text;
    EXPECT_NE(text.find(dir_.string()), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_EQ(contents(), before);
  }

  test::TempDir parent_;
  const fs::path dir_ = parent_.path() / "some" / "data";
};

TEST_F(DataFolder, IsMadeWithItsParents) {
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(fs::exists(dir_ / "FORMAT"));
  EXPECT_EQ(fs::status(dir_).permissions() & fs::perms::others_all, fs::perms::none);
  EXPECT_EQ(refusal(), "") << "and is ours the next time";
}

TEST_F(DataFolder, AnEmptyFolderIsTaken) {
  fs::create_directories(dir_ / "lost+found");
  EXPECT_EQ(refusal(), "");
}

TEST_F(DataFolder, WhatAKilledFirstStartLeavesIsTaken) {
  fs::create_directories(dir_);
  write("LOCK", "");
  write("FORMAT.new", "Stoat");
  EXPECT_EQ(refusal(), "");
}

TEST_F(DataFolder, AForeignFolderIsRefused) {
  fs::create_directories(dir_);
  write("letter.txt", "dear");
  expect_refused("is no StoatMQ data folder");
}

TEST_F(DataFolder, AForeignFormatFileIsRefused) {
  fs::create_directories(dir_);
  write("FORMAT", "A4 landscape\n");
  expect_refused("none of StoatMQ's");
  write("FORMAT", "StoatMQ data folder\nformat: soon\n");
  expect_refused("none of StoatMQ's");
  write("FORMAT", std::string(100'000, 'x'));
  expect_refused("none of StoatMQ's");
}

TEST_F(DataFolder, ANewerFormatIsRefused) {
  ASSERT_EQ(refusal(), "");
  write("FORMAT", "StoatMQ data folder\nformat: 3\n");
  expect_refused("written by a newer StoatMQ");
}

TEST_F(DataFolder, AnOlderFormatIsConvertedAtItsFirstStart) {
  ASSERT_EQ(refusal(), "");
  write("FORMAT", "StoatMQ data folder\nformat: 1\n");
  ASSERT_EQ(refusal(), "");
  EXPECT_EQ(contents()[dir_ / "FORMAT"], "StoatMQ data folder\nformat: 2\n");
}

TEST_F(DataFolder, AFileInItsPlaceIsRefused) {
  fs::create_directories(dir_.parent_path());
  std::ofstream(dir_) << "a file";
  const std::string text = refusal();
  EXPECT_NE(text.find(dir_.string()), std::string::npos) << text;
  EXPECT_TRUE(fs::is_regular_file(dir_));
}

TEST_F(DataFolder, AFolderInUseIsRefused) {
  auto store = open_rocks_store(options());
  store->recover();
  EXPECT_EQ(refusal(), "data folder " + dir_.string() + " is in use by another process");
  store->close({});
  store.reset();
  EXPECT_EQ(refusal(), "");
}

TEST_F(DataFolder, AFolderInUseByAnotherProcessIsRefused) {
  ASSERT_EQ(refusal(), "");
  int ready[2];
  int finish[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(finish), 0);
  const std::string lock_file = dir_ / "LOCK";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // nothing here that a fork of many threads forbids
    char byte = 0;
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    const bool held = fcntl(::open(lock_file.c_str(), O_RDWR), F_SETLK, &lock) == 0;
    const bool told = ::write(ready[1], "x", 1) == 1 && ::read(finish[0], &byte, 1) == 1;
    _exit(held && told ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(refusal(), "data folder " + dir_.string() + " is in use by another process");
  ASSERT_EQ(::write(finish[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(refusal(), "") << "the lock goes with its process";
  for (int end : {ready[0], ready[1], finish[0], finish[1]}) ::close(end);
}

}  // namespace
}  // namespace stoat::store
