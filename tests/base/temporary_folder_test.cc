#include "base/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;

class TemporaryFolderTest : public ::testing::Test {
 protected:
  TemporaryFolderTest() { ::setenv("TMPDIR", dir_.path().c_str(), 1); }
  ~TemporaryFolderTest() override {
    if (before_) {
      ::setenv("TMPDIR", before_->c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }
  static std::optional<std::string> Before() {
    const char* const value = std::getenv("TMPDIR");
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }

  const std::optional<std::string> before_ = Before();
  const testing::TempDir dir_;
};

TEST_F(TemporaryFolderTest, IsItsOwnersAndIsRemovedWithAllThatIsInIt) {
  fs::path path;
  {
    ASSERT_OK_AND_ASSIGN(const auto folder, TemporaryFolder::Make("kv-x-"));
    path = folder->path();
    EXPECT_EQ(path.parent_path(), dir_.path());
    EXPECT_TRUE(path.filename().string().starts_with("kv-x-"));
    EXPECT_EQ(fs::status(path).permissions() & fs::perms::mask, fs::perms::owner_all);
    fs::create_directory(path / "inner");
    std::ofstream(path / "inner/file") << "x";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(TemporaryFolderTest, WhatAKilledProcessHasLeftIsRemovedByTheNext) {
  fs::create_directories(dir_ / "kv-x-left/inner");
  fs::create_directory(dir_ / "kv-y-left");
  fs::create_directory(dir_ / "elsewhere");
  std::ofstream(dir_ / "elsewhere/file") << "x";
  fs::create_directory_symlink(dir_ / "elsewhere", dir_ / "kv-x-link");
  ASSERT_OK_AND_ASSIGN(const auto held, TemporaryFolder::Make("kv-x-"));
  EXPECT_FALSE(fs::exists(dir_ / "kv-x-left"));
  EXPECT_TRUE(fs::exists(dir_ / "kv-y-left")) << "is of something else";
  EXPECT_TRUE(fs::exists(dir_ / "elsewhere/file")) << "links are not followed";
  ASSERT_OK_AND_ASSIGN(const auto other, TemporaryFolder::Make("kv-x-"));
  EXPECT_TRUE(fs::exists(held->path())) << "is held";
  EXPECT_NE(held->path(), other->path());
}

TEST_F(TemporaryFolderTest, WhereNoneCanBeMadeItIsSaid) {
  ::setenv("TMPDIR", (dir_ / "none").c_str(), 1);
  EXPECT_THAT(TemporaryFolder::Make("kv-x-"),
              testing::FailsWith(absl::StatusCode::kUnavailable, "temporary"));
}

}  // namespace
}  // namespace kvstore
