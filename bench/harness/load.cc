#include "bench/load.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "bench/distribution.h"

namespace kvstore::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::nanoseconds;

/// When calls are due that arrive independently of each other, so many a second: a Poisson process.
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
  // The names are constants: comparing where they are is enough, and costs nothing beside a call.
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

}  // namespace

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
      // Each begins now and then.
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
