#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "kvstore_api/connect.h"
#include "tests/hostile/connection.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Tests of what a server does for others while somebody holds all the connections that they can get.
namespace kvstore {
namespace {

using testing::Connection;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Get(uint16_t port, const std::string& path) { return testing::HttpGet(port, path).substr(0, 12); }

uint16_t PortOf(const std::string& address) {
  return static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

/// A server with a limit of 200 file descriptors.
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
    // An empty SETTINGS frame.
    hostile.back()->Send({"\0\0\0\4\0\0\0\0\0", 9});
  }
  // More than fits into one file of the write-ahead log, and into one table file.
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

TEST_F(ConnectionsTest, HealthIsToldWhileMoreSendHalfARequestThanMayBeOpen) {
  const uint16_t port = PortOf(server_.http());
  std::deque<std::unique_ptr<Connection>> halves;
  for (int i = 0; i < 300; ++i) {
    halves.push_back(std::make_unique<Connection>(port));
    halves.back()->Send("GET /he");
    if (halves.size() > 80) halves.pop_front();
    if (i % 10 == 0) {
      EXPECT_EQ(Get(port, "/healthz"), "HTTP/1.1 200") << i;
    }
  }
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
  // None of the answers is read to its end.
  EXPECT_TRUE(testing::Eventually([&] {
    return std::none_of(bodies.begin(), bodies.end(), [](const auto& body) { return body->IsOpen(); });
  }));
}

}  // namespace
}  // namespace kvstore
