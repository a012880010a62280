#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/harness/load.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "kvstore_api/connect.h"
#include "server/call/access.h"
#include "tests/hostile/http2.h"
#include "tests/hostile/raw_call.h"
#include "tests/server/http_client.h"
#include "tests/server/resp/resp_client.h"
#include "tests/support/kv_server.h"
#include "tests/support/loopback.h"
#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A tenant has a server for itself, and then shares it with strangers, slow readers and a caller who reads
/// all that it can, all at once and through all doors. It lasts for KV_TEST_SECONDS [6]; the tenant is alone
/// for a sixth of that, at most a minute, and as long beside loops that only keep the cores busy: that is
/// what its latencies are on this machine beside any clients who take all that is left of the cores.
/// `./dev soak --callers` shows by the minute what latencies the tenant has and how much memory the server
/// takes. The test fails if a call of the tenant does, or if the memory is more than docs/operations.md says.
namespace kvstore {
namespace {

namespace http2 = testing::http2;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Connection;

constexpr uint64_t kMiB = uint64_t{1} << 20;
/// The sum of docs/operations.md, "Memory": the program, blocks, writes that are not in files yet, requests
/// and answers, the answers that each thread may be making beyond that, what gRPC has read and not handed
/// over, and answers that are remembered.
const uint64_t kMostBytes =
    (34 + 32 + 256 + 256 + (32 + 2 * std::thread::hardware_concurrency()) * 4 + 512 + 64) * kMiB;

constexpr int kBigRows = 400;
constexpr size_t kBigBytes = 100'000;
constexpr uint64_t kGoodRows = 1'000;

std::chrono::seconds Length() {
  const char* given = std::getenv("KV_TEST_SECONDS");
  return seconds(given != nullptr ? std::atoi(given) : 6);
}

/// Threads that repeat something until this is destroyed.
class Crowd {
 public:
  ~Crowd() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  /// pause  The time between two rounds.
  void Add(milliseconds pause, std::function<void()> act) {
    threads_.emplace_back([this, pause, act = std::move(act)] {
      while (!stop_) {
        act();
        Rest(pause);
      }
    });
  }
  /// Sleeps so long, or until this is destroyed.
  void Rest(milliseconds time) const {
    const auto until = std::chrono::steady_clock::now() + time;
    while (!stop_ && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(milliseconds(1));
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// Those that disturb the tenant, all at once and through all doors. They are a process of their own, which
/// takes the cores only when nobody else wants them: they stand for clients on other machines.
class Others {
 public:
  /// address  The server's, for gRPC.
  Others(std::string address, uint16_t resp_port, uint16_t http_port)
      : address_(std::move(address)),
        grpc_port_(static_cast<uint16_t>(std::stoi(address_.substr(address_.rfind(':') + 1)))),
        resp_port_(resp_port),
        http_port_(http_port) {}

  void Add(Crowd& crowd) const {
    AddStrangers(crowd);
    AddSlowReaders(crowd);
    AddSlowReadersOfOtherDoors(crowd);
    AddGreedyReader(crowd);
    AddGreedyReadersOfOtherDoors(crowd);
  }

 private:
  std::unique_ptr<KVStore> ClientOf(const std::string& name) const {
    return *Connect(address_, {.token = name});
  }

  void AddStrangers(Crowd& crowd) const {
    const uint16_t port = grpc_port_;
    // Strangers: connections that begin something, a hundred of them at a time.
    crowd.Add(milliseconds(5), [port, held = std::make_shared<std::deque<std::unique_ptr<Connection>>>(),
                                next = 0]() mutable {
      static const std::string kCall = http2::Preface() + http2::OpenCall(1, "/kvstore.v1.KVStore/PutRows");
      static const std::vector<std::string> kBegun = {"",
                                                      http2::Preface().substr(0, 12),
                                                      kCall.substr(0, 60),
                                                      kCall,
                                                      kCall + std::string("\0\1\0\0\0\0\0\0\1\1", 10),
                                                      "GET /healthz HT"};
      held->push_back(std::make_unique<Connection>(port));
      held->back()->Send(kBegun.at(static_cast<size_t>(next++) % kBegun.size()));
      if (held->size() > 100) held->pop_front();
    });
    // Strangers: requests that are as large as they may be.
    for (int i = 0; i < 2; ++i) {
      crowd.Add(milliseconds(10),
                [address = address_, request = testing::Repeated({"\x12\x00", 2}, 9 * kMiB)] {
                  testing::CallRaw(testing::OwnChannel(address), "/kvstore.v1.KVStore/PutRows", request);
                });
    }
    // Strangers at the other doors: commands and requests that do not end.
    for (const uint16_t other : {resp_port_, http_port_}) {
      crowd.Add(milliseconds(5), [other, held = std::make_shared<std::deque<std::unique_ptr<Connection>>>(),
                                  next = 0]() mutable {
        static const std::vector<std::string> kBegun = {
            "",
            "*2\r\n$4\r\nAUTH\r\n$5\r\nwr",
            "AUTH wrong\r\n",
            "*1000000\r\n",
            "POST /v1/get_server HTTP/1.1\r\nHost: lo",
            "POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n\r\n{",
            "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"};
        held->push_back(std::make_unique<Connection>(other));
        held->back()->Send(kBegun.at(static_cast<size_t>(next++) % kBegun.size()));
        if (held->size() > 100) held->pop_front();
      });
    }
    // Strangers: GetServer calls whose answers are not taken.
    crowd.Add(milliseconds(1000), [port, held = std::make_shared<std::deque<std::unique_ptr<Connection>>>()] {
      std::string sent = http2::Preface(0);
      for (uint32_t i = 0; i < 250; ++i) sent += http2::OpenCall(2 * i + 1, "/kvstore.v1.KVStore/GetServer");
      held->push_back(std::make_unique<Connection>(port));
      held->back()->Send(sent);
      if (held->size() > 8) held->pop_front();
    });
  }

  void AddSlowReaders(Crowd& crowd) const {
    // Sleeps longer than stall_ms.
    crowd.Add(milliseconds(0), [this, &crowd] {
      const auto stub = v1::KVStore::NewStub(testing::OwnChannel(address_));
      std::deque<grpc::ClientContext> contexts;
      std::vector<std::unique_ptr<grpc::ClientReader<v1::ScanRowsResponse>>> scans;
      v1::ScanRowsRequest request;
      request.set_dataset("big");
      request.set_max_bytes(4 << 20);
      for (int i = 0; i < 100; ++i) {
        contexts.emplace_back().AddMetadata("authorization", "Bearer slow");
        scans.push_back(stub->ScanRows(&contexts.back(), request));
      }
      crowd.Rest(seconds(40));
      for (grpc::ClientContext& context : contexts) context.TryCancel();
      for (const auto& scan : scans) scan->Finish();
    });
  }

  /// Adds clients of the other doors who ask for much and take nothing, for longer than stall_ms.
  void AddSlowReadersOfOtherDoors(Crowd& crowd) const {
    std::string commands = "AUTH slow\r\n";
    for (int i = 0; i < 200; ++i) commands += fmt::format("HGETALL big:r{:05}\r\n", i);
    const std::string body = GetRowsOf(100).dump();
    const std::string request = fmt::format(
        "POST /v1/get_rows HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer slow\r\nContent-Length: "
        "{}\r\n\r\n{}",
        body.size(), body);
    const std::vector<std::pair<uint16_t, std::string>> doors = {{resp_port_, commands},
                                                                 {http_port_, request}};
    for (const auto& [port, sent] : doors) {
      crowd.Add(milliseconds(0), [&crowd, port = port, sent = sent] {
        std::vector<std::unique_ptr<Connection>> held;
        for (int i = 0; i < 50; ++i) {
          held.push_back(std::make_unique<Connection>(port));
          held.back()->Send(sent);
        }
        crowd.Rest(seconds(40));
      });
    }
  }

  /// Returns the fields of a get_rows of so many rows.
  static nlohmann::json GetRowsOf(int rows) {
    nlohmann::json reads = nlohmann::json::array();
    for (int i = 0; i < rows; ++i) reads.push_back({{"row", fmt::format("r{:05}", i)}});
    return {{"dataset", "big"}, {"rows", reads}};
  }

  /// Adds readers through the other doors.
  void AddGreedyReadersOfOtherDoors(Crowd& crowd) const {
    crowd.Add(milliseconds(1), [this, client = std::shared_ptr<testing::RespClient>()]() mutable {
      if (client == nullptr) {
        client = std::make_shared<testing::RespClient>(fmt::format("127.0.0.1:{}", resp_port_));
        client->Do("AUTH greedy");
      }
      for (int i = 0; i < 100 && client != nullptr; ++i) {
        const std::string answer = client->Do(fmt::format("HGETALL big:r{:05}", i));
        if (answer == testing::RespClient::kClosed) client.reset();
      }
    });
    crowd.Add(milliseconds(1), [this, fields = GetRowsOf(100)] {
      testing::HttpClient(http_port_).Post("get_rows", fields, {{"Authorization", "Bearer greedy"}});
    });
  }

  void AddGreedyReader(Crowd& crowd) const {
    const std::shared_ptr<KVStore> store = ClientOf("greedy");
    for (int i = 0; i < 4; ++i) {
      crowd.Add(milliseconds(0), [store] {
        const auto cursor = store->ScanRows("big", {}, {});
        if (!cursor.ok()) return;
        ScannedRow row;
        while ((*cursor)->Next(row).value_or(false)) {
        }
      });
      crowd.Add(milliseconds(0), [store] {
        std::vector<std::string> rows;
        for (int r = 0; r < 100; ++r) rows.push_back(fmt::format("r{:05}", r));
        std::vector<RowRead> reads;
        for (const std::string& row : rows) reads.push_back({row, {}});
        store->GetRows("big", reads).status().IgnoreError();
      });
    }
  }

  const std::string address_;
  const uint16_t grpc_port_;
  const uint16_t resp_port_;
  const uint16_t http_port_;
};

class CallersSoak : public ::testing::Test {
 protected:
  CallersSoak() {
    std::ofstream(dir_ / "tokens.json") << R"({"tokens": [)" << Entry("ops", R"({"*": "admin"})") << ",\n"
                                        << Entry("good", R"({"good": "write"})") << ",\n"
                                        << Entry("slow", R"({"big": "read"})") << ",\n"
                                        << Entry("greedy", R"({"big": "read"})") << "]}";
    std::ofstream(dir_ / "kv.json") << R"({"data": ")" << (dir_ / "store").string()
                                    << R"(", "server": {"tokens": ")" << (dir_ / "tokens.json").string()
                                    << fmt::format(
                                           R"(", "resp": "127.0.0.1:{}", "http_api": "127.0.0.1:{}"}}}})",
                                           resp_port_, http_port_);
    server_ = std::make_unique<testing::KvServer>(
        KV_PROGRAM, std::vector<std::string>{"--config", (dir_ / "kv.json").string()});
  }

