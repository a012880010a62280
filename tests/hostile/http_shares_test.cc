#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "tests/hostile/http_fixture.h"

/// Tests of the weaknesses that a second attack on the HTTP port found: memory that nobody counted, and
/// resources that one caller, or a stranger, could take from others.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::HostileHttpTest;
using testing::HttpClient;
using testing::HttpRequest;
using testing::kMiB;
using Json = nlohmann::json;

TEST_F(HostileHttpTest, ABodyOfAStrangerToWhatAnybodyMayAskDoesNoHarm) {
  for (const size_t values : {size_t{10}, size_t{479}, size_t{1'000}}) {
    HttpClient client(port_);
    EXPECT_EQ(client.Ask("POST", "/v1/get_server", "[" + std::string(values, ',')).status, 400);
  }
  ExpectServes();
}

TEST_F(HostileHttpTest, IdleConnectionsKeepNothingOfWhatTheySent) {
  const std::string body = R"({"dataset": "alice", "row": "r")" + std::string(size_t{10} << 20, ' ') + "}";
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(std::make_unique<HttpClient>(port_));
    EXPECT_EQ(idle.back()->Ask("POST", "/v1/get_row", body, As("alice")).status, 200);
  }
  ExpectServes();
  // With what they have sent it would be 400.
  ExpectLittleMemory(200 * kMiB);
}

TEST_F(HostileHttpTest, AnswersToLinesCountWhereTheShareIsFull) {
  Serve({{"limits", {{"max_bytes", 64 * kMiB}}}});
  PutLarge("r", 1'000'000, '\x01');  // six bytes each as JSON
  std::vector<std::unique_ptr<HttpClient>> greedy;
  for (int i = 0; i < 40; ++i) {
    greedy.push_back(std::make_unique<HttpClient>(port_));
    const auto& client = greedy.back();
    client->Send(
        "POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    EXPECT_EQ(client->ReadHead().status, 200);
    client->Send(testing::HttpChunk("{\"op\":\"get_row\",\"dataset\":\"alice\",\"row\":\"r\"}\n"));
    EXPECT_TRUE(Eventually([&] { return !client->connection().IsOpen(); })) << "an answer, or a refusal";
  }
  ExpectServes();
  // All of the answers would be 240.
  ExpectLittleMemory(120 * kMiB);
}

TEST_F(HostileHttpTest, OneCallerLeavesConnectionsToOthers) {
  Serve(Json::object(), /*descriptors=*/"400");
  // A hundred are kept.
  std::vector<std::unique_ptr<HttpClient>> greedy;
  size_t served = 0;
  for (int i = 0; i < 120; ++i) {
    greedy.push_back(std::make_unique<HttpClient>(port_));
    if (greedy.back()->Get("/v1/datasets", As("alice")).status == 200) ++served;
    ExpectServes();
  }
  EXPECT_EQ(served, greedy.size()) << "those of its own that were idle make room";
  EXPECT_EQ(greedy.back()->Get("/v1/datasets", As("alice")).status, 200);
  EXPECT_TRUE(Eventually([&] { return !greedy.front()->connection().IsOpen(); }));
}

TEST_F(HostileHttpTest, OneCallersStreamsThatNeverEndLeaveConnectionsToOthers) {
  Serve({{"limits", {{"stall_ms", 60'000}}}}, /*descriptors=*/"400");
  std::vector<std::unique_ptr<HttpClient>> greedy;
  for (int i = 0; i < 150; ++i) {
    greedy.push_back(std::make_unique<HttpClient>(port_));
    greedy.back()->Send(
        "POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n"
        "Transfer-Encoding: chunked\r\n\r\n" +
        testing::HttpChunk("{"));
    EXPECT_EQ(greedy.back()->ReadHead().status, 200);
    ExpectServes();
  }
  const auto open = [&] {
    return std::count_if(greedy.begin(), greedy.end(),
                         [](const auto& client) { return client->connection().IsOpen(); });
  };
  // A hundred may be open, fifty of one caller, and an eighth of these that end.
  EXPECT_TRUE(Eventually([&] { return open() <= 57; })) << open();
}

TEST_F(HostileHttpTest, LinesThatWereCarriedOutKeepNothing) {
  const std::string line =
      R"({"op":"get_row","dataset":"alice","row":"r"})" + std::string(size_t{15} << 20, ' ') + "\n";
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(std::make_unique<HttpClient>(port_));
    idle.back()->Send(
        "POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    EXPECT_EQ(idle.back()->ReadHead().status, 200);
    idle.back()->Send(testing::HttpChunk(line));
    std::string answer;
    EXPECT_TRUE(idle.back()->ReadChunk(answer));
    EXPECT_NE(answer.find("items"), std::string::npos) << answer;
  }
  ExpectServes();
  // With what they have sent it would be 300.
  ExpectLittleMemory(160 * kMiB);
}

/// A connection from a port of the client's choice.
int DialFrom(uint16_t from, uint16_t to) {
  const int dialled = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int reuse = 1;
  ::setsockopt(dialled, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  ::setsockopt(dialled, SOL_SOCKET, SO_REUSEPORT, &reuse, sizeof(reuse));
  const sockaddr_in here = testing::Loopback(from);
  const sockaddr_in there = testing::Loopback(to);
  EXPECT_EQ(::bind(dialled, reinterpret_cast<const sockaddr*>(&here), sizeof(here)), 0);
  EXPECT_EQ(::connect(dialled, reinterpret_cast<const sockaddr*>(&there), sizeof(there)), 0);
  return dialled;
}

TEST_F(HostileHttpTest, AStrangerEndsNoConnectionOfAnotherDoor) {
  const uint16_t from = testing::FreePort();
  const int grpc = DialFrom(from, server_->port());
  const std::string preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  ASSERT_EQ(::send(grpc, preface.data(), preface.size(), MSG_NOSIGNAL), static_cast<ssize_t>(preface.size()));
  const int http = DialFrom(from, port_);
  std::string flood;
  for (int i = 0; i < 2'000; ++i) flood += HttpRequest("GET", "/v1/server");
  for (size_t at = 0; at < flood.size();) {
    const ssize_t sent = ::send(http, flood.data() + at, flood.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) break;
    at += static_cast<size_t>(sent);
    char some[1 << 16];
    while (::recv(http, some, sizeof(some), MSG_DONTWAIT) > 0) {
    }
  }
  ExpectServes();
  EXPECT_EQ(Metric("kvstore_connections_ended_total"), 0);
  ::close(http);
  ::close(grpc);
}

}  // namespace
}  // namespace kvstore
