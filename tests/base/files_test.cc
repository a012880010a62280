#include "base/files.h"

#include <gtest/gtest.h>

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

TEST(Files, WhatCannotBeReadIsSaid) {
  const testing::TempDir dir;
  EXPECT_THAT(ReadFile(dir / "none"), FailsWith(absl::StatusCode::kNotFound, "cannot read"));
  EXPECT_THAT(ReadFile(dir.path()), FailsWith(absl::StatusCode::kUnavailable, "Is a directory"));
}

}  // namespace
}  // namespace kvstore