  static std::string Entry(const std::string& name, const std::string& rights) {
    return R"({"name": ")" + name + R"(", "sha256": ")" + server::TokenDigest(name) + R"(", "rights": )" +
           rights + "}";
  }
  std::unique_ptr<KVStore> ClientOf(const std::string& name) const {
    return *Connect(server_->address(), {.token = name});
  }

  void Load() {
    const auto store = ClientOf("ops");
    for (const char* name : {"good", "big"}) ASSERT_OK(store->CreateDataset({.name = name}));
    const std::string value(kBigBytes, 'v');
    const CellWrite cell{"c", value, 1};
    for (int i = 0; i < kBigRows; ++i)
      ASSERT_OK(store->PutRow("big", fmt::format("r{:05}", i), {&cell, 1}, {}).status());
  }

  /// Starts a program that has the cores only while nobody else wants them.
  pid_t StartIdle(std::vector<std::string> words) const {
    words.insert(words.begin(), {"chrt", "--idle", "0"});
    return testing::ForkProgram(words, (dir_ / "others.log").string());
  }
  /// Starts this program again, for the others alone; see DISABLED_Others.
  pid_t StartOthers() const {
    ::setenv("KV_SOAK_SERVER", fmt::format("{} {} {}", server_->address(), resp_port_, http_port_).c_str(),
             1);
    return StartIdle({std::filesystem::read_symlink("/proc/self/exe").string(),
                      "--gtest_also_run_disabled_tests", "--gtest_filter=*.DISABLED_Others"});
  }

