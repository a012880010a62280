#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/call/access.h"
#include "tests/server/http_client.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/loopback.h"
#include "tests/support/sanitized.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

inline constexpr uint64_t kMiB = 1 << 20;

/// A server whose callers "alice" and "bob" may each write their dataset. The token of each is its name.
class HostileHttpTest : public ::testing::Test {
 protected:
  void SetUp() override { Serve(); }

  void Serve(const nlohmann::json& more = nlohmann::json::object(), const std::string& descriptors = "") {
    std::ofstream(dir_ / "tokens.json")
        << R"({"tokens": [{"name": "alice", "sha256": ")" << server::TokenDigest("alice")
        << R"(", "rights": {"alice": "admin"}}, {"name": "bob", "sha256": ")" << server::TokenDigest("bob")
        << R"(", "rights": {"*": "admin"}}]})";
    port_ = FreePort();
    nlohmann::json served = {{"http_api", "127.0.0.1:" + std::to_string(port_)},
                             {"tokens", (dir_ / "tokens.json").string()},
                             // A slow client is cut off, but none that a busy machine makes wait.
                             {"limits", {{"stall_ms", 4'000}, {"max_bytes", 64 * kMiB}}}};
    served.update(more);
    std::ofstream(dir_ / "kv.json") << nlohmann::json{{"data", (dir_ / "store").string()},
                                                      {"server", served}};
    const std::string config = (dir_ / "kv.json").string();
    server_.reset();
    if (descriptors.empty()) {
      server_ = std::make_unique<KvServer>(KV_PROGRAM, std::vector<std::string>{"--config", config});
    } else {
      server_ = std::make_unique<KvServer>(
          "/bin/sh", std::vector<std::string>{"-c", "ulimit -n " + descriptors + R"(; exec "$@")", "sh",
                                              KV_PROGRAM, "--config", config});
    }
    Ask("create_dataset", {{"dataset", "alice"}});
    Ask("create_dataset", {{"dataset", "bob"}});
    before_ = MostBytes();
  }

  static HttpHeaders As(const std::string& caller) { return {{"Authorization", "Bearer " + caller}}; }
  /// Asks as bob, over a connection of its own.
  HttpAnswer Ask(const std::string& operation, const nlohmann::json& fields) const {
    return HttpClient(port_).Post(operation, fields, As("bob"));
  }
  /// Expects that the server serves others.
  void ExpectServes() const {
    const nlohmann::json put = {
        {"dataset", "bob"}, {"row", "r"}, {"items", {{{"column", "c"}, {"value", "v"}}}}};
    EXPECT_EQ(Ask("put_row", put).status, 200);
    EXPECT_EQ(Ask("get_row", {{"dataset", "bob"}, {"row", "r"}}).json()["items"].size(), 1u);
  }
  /// Puts a row of alice of so many of these bytes.
  void PutLarge(const std::string& row, size_t bytes, char byte = 'v') const {
    const nlohmann::json put = {{"dataset", "alice"},
                                {"row", row},
                                {"items", {{{"column", "c"}, {"value", std::string(bytes, byte)}}}}};
    EXPECT_EQ(HttpClient(port_).Post("put_row", put, As("alice")).status, 200);
  }
  /// Returns a figure of the server; -1 if there is none.
  double Metric(const std::string& name) const {
    const std::string text = Ask("get_metrics", nlohmann::json::object()).json().value("text", "");
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
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
  void ExpectLittleMemory(uint64_t most) const { ExpectGrownBy(most, before_); }
  /// Expects that the server has taken at most so much more than it had at a time.
  void ExpectGrownBy(uint64_t most, uint64_t had) const {
    if (kSanitized) return;
    EXPECT_LT(MostBytes() - had, most);
  }
  /// Expects that the server closes all of these connections.
  static void ExpectClosed(const std::vector<std::unique_ptr<HttpClient>>& clients) {
    EXPECT_TRUE(Eventually([&] {
      return std::none_of(clients.begin(), clients.end(),
                          [](const auto& client) { return client->connection().IsOpen(); });
    }));
  }
  std::vector<std::unique_ptr<HttpClient>> Dial(size_t count) const {
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (size_t i = 0; i < count; ++i) clients.push_back(std::make_unique<HttpClient>(port_));
    return clients;
  }

  const TempDir dir_;
  uint16_t port_ = 0;
  std::unique_ptr<KvServer> server_;
  uint64_t before_ = 0;
};

}  // namespace kvstore::testing
