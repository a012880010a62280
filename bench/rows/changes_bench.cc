#include "bench/rows/changes_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "bench/harness/report.h"

namespace kvstore::bench {
namespace {

constexpr char kPlainDataset[] = "kv_bench_plain";
constexpr char kKeptDataset[] = "kv_bench_kept";
constexpr char kAppend[] = "append";
constexpr uint64_t kUsers = 10'000;
constexpr size_t kEventBytes = 64;
constexpr uint64_t kKeepMs = 3'600'000;
/// A follower that has everything asks again after this.
constexpr std::chrono::milliseconds kFollowerPause{5};
constexpr uint64_t kNanosecondsOfMs = 1'000'000;

/// Reads a dataset's changes, on a thread of its own, for as long as it lives.
class BenchFollower {
 public:
  /// seen  called with each change.
  BenchFollower(KVStore& store, std::string dataset, std::function<void(const Change&)> seen)
      : store_(store), dataset_(std::move(dataset)), seen_(std::move(seen)), thread_([this] { Run(); }) {}
  ~BenchFollower() {
    stops_ = true;
    thread_.join();
  }
  BenchFollower(const BenchFollower&) = delete;
  BenchFollower& operator=(const BenchFollower&) = delete;

 private:
  void Run() {
    std::string from(kChangesFromNow);
    while (!stops_) {
      const auto page = store_.ReadChanges(dataset_, from, {});
      Check(page.status());
      for (const Change& change : page->changes) seen_(change);
      from = page->token;
      if (page->complete_until_ms != 0) std::this_thread::sleep_for(kFollowerPause);
    }
  }

  KVStore& store_;
  const std::string dataset_;
  const std::function<void(const Change&)> seen_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace

absl::StatusOr<ChangesResult> BenchChanges(KVStore& store, const ChangesOptions& options) {
  if (auto status = store.CreateDataset({.name = kPlainDataset, .max_versions = 0}); !status.ok())
    return status;
  if (auto status =
          store.CreateDataset({.name = kKeptDataset, .max_versions = 0, .keep_changes_ms = kKeepMs});
      !status.ok()) {
    return status;
  }
  const std::string event(kEventBytes, 'e');
  std::atomic<uint64_t> next{0};
  const auto append = [&](const char* dataset) {
    return [&, dataset](int) {
      const uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
      // A column of its own for each event.
      const std::string column = fmt::format("{:012}", i);
      const CellWrite cell{column, event, std::nullopt};
      const std::string user = fmt::format("user:{}", (i * 7919) % kUsers);
      Check(store.PutRow(dataset, user, {&cell, 1}, {}).status());
      return kAppend;
    };
  };
  LoadOptions load = options.load;
  load.rounds = 1;
  ChangesResult result;
  for (int round = 0; round < options.load.rounds; ++round) {
    result.plain.push_back(RunLoad(load, append(kPlainDataset)).front());
    result.kept.push_back(RunLoad(load, append(kKeptDataset)).front());
    const BenchFollower follower(store, kKeptDataset, [](const Change&) {});
    result.followed.push_back(RunLoad(load, append(kKeptDataset)).front());
  }
  result.kept_ratio = Ratio(result.kept, result.plain);
  result.followed_ratio = Ratio(result.followed, result.plain);
  {
    const BenchFollower follower(store, kKeptDataset, [&](const Change& change) {
      const uint64_t now = WallClockMs();
      result.delay.Add((now - std::min(now, change.at_ms)) * kNanosecondsOfMs);
    });
    load.rate = options.delay_rate;
    RunLoad(load, append(kKeptDataset));
  }
  for (const char* dataset : {kPlainDataset, kKeptDataset}) {
    if (auto status = store.DropDataset(dataset, {}); !status.ok()) return status;
  }
  return result;
}

}  // namespace kvstore::bench
