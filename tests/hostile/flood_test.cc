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
#include "tests/hostile/tls_connection.h"
#include "tests/support/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/sanitized.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Frames of HTTP/2 that gRPC accepts without a limit, from a client without a token. The server is a process
/// of its own, so that its memory is not mixed with the client's.
namespace kvstore {
namespace {

namespace http2 = testing::http2;
using testing::Connection;
using testing::TlsConnection;

/// The most memory that the server may take. What arrives before connections are ended takes about 150 MB;
/// without an end it would be 8 GB.
constexpr uint64_t kMost = uint64_t{1} << 30;
/// The same for calls of 28 bytes, over five connections.
constexpr uint64_t kMostForShortCalls = uint64_t{500} << 20;

class FloodTest : public ::testing::Test {
 protected:
  FloodTest() : FloodTest(/*tls=*/false) {}
  explicit FloodTest(bool tls) : tls_(tls) {
    std::ofstream(dir_ / "tokens.json") << R"({"tokens": [{"name": "ops", "sha256": ")"
                                        << server::TokenDigest("ops") << R"(", "rights": {"*": "admin"}}]})";
    const testing::Authority::Files files = authority_.Issue("server");
    const std::string encryption =
        R"(, "tls": {"cert": ")" + files.cert + R"(", "key": ")" + files.key + R"("})";
    std::ofstream(dir_ / "kv.json") << R"({"data": ")" << (dir_ / "store").string()
                                    << R"(", "server": {"tokens": ")" << (dir_ / "tokens.json").string()
                                    << R"(")" << (tls ? encryption : "") << "}}";
    server_ = std::make_unique<testing::KvServer>(
        KV_PROGRAM, std::vector<std::string>{"--config", (dir_ / "kv.json").string()});
    ConnectOptions options{.token = "ops"};
    if (tls) options.tls = ClientTls{.ca = authority_.file()};
    store_ = *Connect(server_->address(), options);
    EXPECT_OK(store_->CreateDataset({.name = "rows"}));
    before_ = MostBytes();
  }

  /// Opens streams and resets them at once.
  void ResetStreams() {
    // A hundred streams at a time.
    const auto piece = [](uint32_t i) {
      std::string calls;
      for (uint32_t k = 0; k < 100; ++k) {
        const uint32_t stream = 2 * (100 * i + k) + 1;
        calls += http2::OpenCall(stream, "/kvstore.v1.KVStore/GetRow") + http2::Reset(stream);
      }
      return calls;
    };
    ExpectEnd(http2::Preface(), piece, 2'000);
  }

  /// The same with headers that were sent before, so that many calls fit into few bytes.
  void ResetStreamsWithShortHeaders(const std::string& path) {
    const auto piece = [&](uint32_t i) { return http2::ShortResetCalls(1'000 * i, 1'000, path); };
    ExpectEnd(http2::Preface(), piece, 500, /*connections=*/5, kMostForShortCalls);
  }

  /// Sends one header of a gigabyte.
  void SendHeaderWithoutEnd() {
    // 0, then the length of its name: seven bits, and the rest.
    const std::string begin =
        http2::Preface() + http2::Frame(http2::kHeaders, 0, 1, std::string("\0\x7f\x81\xff\xff\xff\x03", 7));
    const std::string more = http2::Frame(http2::kContinuation, 0, 1, std::string(16'000, 'n'));
    ExpectEnd(
        begin, [&](uint32_t) { return more; }, 20'000);
  }

  /// Sends headers of a call that never end, and of which none is large.
  void SendManyHeaders() {
    std::string headers;
    for (int i = 0; i < 100; ++i) headers += http2::Header("x", std::string(100, 'v'));
    const std::string begin =
        http2::Preface() + http2::Frame(http2::kHeaders, 0, 1, http2::Header(":method", "POST"));
    const std::string more = http2::Frame(http2::kContinuation, 0, 1, headers);
    ExpectEnd(
        begin, [&](uint32_t) { return more; }, 20'000);
  }

 private:
  using Piece = std::function<std::string(uint32_t i)>;

  /// Sends pieces over several connections at a time, at most so many over each. Expects that the server ends
  /// each of them, serves others, and takes little memory.
  void ExpectEnd(const std::string& begin, const Piece& piece, uint32_t most, size_t connections = 2,
                 uint64_t memory = kMost) {
    EXPECT_TRUE(tls_ ? Flood<TlsConnection>(begin, piece, most, connections)
                     : Flood<Connection>(begin, piece, most, connections));
    EXPECT_OK(store_->GetRow("rows", "r", {}).status());
    if (testing::kSanitized) return;
    EXPECT_LT(MostBytes() - before_, memory);
  }

  /// Returns whether the server has ended all connections.
  template <typename AnyConnection>
  bool Flood(const std::string& begin, const Piece& piece, uint32_t most, size_t connections) {
    std::atomic<size_t> ended{0};
    std::vector<std::thread> threads;
    for (size_t c = 0; c < connections; ++c) {
      threads.emplace_back([&] {
        AnyConnection connection(server_->port());
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
    return ended == connections;
  }

  /// Returns the most memory that the server has had so far.
  uint64_t MostBytes() const {
    std::ifstream status("/proc/" + std::to_string(server_->process()) + "/status");
    std::string word;
    uint64_t kib = 0;
    while (status >> word && word != "VmHWM:") {
    }
    status >> kib;
    return kib << 10;
  }

  const bool tls_;
  const testing::TempDir dir_;
  testing::Authority authority_{dir_.path(), "authority"};
  std::unique_ptr<testing::KvServer> server_;
  std::unique_ptr<KVStore> store_;
  uint64_t before_ = 0;
};

class FloodOverTlsTest : public FloodTest {
 protected:
  FloodOverTlsTest() : FloodTest(/*tls=*/true) {}
};

TEST_F(FloodTest, StreamsThatAreResetAtOnceEndTheirConnection) { ResetStreams(); }
TEST_F(FloodTest, HeadersThatDoNotEndEndTheirConnection) { SendHeaderWithoutEnd(); }
TEST_F(FloodTest, ManyHeadersEndTheirConnection) { SendManyHeaders(); }
TEST_F(FloodTest, ShortCallsThatAreResetTakeLittle) {
  ResetStreamsWithShortHeaders("/kvstore.v1.KVStore/GetRow");
}
TEST_F(FloodTest, ShortCallsOfUnknownMethodsTakeLittle) {
  ResetStreamsWithShortHeaders("/kvstore.v1.KVStore/NoSuchMethod");
}

TEST_F(FloodOverTlsTest, StreamsThatAreResetAtOnceEndTheirConnection) { ResetStreams(); }
TEST_F(FloodOverTlsTest, HeadersThatDoNotEndEndTheirConnection) { SendHeaderWithoutEnd(); }
TEST_F(FloodOverTlsTest, ManyHeadersEndTheirConnection) { SendManyHeaders(); }

}  // namespace
}  // namespace kvstore
