#include <gtest/gtest.h>

#include "tests/server/served.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Two servers with the same socket file, by mistake or not.
namespace kvstore::testing {
namespace {

TEST(Socket, IsNotTakenFromAServerThatIsThere) {
  const TempDir dir;
  ServerOptions options;
  options.listen = {"unix:" + (dir / "socket").string()};
  auto first = std::make_unique<Served>(options);
  const auto client = first->Client();
  ASSERT_OK(client->CreateDataset({.name = "first"}));
  Served other;
  EXPECT_THAT(Server::Start(other.router(), options, nullptr).status(),
              FailsWith(absl::StatusCode::kUnavailable, "another server has it"));
  EXPECT_OK(first->Client()->GetDataset("first").status());
  first.reset();
  // A socket file that a server left behind is no server.
  const auto next = Server::Start(other.router(), options, nullptr);
  EXPECT_OK(next.status());
}

}  // namespace
}  // namespace kvstore::testing
