#include "bench/harness/load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/mutex.h"
#include "bench/harness/distribution.h"

namespace kvstore::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::nanoseconds;

/// The times at which calls are due that arrive independently of each other at a given rate: a Poisson
/// process.
class Arrivals {
 public:
  Arrivals(double rate, Clock::time_point begin, uint64_t seed) : rate_(rate), due_(begin), random_(seed) {}

  Clock::time_point Next() {
    due_ += duration_cast<Clock::duration>(duration<double>(-std::log1p(-Uniform(random_)) / rate_));
    return due_;
  }

 private:
  const double rate_;
  Clock::time_point due_;
  std::mt19937_64 random_;
};

/// One thread's part of a round.
LoadRound RunThread(const LoadOptions& options, const Operation& operation, int thread,
                    Clock::time_point begin, Clock::time_point end) {
  LoadRound round;
  uint64_t calls = 0;
  Arrivals arrivals(options.rate / options.threads, begin, static_cast<uint64_t>(thread) + 1);
  // The names are constants: comparing their addresses is enough, and costs nothing compared with a call.
  std::map<const char*, Histogram> latencies;
  auto last = begin;
  for (;;) {
    Clock::time_point due = last;
    if (options.rate > 0) {
      due = arrivals.Next();
      if (due >= end) break;
      std::this_thread::sleep_until(due);
    }
    const char* const kind = operation(thread);
    last = Clock::now();
    latencies[kind].Add(static_cast<uint64_t>(duration_cast<nanoseconds>(last - due).count()));
    ++calls;
    if (last >= end && options.rate == 0) break;
  }
  for (const auto& [kind, histogram] : latencies) round.latencies[kind].Merge(histogram);
  round.ops_s = static_cast<double>(calls) / duration<double>(std::max(last, end) - begin).count();
  return round;
}

LoadRound RunRound(const LoadOptions& options, const Operation& operation, double seconds) {
  const auto begin = Clock::now();
  const auto end = begin + duration_cast<Clock::duration>(duration<double>(seconds));
  std::vector<LoadRound> parts(static_cast<size_t>(options.threads));
  std::vector<std::thread> threads;
  for (int t = 0; t < options.threads; ++t) {
    threads.emplace_back(
        [&, t] { parts[static_cast<size_t>(t)] = RunThread(options, operation, t, begin, end); });
  }
  for (std::thread& thread : threads) thread.join();
  LoadRound all;
  for (const LoadRound& part : parts) {
    all.ops_s += part.ops_s;
    for (const auto& [kind, histogram] : part.latencies) all.latencies[kind].Merge(histogram);
  }
  return all;
}

/// The state that the threads of RunSlices share.
class Slices {
 public:
  Slices(Clock::time_point begin, double slice_s, size_t count)
      : begin_(begin),
        slice_s_(slice_s),
        count_(count),
        slices_(count),
        pauses_ns_(new std::atomic<int64_t>[count]) {
    for (size_t i = 0; i < count; ++i) pauses_ns_[i] = 0;
  }

  size_t At(Clock::time_point when) const {
    const double slice = duration<double>(when - begin_).count() / slice_s_;
    return std::min(static_cast<size_t>(std::max(slice, 0.0)), count_ - 1);
  }

  void Answered(Clock::time_point now) {
    const int64_t at = duration_cast<nanoseconds>(now - begin_).count();
    const int64_t pause = at - last_answer_.exchange(at, std::memory_order_relaxed);
    std::atomic<int64_t>& longest = pauses_ns_[At(now)];
    int64_t was = longest.load(std::memory_order_relaxed);
    while (pause > was && !longest.compare_exchange_weak(was, pause)) continue;
  }

  void Add(size_t slice, const std::map<const char*, Histogram>& latencies) {
    const MutexLock lock(mutex_);
    for (const auto& [kind, histogram] : latencies) slices_[slice].load.latencies[kind].Merge(histogram);
  }

  void Miss(Clock::time_point due) {
    const MutexLock lock(mutex_);
    ++slices_[At(due)].missed;
  }

  /// Returns the slices when all threads have ended.
  ///
  /// seconds  length of the whole run.
  std::vector<LoadSlice> Finish(double seconds) {
    const MutexLock lock(mutex_);
    for (size_t i = 0; i < slices_.size(); ++i) {
      uint64_t calls = 0;
      for (const auto& [kind, histogram] : slices_[i].load.latencies) calls += histogram.count();
      const double length = std::min(slice_s_, seconds - static_cast<double>(i) * slice_s_);
      slices_[i].load.ops_s = static_cast<double>(calls) / length;
      slices_[i].pause_ms = static_cast<double>(pauses_ns_[i]) / 1e6;
    }
    return std::move(slices_);
  }

