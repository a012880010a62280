#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "client/connect.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/loopback.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// What a server does for others while somebody has all the connections that they can get.
namespace kvstore {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection to a port of this machine; -1: there is none.
class Connection {
 public:
  explicit Connection(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = testing::Loopback(port);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Send(std::string_view text) const { ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// All that comes until the other side ends it.
  std::string ReadAll() const {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = ::recv(socket_, buffer.data(), buffer.size(), 0)) > 0;) {
      text.append(buffer.data(), static_cast<size_t>(n));
    }
    return text;
  }
  bool IsOpen() const {
    pollfd polled{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&polled, 1, 0) == 0;
  }

 private:
  const int socket_;
};

std::string Get(uint16_t port, const std::string& path) {
  const Connection connection(port);
  connection.Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  return connection.ReadAll().substr(0, 12);
}

uint16_t PortOf(const std::string& address) {
  return static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

/// A server that may have 200 descriptors.
class ConnectionsTest : public ::testing::Test {
 protected:
  const testing::TempDir dir_;
  testing::KvServer server_{
      "/bin/sh", {"-c", "ulimit -n 200; exec \"$@\"", "sh", KV_PROGRAM, "--data", (dir_ / "store").string()}};
};

TEST_F(ConnectionsTest, TheStoreKeepsItsDescriptors) {
  ASSERT_OK_AND_ASSIGN(const auto store, Connect(server_.address()));
  ASSERT_OK(store->CreateDataset({.name = "rows"}));
  std::vector<std::unique_ptr<Connection>> hostile;
  for (int i = 0; i < 300; ++i) {
    hostile.push_back(std::make_unique<Connection>(server_.port()));
    hostile.back()->Send({kPreface, sizeof(kPreface) - 1});
    // An empty frame of settings.
    hostile.back()->Send({"\0\0\0\4\0\0\0\0\0", 9});
  }
  // More than one file of the log of writes has, and of what it is written to then.
  const std::string value(size_t{1} << 20, 'v');
  for (int i = 0; i < 150; ++i) {
    const CellWrite cell{"c", value, 1};
    ASSERT_OK(store->PutRow("rows", "r" + std::to_string(i), {&cell, 1}, {}).status()) << i;
  }
  ASSERT_OK(store->CreateDataset({.name = "more"}));
  EXPECT_EQ(Get(PortOf(server_.http()), "/readyz"), "HTTP/1.1 200");
  hostile.clear();
  ASSERT_OK_AND_ASSIGN(const auto another, Connect(server_.address()));
  EXPECT_OK(another->GetRow("rows", "r0", {}).status());
}

TEST_F(ConnectionsTest, HealthIsToldWhileManySendHalfARequest) {
  const uint16_t port = PortOf(server_.http());
  std::vector<std::unique_ptr<Connection>> halves;
  for (int i = 0; i < 40; ++i) {
    halves.push_back(std::make_unique<Connection>(port));
    halves.back()->Send("GET /he");
  }
  EXPECT_EQ(Get(port, "/healthz"), "HTTP/1.1 200");
  int open = 0;
  for (const auto& half : halves) open += half->IsOpen() ? 1 : 0;
  EXPECT_GT(open, 0) << "it was told only when all of them were shown out";
}

TEST_F(ConnectionsTest, NothingButGetAndHeadIsAnswered) {
  const auto ask = [port = PortOf(server_.http())](const std::string& line) {
    const Connection connection(port);
    connection.Send(line + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return connection.ReadAll();
  };
  EXPECT_EQ(ask("GET /healthz?x=y").substr(0, 12), "HTTP/1.1 200");
  EXPECT_EQ(ask("GET /healthz/x").substr(0, 12), "HTTP/1.1 404");
  EXPECT_EQ(ask("POST /healthz").substr(0, 12), "HTTP/1.1 405");
  const std::string head = ask("HEAD /metrics");
  EXPECT_EQ(head.substr(0, 12), "HTTP/1.1 200");
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST_F(ConnectionsTest, HealthIsToldWhileManySendABodyByteByByte) {
  const uint16_t port = PortOf(server_.http());
  std::vector<std::unique_ptr<Connection>> bodies;
  for (int i = 0; i < 100; ++i) {
    bodies.push_back(std::make_unique<Connection>(port));
    bodies.back()->Send("POST /healthz HTTP/1.1\r\nHost: kv\r\nContent-Length: 1000000000\r\n\r\nx");
  }
  for (int i = 0; i < 5; ++i) {
    for (const auto& body : bodies) body->Send("x");
    EXPECT_EQ(Get(port, "/healthz"), "HTTP/1.1 200");
  }
  // None is read to its end.
  EXPECT_TRUE(testing::Eventually([&] {
    return std::none_of(bodies.begin(), bodies.end(), [](const auto& body) { return body->IsOpen(); });
  }));
}

}  // namespace
}  // namespace kvstore
