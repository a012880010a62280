#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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