 private:
  const Clock::time_point begin_;
  const double slice_s_;
  const size_t count_;
  Mutex mutex_;
  std::vector<LoadSlice> slices_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<std::atomic<int64_t>[]> pauses_ns_;
  std::atomic<int64_t> last_answer_{0};
};

/// After the end of a run, calls that were due are still made for this long. Without a limit the benchmark
/// would wait for ever for a store that cannot keep up.
constexpr std::chrono::seconds kMostBehind{30};

/// One thread's part of RunSlices.
void RunThreadOfSlices(const LoadOptions& options, const Operation& operation, int thread,
                       Clock::time_point begin, Clock::time_point end, Slices& slices) {
  Arrivals arrivals(options.rate / options.threads, begin, static_cast<uint64_t>(thread) + 1);
  std::map<const char*, Histogram> latencies;
  size_t slice = 0;
  for (;;) {
    const Clock::time_point due = arrivals.Next();
    if (due >= end) break;
    if (const size_t now = slices.At(due); now != slice) {
      slices.Add(slice, latencies);
      latencies.clear();
      slice = now;
    }
    std::this_thread::sleep_until(due);
    if (Clock::now() > end + kMostBehind) {
      slices.Miss(due);
      continue;
    }
    const char* const kind = operation(thread);
    const Clock::time_point answered = Clock::now();
    latencies[kind].Add(static_cast<uint64_t>(duration_cast<nanoseconds>(answered - due).count()));
    slices.Answered(answered);
  }
  slices.Add(slice, latencies);
}

}  // namespace

std::vector<LoadSlice> RunSlices(const LoadOptions& options, double slice_s, const Operation& operation,
                                 const std::function<void(size_t slice)>& at_end) {
  const auto begin = Clock::now();
  const auto after = [begin](double seconds) {
    return begin + duration_cast<Clock::duration>(duration<double>(seconds));
  };
  const auto end = after(options.seconds);
  const auto count = std::max<size_t>(static_cast<size_t>(std::ceil(options.seconds / slice_s)), 1);
  Slices slices(begin, slice_s, count);
  std::vector<std::thread> threads;
  for (int t = 0; t < options.threads; ++t) {
    threads.emplace_back([&, t] { RunThreadOfSlices(options, operation, t, begin, end, slices); });
  }
  for (size_t slice = 0; slice < count; ++slice) {
    std::this_thread::sleep_until(std::min(after(static_cast<double>(slice + 1) * slice_s), end));
    at_end(slice);
  }
  for (std::thread& thread : threads) thread.join();
  return slices.Finish(options.seconds);
}

std::vector<LoadRound> RunLoad(const LoadOptions& options, const Operation& operation) {
  return RunByTurns(options, {&operation, 1}).front();
}

std::vector<std::vector<LoadRound>> RunByTurns(const LoadOptions& options,
                                               std::span<const Operation> operations) {
  std::vector<std::vector<LoadRound>> all(operations.size());
  if (options.warm_up_s > 0) {
    for (const Operation& operation : operations) RunRound(options, operation, options.warm_up_s);
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < operations.size(); ++i) {
      // The loads take turns at beginning a round.
      const size_t side = (i + static_cast<size_t>(round)) % operations.size();
      all[side].push_back(RunRound(options, operations[side], options.seconds));
    }
  }
  return all;
}

double Ratio(std::span<const LoadRound> ours, std::span<const LoadRound> others) {
  std::vector<double> ratios;
  for (size_t round = 0; round < ours.size(); ++round)
    ratios.push_back(ours[round].ops_s / others[round].ops_s);
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

Json ToJson(const std::vector<LoadRound>& rounds) {
  std::vector<double> rates;
  std::map<std::string, Histogram> latencies;
  for (const LoadRound& round : rounds) {
    rates.push_back(round.ops_s);
    for (const auto& [kind, histogram] : round.latencies) latencies[kind].Merge(histogram);
  }
  std::sort(rates.begin(), rates.end());
  Json kinds = Json::object();
  const auto us = [](double nanoseconds) { return nanoseconds / 1000; };
  for (const auto& [kind, histogram] : latencies) {
    const auto quantile = [&us, &histogram = histogram](double share) {
      return us(static_cast<double>(histogram.Quantile(share)));
    };
    kinds[kind] = {{"count", histogram.count()},
                   {"mean_us", us(histogram.mean())},
                   {"p50_us", quantile(0.5)},
                   {"p90_us", quantile(0.9)},
                   {"p99_us", quantile(0.99)},
                   {"p99_9_us", quantile(0.999)},
                   {"max_us", us(static_cast<double>(histogram.max()))}};
  }
  return {{"ops_s_min", rates.front()},
          {"ops_s", rates[rates.size() / 2]},
          {"ops_s_max", rates.back()},
          {"operations", std::move(kinds)}};
}

}  // namespace kvstore::bench
