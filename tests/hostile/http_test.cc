#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/hostile/http_fixture.h"
#include "tests/hostile/tls_connection.h"
#include "tests/support/certificates.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Attacks on the HTTP port by strangers and by callers with few rights. The server is a process of its own,
/// so that its memory is not mixed with the clients'.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::HostileHttpTest;
using testing::HttpAnswer;
using testing::HttpChunk;
using testing::HttpClient;
using testing::HttpRequest;
using testing::kMiB;
using Json = nlohmann::json;

const std::string kHead = "POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n";

// ---- slowly ----

TEST_F(HostileHttpTest, HeadsThatComeByteByByteAreCutOff) {
  const auto slow = Dial(300);
  for (const auto& client : slow) client->Send("GET /v1/data");
  ExpectServes();
  // Each byte comes in time for a limit that would begin again with it.
  std::atomic<bool> stop{false};
  std::thread drips([&] {
    while (!stop) {
      for (const auto& client : slow) client->Send("x");
    }
  });
  ExpectServes();
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_calls_in_flight") == 1 && !slow.back()->Send("x"); }));
  stop = true;
  drips.join();
}

TEST_F(HostileHttpTest, HalfRequestsAreCutOff) {
  const auto silent = Dial(50);
  const auto heads = Dial(50);
  for (const auto& client : heads) client->Send("GET /v1/datasets HTTP/1.1\r\nHost: localhost\r\n");
  const auto bodies = Dial(50);
  for (const auto& client : bodies) client->Send(kHead + "Content-Length: 100\r\n\r\n{");
  const auto chunks = Dial(50);
  for (const auto& client : chunks) client->Send(kHead + "Transfer-Encoding: chunked\r\n\r\n5\r\n{");
  const auto lines = Dial(50);
  for (const auto& client : lines) {
    client->Send(
        "POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n"
        "Transfer-Encoding: chunked\r\n\r\n" +
        HttpChunk("{\"op\":"));
    EXPECT_EQ(client->ReadHead().status, 200);
  }
  ExpectServes();
  for (const auto* clients : {&silent, &heads, &bodies, &chunks}) ExpectClosed(*clients);
  for (const auto& client : lines) EXPECT_TRUE(client->IsClosed());
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") == 0; }));
}

