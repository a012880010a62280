#include "base/address.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace kvstore {
namespace {

TEST(Address, OnlyLoopbackIsLocal) {
  for (const char* local : {"127.0.0.1:7400", "127.9.9.9:1", "localhost:0", "[::1]:7400", "unix:/run/kv"}) {
    EXPECT_TRUE(IsLocal(local)) << local;
  }
  for (const char* remote :
       {"0.0.0.0:7400", "10.0.0.1:7400", "[::]:7400", "kv.example.com:7400", "128.0.0.1:1",
        "dns:///127.0.0.1:7400", "ipv4:127.0.0.1:7400", "localhost.example.com:7400", "7400", ""}) {
    EXPECT_FALSE(IsLocal(remote)) << remote;
  }
}

TEST(Address, ASocketIsTakenWhileSomebodyListensThere) {
  const testing::TempDir dir;
  const std::string path = dir / "socket";
  const std::string address = "unix:" + path;
  EXPECT_FALSE(IsListening(address));
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(::listen(socket, 0), 0);
  // A server that does not accept, and whose queue is full, is listening, too.
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(IsListening(address)) << i;
  ::close(socket);
  EXPECT_FALSE(IsListening(address)) << "a server that was killed leaves its socket behind";
  std::ofstream(dir / "file") << "no socket";
  EXPECT_FALSE(IsListening("unix:" + (dir / "file").string()));
  EXPECT_FALSE(IsListening("127.0.0.1:7400"));
  EXPECT_FALSE(IsListening("unix:"));
  EXPECT_FALSE(IsListening("unix:" + std::string(200, 'x')));
}

}  // namespace
}  // namespace kvstore
