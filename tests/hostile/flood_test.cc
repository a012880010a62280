#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kvstore_api/connect.h"
#include "server/call/access.h"
#include "tests/hostile/http2.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Frames of HTTP/2 that gRPC accepts without a limit, from a client without a token. The server is a process
/// of its own, so that its memory is not mixed with the client's.
namespace kvstore {
namespace {

namespace http2 = testing::http2;
using testing::Connection;

/// The most memory that the server may take. What arrives before connections are ended takes about 150 MB,
/// and more with sanitizers; without an end it would be 8 GB.
constexpr uint64_t kMost = uint64_t{1} << 30;

class FloodTest : public ::testing::Test {
 protected:
  FloodTest() {
    std::ofstream(dir_ / "tokens.json") << R"({"tokens": [{"name": "ops", "sha256": ")"
                                        << server::TokenDigest("ops") << R"(", "rights": {"*": "admin"}}]})";
    std::ofstream(dir_ / "kv.json") << R"({"data": ")" << (dir_ / "store").string()
                                    << R"(", "server": {"tokens": ")" << (dir_ / "tokens.json").string()
                                    << R"("}})";
    server_ = std::make_unique<testing::KvServer>(
        KV_PROGRAM, std::vector<std::string>{"--config", (dir_ / "kv.json").string()});
    store_ = *Connect(server_->address(), {.token = "ops"});
    EXPECT_OK(store_->CreateDataset({.name = "rows"}));
    before_ = MostBytes();
  }

  /// Sends pieces over several connections at a time, until the server ends each of them or a limit is
  /// reached. Returns whether all were ended.
  bool Flood(const std::string& begin, const std::function<std::string(uint32_t i)>& piece, uint32_t most) {
    constexpr size_t kConnections = 2;
    std::atomic<size_t> ended{0};
    std::vector<std::thread> threads;
    for (size_t c = 0; c < kConnections; ++c) {
      threads.emplace_back([&] {
        const Connection connection(server_->port());
        std::thread reader([&] {
          // Reads as well: a server that cannot write would not read either.
          while (!connection.Read().empty()) {
          }
        });
        bool open = connection.Send(begin);
        for (uint32_t i = 0; i < most && open; ++i) open = connection.Send(piece(i));
        if (!open) ++ended;
        connection.End();
        reader.join();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ended == kConnections;
  }

  /// Returns by how much the server's largest memory has grown since the test began.
  uint64_t Grown() const { return MostBytes() - before_; }

  std::unique_ptr<KVStore> store_;

 private:
  uint64_t MostBytes() const {
    std::ifstream status("/proc/" + std::to_string(server_->process()) + "/status");
    std::string word;
    uint64_t kib = 0;
    while (status >> word && word != "VmHWM:") {
    }
    status >> kib;
    return kib << 10;
  }

  const testing::TempDir dir_;
  std::unique_ptr<testing::KvServer> server_;
  uint64_t before_ = 0;
};

TEST_F(FloodTest, StreamsThatAreResetAtOnceEndTheirConnection) {
  // A hundred streams at a time.
  const auto piece = [](uint32_t i) {
    std::string calls;
    for (uint32_t k = 0; k < 100; ++k) {
      const uint32_t stream = 2 * (100 * i + k) + 1;
      calls += http2::OpenCall(stream, "/kvstore.v1.KVStore/GetRow") + http2::Reset(stream);
    }
    return calls;
  };
  EXPECT_TRUE(Flood(http2::Preface(), piece, 2'000));
  EXPECT_OK(store_->GetRow("rows", "r", {}).status());
  EXPECT_LT(Grown(), kMost);
}

TEST_F(FloodTest, HeadersThatDoNotEndEndTheirConnection) {
  // A header of a gigabyte: 0, then the length of its name: seven bits, and the rest.
  const std::string begin =
      http2::Preface() + http2::Frame(http2::kHeaders, 0, 1, std::string("\0\x7f\x81\xff\xff\xff\x03", 7));
  const std::string more = http2::Frame(http2::kContinuation, 0, 1, std::string(16'000, 'n'));
  EXPECT_TRUE(Flood(
      begin, [&](uint32_t) { return more; }, 20'000));
  EXPECT_OK(store_->GetRow("rows", "r", {}).status());
  EXPECT_LT(Grown(), kMost);
}

TEST_F(FloodTest, ManyHeadersEndTheirConnection) {
  std::string headers;
  for (int i = 0; i < 100; ++i) headers += http2::Header("x", std::string(100, 'v'));
  const std::string begin =
      http2::Preface() + http2::Frame(http2::kHeaders, 0, 1, http2::Header(":method", "POST"));
  const std::string more = http2::Frame(http2::kContinuation, 0, 1, headers);
  EXPECT_TRUE(Flood(
      begin, [&](uint32_t) { return more; }, 20'000));
  EXPECT_OK(store_->GetRow("rows", "r", {}).status());
  EXPECT_LT(Grown(), kMost);
}

}  // namespace
}  // namespace kvstore
