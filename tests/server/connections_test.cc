#include "server/call/connections.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "tests/support/loopback.h"

namespace kvstore::server {
namespace {

/// Both ends of a TCP connection of this machine.
class TcpPair {
 public:
  TcpPair() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = testing::Loopback(0);
    socklen_t size = sizeof(address);
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener, plain, size), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    EXPECT_EQ(::getsockname(listener, plain, &size), 0);
    EXPECT_EQ(::connect(client_, plain, size), 0);
    accepted_ = ::accept(listener, nullptr, nullptr);
    EXPECT_GE(accepted_, 0);
    ::close(listener);
  }
  ~TcpPair() {
    ::close(accepted_);
    ::close(client_);
  }
  TcpPair(const TcpPair&) = delete;
  TcpPair& operator=(const TcpPair&) = delete;

  int accepted() const { return accepted_; }

 private:
  const int client_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int accepted_ = -1;
};

TEST(Connections, ASocketsNumberThatIsUsedAgainForgetsNoOtherConnection) {
  const TcpPair first;
  const TcpPair second;
  const std::string peer = PeerOf(first.accepted());
  // A client may come from the same port again, and nobody tells when its connection of before was closed.
  // The two sockets of one connection stand for both.
  const int before = ::dup(first.accepted());
  Connections connections([](const std::string&) { return false; });
  connections.Accepted(before);
  connections.Accepted(first.accepted());
  // Another connection gets the number of the one that was closed.
  ASSERT_EQ(::dup2(second.accepted(), before), before);
  connections.Accepted(before);
  // More calls than it takes, because those of half a second count together.
  for (uint32_t i = 0; i < 100 * Connections::kCalls && connections.ended() == 0; ++i) {
    connections.StrangerCalled(peer);
  }
  EXPECT_EQ(connections.ended(), 1u) << "its calls are not counted any more";
  ::close(before);
}

}  // namespace
}  // namespace kvstore::server
