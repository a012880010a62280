#include "operate/fence.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {
namespace {

using operate::OperateOptions;
using operate::RunFence;

constexpr auto kNothing = [] {};
const Host kDead{"db1", 3307};

TEST(Fence, IsToldTheHost) {
  const TempDir dir;
  const std::string told = (dir.path() / "told").string();
  const OperateOptions options{.fence = {"/bin/sh", "-c", "echo $1 $2 >" + told, "fence", "off"}};
  EXPECT_OK(RunFence(options, kDead, kNothing));
  std::string line;
  std::getline(std::ifstream(told), line);
  EXPECT_EQ(line, "off " + kDead.ToString());
}

TEST(Fence, WhoeverWaitsForItCanSaySo) {
  const TempDir dir;
  const std::string said = (dir.path() / "said").string();
  // It ends once somebody has said that it takes long.
  const OperateOptions options{.fence = {"/bin/sh", "-c", "until [ -e " + said + " ]; do sleep 0.02; done"},
                               .fence_ms = 600'000};
  EXPECT_OK(RunFence(options, kDead, [&] { std::ofstream(said) << ""; }));
}

TEST(Fence, OneThatDoesNotEndOrIsNotThereIsAnError) {
  EXPECT_THAT(RunFence({.fence = {"/bin/sh", "-c", "exec sleep 600"}, .fence_ms = 100}, kDead, kNothing),
              FailsWith(absl::StatusCode::kDeadlineExceeded, "within 100 ms (operate.fence_ms)"));
  EXPECT_THAT(RunFence({.fence = {"/nowhere/fence"}}, kDead, kNothing),
              FailsWith(absl::StatusCode::kFailedPrecondition, "/nowhere/fence (operate.fence)"));
  EXPECT_THAT(RunFence({.fence = {"/bin/sh", "-c", "echo no switch >&2; exit 3"}}, kDead, kNothing),
              FailsWith(absl::StatusCode::kInternal, "no switch"));
}

}  // namespace
}  // namespace kvstore::testing