TEST_F(HostileHttpTest, ABodyThatComesByteByByteIsCutOff) {
  HttpClient client(port_);
  client.Send(kHead + "Content-Length: 1000000\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return !client.Send(" "); }));
  HttpClient chunked(port_);
  chunked.Send(kHead + "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return !chunked.Send(HttpChunk(" ")); }));
}

// ---- without end ----

TEST_F(HostileHttpTest, HeadsWithoutEndTakeLittle) {
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (const bool many : {false, true}) {
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, many] {
        HttpClient client(port_);
        client.Send("GET / HTTP/1.1\r\nHost: localhost\r\n" + std::string(many ? "" : "X: "));
        const std::string piece = many ? "X: y\r\n" : std::string(1'000, 'x');
        // A gigabyte, if the server took it.
        for (int k = 0; k < 1'000'000 && client.Send(piece); ++k) {
        }
        if (client.Read().status == 431 || !client.connection().IsOpen()) ++refused;
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 8);
  ExpectServes();
  ExpectLittleMemory(50 * kMiB);
}

TEST_F(HostileHttpTest, NoBodyOfAStrangerIsRead) {
  for (const char* const how : {"Content-Length: 20000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"}) {
    HttpClient client(port_);
    client.Send(std::string("POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\n") + how);
    const HttpAnswer answer = client.Read();
    EXPECT_EQ(answer.status, 401) << "before a byte of it has come";
    EXPECT_EQ(answer.headers.at("connection"), "close");
  }
  ExpectLittleMemory(20 * kMiB);
}

TEST_F(HostileHttpTest, BodiesWithoutEndTakeTheCallersShare) {
  // Sixty bodies of 20 MB of one caller, who may have 32.
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  const std::string piece = HttpChunk(std::string(size_t{1} << 20, ' '));
  for (int i = 0; i < 60; ++i) {
    threads.emplace_back([&] {
      HttpClient client(port_);
      client.Send(kHead + "Transfer-Encoding: chunked\r\n\r\n");
      for (int k = 0; k < 100 && client.Send(piece); ++k) {
      }
      const int status = client.Read().status;
      if (status == 413 || status == 429 || status == 0) ++refused;
    });
  }
  for (int i = 0; i < 10; ++i) ExpectServes();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 60);
  ExpectServes();
  ExpectLittleMemory(250 * kMiB);
}

TEST_F(HostileHttpTest, SmallTextsThatBecomeMuchAreRefused) {
  const std::string head = kHead + "Content-Length: ";
  const auto send = [&](const std::string& body) {
    HttpClient client(port_);
    client.Send(head + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.Read();
  };
  std::string arrays = "[";
  while (arrays.size() < 20'000'000) arrays += "[],";
  arrays.back() = ']';
  const HttpAnswer many = send(arrays);
  EXPECT_EQ(many.status, 400);
  EXPECT_NE(many.message().find("more than 1000000 values"), std::string::npos) << many.message();
  EXPECT_EQ(send(std::string(10'000'000, '[')).status, 400);
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += R"({"a":)";
  EXPECT_NE(send(deep).message().find("nests"), std::string::npos);
  ExpectServes();
  ExpectLittleMemory(200 * kMiB);
}

// ---- much at once ----

TEST_F(HostileHttpTest, ConnectionsOfStrangersMakeRoomForCallers) {
  Serve(Json::object(), /*descriptors=*/"400");
  // More than the server keeps, which say nothing, or half a request.
  std::vector<std::unique_ptr<HttpClient>> flood;
  for (int i = 0; i < 400; ++i) {
    flood.push_back(std::make_unique<HttpClient>(port_));
    if (i % 2 == 0) flood.back()->Send("GET /");
    if (i % 50 == 0) ExpectServes();
  }
  ExpectServes();
  // A connection over which its caller was known is not closed for them.
  HttpClient known(port_);
  EXPECT_EQ(known.Get("/v1/datasets", As("bob")).status, 200);
  for (int i = 0; i < 200; ++i) flood.push_back(std::make_unique<HttpClient>(port_));
  EXPECT_EQ(known.Get("/v1/datasets", As("bob")).status, 200);
  // The store has descriptors left.
  EXPECT_EQ(Ask("create_dataset", {{"dataset", "more"}}).status, 200);
}

TEST_F(HostileHttpTest, AnswersThatNobodyTakesAreCountedAndCutOff) {
  PutLarge("large", 4'000'000);
  const auto greedy = Dial(100);
  for (const auto& client : greedy)
    client->Send(HttpRequest("GET", "/v1/datasets/alice/rows/large", "", As("alice")));
  for (int i = 0; i < 20; ++i) ExpectServes();
  // The clients still take nothing.
  EXPECT_TRUE(Eventually(
      [&] { return Metric("kvstore_calls_in_flight") == 1 && Metric("kvstore_bytes_in_flight") == 0; }));
  // The server holds at most what the caller may have, and an answer for each thread that made one when that
  // was full.
  ExpectLittleMemory(600 * kMiB);
}

TEST_F(HostileHttpTest, ManyRequestsWhoseAnswersNobodyTakesTakeLittle) {
  PutLarge("r", 10'000);
  const std::string request = HttpRequest("GET", "/v1/datasets/alice/rows/r", "", As("alice"));
  std::string together;
  for (int i = 0; i < 1'000; ++i) together += request;
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] {
      HttpClient client(port_);
      // The server stops reading, and then ends the connection.
      for (int k = 0; k < 1'000 && client.Send(together); ++k) {
      }
      EXPECT_FALSE(client.Send(request));
    });
  }
  ExpectServes();
  for (std::thread& thread : threads) thread.join();
  ExpectServes();
  ExpectLittleMemory(100 * kMiB);
}

TEST_F(HostileHttpTest, LinesWhoseAnswersNobodyTakesTakeLittle) {
  PutLarge("r", 100'000);
  std::string lines;
  for (int i = 0; i < 1'000; ++i)
    lines += R"({"op":"get_row","dataset":"alice","row":"r"})"
             "\n";
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] {
      HttpClient client(port_);
      client.Send(
          "POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n"
          "Transfer-Encoding: chunked\r\n\r\n");
      for (int k = 0; k < 10'000 && client.Send(HttpChunk(lines)); ++k) {
      }
      EXPECT_FALSE(client.Send("x"));
    });
  }
  ExpectServes();
  for (std::thread& thread : threads) thread.join();
  ExpectServes();
  ExpectLittleMemory(150 * kMiB);
}

TEST_F(HostileHttpTest, ClientsThatLeaveAreForgotten) {
  PutLarge("large", 1'000'000);
  for (int i = 0; i < 300; ++i) {
    HttpClient client(port_);
    client.Send(HttpRequest("GET", "/v1/datasets/alice/rows/large", "", As("alice")));
    client.connection().ResetOnClose();
  }
  EXPECT_TRUE(Eventually(
      [&] { return Metric("kvstore_calls_in_flight") == 1 && Metric("kvstore_bytes_in_flight") == 0; }));
  ExpectServes();
}

// ---- nonsense ----

TEST_F(HostileHttpTest, WhateverIsSentTheServerGoesOn) {
  testing::Random random(testing::Seed("http"));
  const std::vector<std::string> good = {
      HttpRequest(
          "POST", "/v1/put_row",
          R"({"dataset":"alice","row":"r","items":[{"column":"c","value":{"b64":"/w=="},"timestamp":5}]})",
          As("alice")),
      HttpRequest("GET", "/v1/datasets/alice/rows/r?versions=2&columns=c", "", As("alice")),
      "POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\nTransfer-Encoding: "
      "chunked\r\n\r\n" +
          HttpChunk(R"({"op":"get_row","dataset":"alice","row":"r"})"
                    "\n") +
          HttpChunk(""),
      HttpRequest("OPTIONS", "*", "", {{"Origin", "null"}}),
  };
  for (int i = 0; i < 1'000; ++i) {
    std::string bytes = good[random.Below(good.size())] + good[random.Below(good.size())];
    for (size_t n = 1 + random.Below(6); n > 0; --n) {
      const size_t at = random.Below(bytes.size());
      switch (random.Below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.Below(256));
          break;
        case 1:
          bytes.erase(at, 1 + random.Below(20));
          break;
        case 2:
          bytes.insert(at, bytes.substr(random.Below(bytes.size()), random.Below(40)));
          break;
        default:
          bytes.insert(at, std::string(random.Below(3), "\r\n\0: "[random.Below(5)]));
      }
    }
    HttpClient client(port_);
    client.Send(bytes);
    client.connection().EndSending();
    // It ends, whatever is answered.
    while (client.Read().status != 0) {
    }
  }
  ExpectServes();
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") == 0; }));
  ExpectLittleMemory(100 * kMiB);
}

// ---- TLS ----

TEST_F(HostileHttpTest, HandshakesThatDoNotEndAreCutOff) {
  testing::Authority authority(dir_.path(), "authority");
  const testing::Authority::Files files = authority.Issue("server");
  Serve({{"tls", {{"cert", files.cert}, {"key", files.key}}}});
  std::vector<std::unique_ptr<HttpClient>> half;
  for (int i = 0; i < 200; ++i) {
    half.push_back(std::make_unique<HttpClient>(port_));
    // The beginning of a record with a ClientHello.
    if (i % 2 == 0) half.back()->Send(std::string("\x16\x03\x01\x02\x00\x01", 6));
    if (i % 2 == 1) half.back()->Send("GET / HTTP/1.1\r\n\r\n");
  }
  testing::BasicHttpClient<testing::TlsConnection> client(port_);
  EXPECT_EQ(client.Get("/v1/datasets", As("bob")).status, 200);
  ExpectClosed(half);
}

}  // namespace
}  // namespace kvstore
