#include "bench/rows/steady_bench.h"

#include <fmt/format.h>
#include <rocksdb/statistics.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "bench/harness/bench_store.h"
#include "bench/harness/load.h"
#include "bench/harness/report.h"
#include "bench/rows/ycsb_records.h"

namespace kvstore::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;

constexpr const char* kRecords = "kv_bench_steady";
constexpr const char* kSessions = "kv_bench_steady_sessions";
constexpr double kSliceSeconds = 60;

double SecondsSince(Clock::time_point begin) { return duration<double>(Clock::now() - begin).count(); }

SteadyLatencies Summary(const Histogram& histogram) {
  const auto us = [&](double share) { return static_cast<double>(histogram.Quantile(share)) / 1000; };
  return {us(0.5), us(0.99), us(0.999), static_cast<double>(histogram.max()) / 1000};
}

/// Measures how late the machine wakes a thread, which is a lower bound for the latency of any store.
class Sleeper {
 public:
  Sleeper() : thread_([this] { Run(); }) {}
  ~Sleeper() {
    stop_ = true;
    thread_.join();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  /// Returns by how much it was late at most since the last call of this function.
  double TakeOversleptMs() { return static_cast<double>(most_us_.exchange(0)) / 1000; }

 private:
  void Run() {
    while (!stop_) {
      const auto due = Clock::now() + std::chrono::milliseconds(1);
      std::this_thread::sleep_until(due);
      const int64_t late = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - due).count();
      int64_t was = most_us_.load();
      while (late > was && !most_us_.compare_exchange_weak(was, late)) continue;
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int64_t> most_us_{0};
  std::thread thread_;
};

/// Rows that expire.
class Sessions {
 public:
  Sessions(KVStore& store, int threads) : store_(store) {
    for (int t = 0; t < threads; ++t) randoms_.emplace_back(static_cast<uint64_t>(t) + 1000);
  }

  const char* Execute(int thread) {
    std::mt19937_64& random = randoms_[static_cast<size_t>(thread)];
    const uint64_t there = next_.load(std::memory_order_relaxed);
    if (there == 0 || random() % 2 == 0) {
      const CellWrite cell{"session", value_, std::nullopt};
      Check(store_.PutRow(kSessions, KeyOf(next_.fetch_add(1)), {&cell, 1}, {}).status());
      return "put_session";
    }
    const uint64_t back = random() % std::min(there, kRecent);
    Check(store_.GetRow(kSessions, KeyOf(there - 1 - back), {}).status());
    return "get_session";
  }

 private:
  static constexpr uint64_t kRecent = 100'000;

  static std::string KeyOf(uint64_t session) { return fmt::format("session{:020}", Scramble(session)); }

  KVStore& store_;
  const std::string value_ = std::string(200, 's');
  std::atomic<uint64_t> next_{0};
  std::vector<std::mt19937_64> randoms_;
};

/// Compacts all datasets at an interval, as an operator does with a timer.
class Operator {
 public:
  Operator(KVStore& store, uint64_t every_ms, Clock::time_point begin)
      : store_(store), every_(every_ms), begin_(begin), thread_([this] { Run(); }) {}
  ~Operator() { Stop(); }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  /// Waits until a compaction in progress has ended; returns all that were made.
  std::vector<SteadyCompaction> Stop() {
    {
      const MutexLock lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    return std::move(done_);
  }

 private:
  void Run() {
    for (int64_t i = 1;; ++i) {
      {
        MutexLock lock(mutex_);
        while (!stop_ && !lock.WaitUntil(wake_, begin_ + every_ * i)) continue;
        if (stop_) return;
      }
      SteadyCompaction compaction{.begin_s = SecondsSince(begin_)};
      for (const char* const dataset : {kRecords, kSessions}) {
        const auto result = store_.Compact(dataset, nullptr);
        Check(result.status());
        compaction.removed_cells += result->expired_cells + result->surplus_cells;
      }
      compaction.end_s = SecondsSince(begin_);
      done_.push_back(compaction);
    }
  }

  KVStore& store_;
  const std::chrono::milliseconds every_;
  const Clock::time_point begin_;
  Mutex mutex_;
  std::condition_variable wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<SteadyCompaction> done_;  // written by the thread, read when it has ended
  std::thread thread_;
};

class Steady {
 public:
  using Tell = std::function<void(const SteadyReport&, const std::string&)>;

  Steady(BenchStore& bench, const SteadyOptions& options, const Tell& tell)
      : bench_(bench),
        tell_(tell),
        records_(
            bench.store(),
            {.dataset = kRecords, .records = options.records, .threads = options.threads, .deletes = true}),
        sessions_(bench.store(), options.threads) {
    report_.options = options;
    for (int t = 0; t < options.threads; ++t) randoms_.emplace_back(static_cast<uint64_t>(t) + 2000);
    Report machine;
    DescribeMachine(machine);
    report_.cores = machine.cores;
    report_.cpu = machine.cpu;
  }

  SteadyReport Run() {
    const SteadyOptions& options = report_.options;
    Check(bench_.store().CreateDataset({.name = kRecords, .max_versions = 1}));
    Check(bench_.store().CreateDataset({.name = kSessions, .max_versions = 1, .ttl_ms = options.ttl_ms}));
    tell_(report_, fmt::format("writes {} records", options.records));
    const auto begin = Clock::now();
    records_.Load();
    report_.load_s = SecondsSince(begin);
    for (const char workload : options.workloads) RunWorkload(workload);
    return std::move(report_);
  }

 private:
  const char* Execute(char workload, int thread) {
    const uint64_t choice = randoms_[static_cast<size_t>(thread)]() % 100;
    const bool latest = workload == 'D';
    if (choice < 5) return sessions_.Execute(thread);
    // As many as are inserted: of the remaining calls of D, 5 % insert a record.
    if (latest && choice < 10) return records_.DeleteOldest(thread);
    if (!latest && choice < 7) return records_.Delete(thread);
    return records_.Execute(workload, thread);
  }

  void RunWorkload(char workload) {
    const SteadyOptions& options = report_.options;
    const Operation operation = [this, workload](int thread) { return Execute(workload, thread); };
    SteadyWorkload& result = report_.workloads.emplace_back();
    result.workload = workload;
    tell_(report_, fmt::format("workload {}: how many calls a second, without a rest", workload));
    const LoadOptions top{
        .threads = options.threads, .warm_up_s = options.top_s / 2, .seconds = options.top_s, .rounds = 1};
    result.top_s = RunLoad(top, operation).front().ops_s;
    result.rate = result.top_s * options.share;
    const double seconds = options.minutes * 60 / static_cast<double>(options.workloads.size());
    tell_(report_, fmt::format("workload {}: {:.0f} calls a second, now {:.0f} for {:.1f} minutes", workload,
                               result.top_s, result.rate, seconds / 60));
    stalls_ = StalledMicros();
    sleeper_.TakeOversleptMs();
    Operator compactions(bench_.store(), options.compact_ms, Clock::now());
    const LoadOptions load{.threads = options.threads, .rate = result.rate, .seconds = seconds};
    const auto slices = RunSlices(load, kSliceSeconds, operation, [&](size_t minute) {
      result.minutes.push_back(Sample());
      const SteadyMinute& now = result.minutes.back();
      tell_(report_, fmt::format("workload {}, minute {}: resident {} MiB, logs {} MiB, {} files, {} MiB",
                                 workload, minute + 1, now.resident_bytes >> 20, now.wal_bytes >> 20,
                                 now.files, now.disk_bytes >> 20));
    });
    result.compactions = compactions.Stop();
    std::map<std::string, Histogram> kinds;
    for (size_t i = 0; i < slices.size(); ++i) {
      Histogram all;
      for (const auto& [kind, histogram] : slices[i].load.latencies) {
        all.Merge(histogram);
        kinds[kind].Merge(histogram);
      }
      result.minutes[i].calls_s = slices[i].load.ops_s;
      result.minutes[i].us = Summary(all);
      result.minutes[i].pause_ms = slices[i].pause_ms;
      result.minutes[i].missed = slices[i].missed;
    }
    for (const auto& [kind, histogram] : kinds) {
      result.counts[kind] = histogram.count();
      result.kinds[kind] = Summary(histogram);
    }
    tell_(report_, fmt::format("workload {}: done", workload));
  }

  uint64_t StalledMicros() { return bench_.engine().statistics().getTickerCount(rocksdb::STALL_MICROS); }

  SteadyMinute Sample() {
    SteadyMinute sample{.overslept_ms = sleeper_.TakeOversleptMs(),
                        .resident_bytes = ResidentBytes(),
                        .wal_bytes = bench_.engine().Logs().bytes};
    std::error_code error;
    // Files that vanish meanwhile are not counted.
    for (const auto& file : std::filesystem::recursive_directory_iterator(bench_.path(), error)) {
      std::error_code gone;
      const auto size = file.is_regular_file(gone) ? file.file_size(gone) : 0;
      if (gone || !file.is_regular_file(gone)) continue;
      ++sample.files;
      sample.disk_bytes += size;
    }
    const uint64_t stalls = StalledMicros();
    sample.stalled_ms = (stalls - stalls_) / 1000;
    stalls_ = stalls;
    return sample;
  }

  BenchStore& bench_;
  const Tell& tell_;
  SteadyReport report_;
  YcsbRecords records_;
  Sessions sessions_;
  Sleeper sleeper_;
  std::vector<std::mt19937_64> randoms_;  // of each thread
  uint64_t stalls_ = 0;                   // until the last sample
};

}  // namespace

absl::StatusOr<SteadyReport> BenchSteady(
    const SteadyOptions& options,
    const std::function<void(const SteadyReport& report, const std::string& what)>& tell) {
  for (const char workload : options.workloads) {
    if (!YcsbRecords::IsWorkload(workload)) {
      return absl::InvalidArgumentError(fmt::format("workloads: '{}' is none of ABCDEF", workload));
    }
  }
  auto bench = BenchStore::Create(options.dir, options.cache_bytes);
  if (!bench.ok()) return bench.status();
  return Steady(**bench, options, tell).Run();
}

}  // namespace kvstore::bench
