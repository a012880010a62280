#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "server/grpc/acceptor.h"
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
  EXPECT_THAT(Server::Start(other.router(), options).status(),
              FailsWith(absl::StatusCode::kUnavailable, "another server has it"));
  EXPECT_OK(first->Client()->GetDataset("first").status());
  first.reset();
  // A socket file that a server left behind is no server.
  const auto next = Server::Start(other.router(), options);
  EXPECT_OK(next.status());
}

TEST(Socket, StopLeavesTheFileOfAnotherServer) {
  const TempDir dir;
  const std::string path = dir / "socket";
  auto first = server::Acceptor::Listen({"unix:" + path});
  ASSERT_OK(first.status());
  std::filesystem::rename(path, dir / "elsewhere");
  auto second = server::Acceptor::Listen({"unix:" + path});
  ASSERT_OK(second.status());
  (*first)->Stop();
  EXPECT_TRUE(std::filesystem::exists(path));
  (*second)->Stop();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Socket, NoClientFindsTheFileOfASocketThatIsClosed) {
  // Many sockets, so that it takes a while to close them all.
  const TempDir dir;
  std::vector<std::string> addresses;
  for (int i = 0; i < 200; ++i) addresses.push_back("unix:" + (dir / std::to_string(i)).string());
  auto acceptor = server::Acceptor::Listen(addresses);
  ASSERT_OK(acceptor.status());
  std::atomic<bool> asking{false};
  int error = 0;
  std::thread client([&] {
    const std::string path = dir / "0";
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    while (error == 0 || error == EAGAIN) {
      const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
      const bool open = ::connect(connection, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
      error = open ? 0 : errno;
      ::close(connection);
      asking = true;
    }
  });
  while (!asking) std::this_thread::yield();
  (*acceptor)->Stop();
  client.join();
  EXPECT_EQ(error, ENOENT) << "the file was there, and nobody listened";
}

}  // namespace
}  // namespace kvstore::testing