  // ---- the one that is disturbed ----

  /// The latencies of the tenant for some time, and the server's largest memory in that time.
  struct Seen {
    bench::Histogram get;
    bench::Histogram put;
    uint64_t failed = 0;
    uint64_t resident = 0;
    double refused = 0;
  };

  Seen Watch(std::chrono::duration<double> time) {
    std::atomic<uint64_t> failed{0};
    std::atomic<uint64_t> next{0};
    std::atomic<uint64_t> resident{0};
    const double refused = Refused();
    std::vector<bench::LoadRound> rounds;
    {
      Crowd watcher;
      watcher.Add(milliseconds(100), [&] { resident = std::max(resident.load(), server_->ResidentBytes()); });
      const std::string value(1'000, 'v');
      const CellWrite cell{"c", value};
      rounds = bench::RunLoad(
          {.threads = 4, .rate = 400, .warm_up_s = 0, .seconds = time.count(), .rounds = 1}, [&](int) {
            const uint64_t i = next++;
            const std::string row = fmt::format("r{}", i * 7919 % kGoodRows);
            const bool put = i % 5 == 0;
            const absl::Status status = put ? good_->PutRow("good", row, {&cell, 1}, {}).status()
                                            : good_->GetRow("good", row, {}).status();
            if (!status.ok() && failed++ == 0) ADD_FAILURE() << status;
            return put ? "put" : "get";
          });
    }
    Seen seen{.failed = failed, .resident = resident, .refused = Refused() - refused};
    seen.get = rounds.front().latencies["get"];
    seen.put = rounds.front().latencies["put"];
    return seen;
  }

  double Refused() const {
    const std::string http = server_->http();
    const std::string page =
        testing::HttpGet(static_cast<uint16_t>(std::stoi(http.substr(http.rfind(':') + 1))), "/metrics");
    const std::string name = "\nkvstore_calls_refused_total ";
    const size_t at = page.find(name);
    return at == std::string::npos ? 0 : std::stod(page.substr(at + name.size()));
  }

  static void Report(const std::string& when, const Seen& seen) {
    const auto us = [](const bench::Histogram& histogram, double share) {
      return histogram.Quantile(share) / 1000;
    };
    fmt::print("{:<10} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>8.0f}\n", when, us(seen.get, 0.5),
               us(seen.get, 0.99), us(seen.put, 0.5), us(seen.put, 0.99), seen.failed, seen.resident / kMiB,
               seen.refused);
    std::fflush(stdout);
  }

  const testing::TempDir dir_;
  const uint16_t resp_port_ = testing::FreePort();
  const uint16_t http_port_ = testing::FreePort();
  std::unique_ptr<testing::KvServer> server_;
  std::unique_ptr<KVStore> good_;
};

/// Not a test: what StartOthers runs, until it is killed.
TEST(CallersSoakOthers, DISABLED_Others) {
  const char* const given = std::getenv("KV_SOAK_SERVER");
  ASSERT_NE(given, nullptr);
  std::istringstream text(given);
  std::string address;
  uint16_t resp_port = 0;
  uint16_t http_port = 0;
  text >> address >> resp_port >> http_port;
  Crowd crowd;
  Others(address, resp_port, http_port).Add(crowd);
  crowd.Rest(std::chrono::hours(24));
}

TEST_F(CallersSoak, AGoodTenantBesideAllOthers) {
  Load();
  good_ = ClientOf("good");
  const std::chrono::duration<double> length = Length();
  const auto alone_for = std::min<std::chrono::duration<double>>(length / 6, std::chrono::minutes(1));
  fmt::print("{:<10} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>8}\n", "", "get p50", "p99 us", "put p50",
             "p99 us", "failed", "RSS MiB", "refused");
  const Seen alone = Watch(alone_for);
  Report("alone", alone);
  {
    std::vector<pid_t> loops;
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
      loops.push_back(StartIdle({"sh", "-c", "while :; do :; done"}));
    }
    Report("busy", Watch(alone_for));
    for (const pid_t loop : loops) testing::Kill(loop);
  }
  Seen all;
  {
    const pid_t others = StartOthers();
    const auto together = length - 2 * alone_for;
    const int rounds = std::max(1, static_cast<int>(together / std::chrono::minutes(1)));
    for (int round = 1; round <= rounds; ++round) {
      const Seen seen = Watch(together / rounds);
      Report(fmt::format("minute {}", round), seen);
      all.get.Merge(seen.get);
      all.put.Merge(seen.put);
      all.failed += seen.failed;
      all.resident = std::max(all.resident, seen.resident);
      all.refused += seen.refused;
    }
    if (testing::Ended(others)) {
      ADD_FAILURE() << "the others did not disturb to the end";
    } else {
      testing::Kill(others);
    }
  }
  Report("all", all);
  const auto ratio = [](const bench::Histogram& beside, const bench::Histogram& before, double share) {
    return static_cast<double>(beside.Quantile(share)) /
           static_cast<double>(std::max<uint64_t>(1, before.Quantile(share)));
  };
  fmt::print("beside all others / alone: get p50 {:.1f}, p99 {:.1f}; put p50 {:.1f}, p99 {:.1f}\n",
             ratio(all.get, alone.get, 0.5), ratio(all.get, alone.get, 0.99), ratio(all.put, alone.put, 0.5),
             ratio(all.put, alone.put, 0.99));
  EXPECT_EQ(all.failed, 0u);
  EXPECT_LE(all.resident, kMostBytes);
}

}  // namespace
}  // namespace kvstore
