#include "shardops/program.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "shardops/option_file.h"
#include "shardops/pipe.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// How other programs are run, and what is told of those that fail.
namespace kvstore::shardops {
namespace {

using absl::StatusCode;
using testing::Eventually;
using testing::FailsWith;

TEST(Program, WhatAProgramSaysIsTold) {
  EXPECT_OK(Program({"true"}, -1, -1).Join());
  EXPECT_THAT(Program({"sh", "-c", "echo the disk is full >&2; exit 3"}, -1, -1).Join(),
              FailsWith(StatusCode::kInternal, "sh: the disk is full"));
  // A client prints the statement first.
  EXPECT_THAT(Program({"sh", "-c", "echo INSERT; echo ERROR 1062 duplicate >&2; exit 1"}, -1, -1).Join(),
              FailsWith(StatusCode::kInternal, "sh: ERROR 1062 duplicate"));
  const absl::Status many = Program({"sh", "-c", "seq 100000 >&2; exit 1"}, -1, -1).Join();
  EXPECT_THAT(many, FailsWith(StatusCode::kInternal, "99999"));
  EXPECT_LT(many.message().size(), 3000u);
}

TEST(Program, OneThatIsNotInstalledIsNamedWithItsPackage) {
  EXPECT_THAT(Program({"no-such-program"}, -1, -1).Join(),
              FailsWith(StatusCode::kFailedPrecondition, "no-such-program: is not installed"));
}

TEST(Program, EndsWhenItIsTold) {
  Program program({"sleep", "1000"}, -1, -1);
  EXPECT_EQ(program.TryJoin(), std::nullopt);
  program.Terminate();
  std::optional<absl::Status> ended;
  ASSERT_TRUE(Eventually([&] { return (ended = program.TryJoin()).has_value(); }));
  EXPECT_THAT(*ended, FailsWith(StatusCode::kInternal, "signal 15"));
}

TEST(OptionFile, SecretsAreInAFileThatHasNoName) {
  const mysql::MySqlOptions login{.user = "ann", .password = R"(a"b\c)"};
  const std::string text = OptionFile("client", {"MySQL001A", 3307}, login, "protocol=tcp\n");
  EXPECT_EQ(
      text,
      "[client]\nhost=\"MySQL001A\"\nport=3307\nuser=\"ann\"\npassword=\"a\\\"b\\\\c\"\nprotocol=tcp\n");
  const UnnamedFile file(text);
  // Only its owner can read it, and nobody finds it.
  EXPECT_OK(Program({"sh", "-c", "test \"$(stat -Lc %a " + file.path() + ")\" = 600"}, -1, -1).Join());
}

}  // namespace
}  // namespace kvstore::shardops
