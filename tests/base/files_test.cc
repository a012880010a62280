#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore {
namespace {

using testing::FailsWith;

TEST(Files, WhatIsWrittenIsRead) {
  const testing::TempDir dir;
  const std::string text = std::string(200'000, 'x') + std::string("\0\n\xff", 3);
  ASSERT_OK(ReplaceFile(dir / "f", text));
  EXPECT_EQ(*ReadFile(dir / "f"), text);
  ASSERT_OK(ReplaceFile(dir / "f", ""));
  EXPECT_EQ(*ReadFile(dir / "f"), "");
}

TEST(Files, OnlyTheirOwnerReadsThem) {
  const testing::TempDir dir;
  const mode_t before = ::umask(0);
  ASSERT_OK(ReplaceFile(dir / "f", "secret"));
  ::umask(before);
  EXPECT_EQ(std::filesystem::status(dir / "f").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(Files, ALinkThatWasPlantedIsNotWrittenThrough) {
  const testing::TempDir dir;
  ASSERT_OK(ReplaceFile(dir / "victim", "as it was"));
  std::filesystem::create_symlink(dir / "victim", dir / "f.new");
  ASSERT_OK(ReplaceFile(dir / "f", "new"));
  EXPECT_EQ(*ReadFile(dir / "victim"), "as it was");
  EXPECT_EQ(*ReadFile(dir / "f"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(dir / "f"));
}

TEST(Files, OpeningForWritingFollowsNoLink) {
  const testing::TempDir dir;
  ASSERT_OK(ReplaceFile(dir / "victim", "as it was"));
  std::filesystem::create_symlink(dir / "victim", dir / "f");
  for (const int flags : {O_TRUNC, O_APPEND}) {
    EXPECT_THAT(OpenForWriting(dir / "f", flags),
                FailsWith(absl::StatusCode::kUnavailable, "is a symbolic link"));
  }
  EXPECT_EQ(*ReadFile(dir / "victim"), "as it was");
}

TEST(Files, TextIsAppendedOrReplacesWhatIsThere) {
  const testing::TempDir dir;
  const auto write = [&](int flags, std::string_view text) {
    const auto file = OpenForWriting(dir / "f", flags);
    ASSERT_OK(file);
    EXPECT_OK(WriteAll(*file, dir / "f", text));
    ::close(*file);
  };
  const mode_t before = ::umask(0);
  write(O_APPEND, "ab");
  ::umask(before);
  EXPECT_EQ(std::filesystem::status(dir / "f").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  write(O_APPEND, "cd");
  EXPECT_EQ(*ReadFile(dir / "f"), "abcd");
  write(O_TRUNC, "e");
  EXPECT_EQ(*ReadFile(dir / "f"), "e");
}

TEST(Files, WhatAnAttemptBeforeHasLeftBehindIsReplaced) {
  const testing::TempDir dir;
  ASSERT_OK(ReplaceFile(dir / "f.new", "half of it"));
  ASSERT_OK(ReplaceFile(dir / "f", "all"));
  EXPECT_EQ(*ReadFile(dir / "f"), "all");
  EXPECT_FALSE(std::filesystem::exists(dir / "f.new"));
}

TEST(Files, WhatCannotBeReadIsSaid) {
  const testing::TempDir dir;
  EXPECT_THAT(ReadFile(dir / "none"), FailsWith(absl::StatusCode::kNotFound, "cannot read"));
  EXPECT_THAT(ReadFile(dir.path()), FailsWith(absl::StatusCode::kUnavailable, "Is a directory"));
}

}  // namespace
}  // namespace kvstore
