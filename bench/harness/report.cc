#include "bench/harness/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

namespace kvstore::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// One side of a comparison; its numbering of operations continues from round to round. Several threads are
/// started anew in each round, because the cores on which the system runs them are chance, which must not
/// last.
class Side {
 public:
  Side(const Work& work, uint64_t threads)
      : work_(work), next_(threads), rates_(threads), latencies_us_(threads) {
    std::iota(next_.begin(), next_.end(), 0);
  }

  /// Returns units a second.
  double Run(double seconds, std::vector<double>* latencies_us) {
    if (next_.size() == 1) {
      RunThread(0, seconds);
    } else {
      std::vector<std::thread> threads;
      for (size_t t = 0; t < next_.size(); ++t)
        threads.emplace_back([this, t, seconds] { RunThread(t, seconds); });
      for (std::thread& thread : threads) thread.join();
    }
    for (auto& mine : latencies_us_) {
      if (latencies_us != nullptr) latencies_us->insert(latencies_us->end(), mine.begin(), mine.end());
      mine.clear();
    }
    return std::accumulate(rates_.begin(), rates_.end(), 0.0);
  }

 private:
  void RunThread(size_t thread, double seconds) {
    uint64_t units = 0;
    const auto begin = Clock::now();
    auto before = begin;
    double elapsed = 0;
    do {
      units += work_(next_[thread]);
      next_[thread] += next_.size();
      const auto now = Clock::now();
      latencies_us_[thread].push_back(Seconds(now - before) * 1e6);
      before = now;
      elapsed = Seconds(now - begin);
    } while (elapsed < seconds);
    rates_[thread] = static_cast<double>(units) / elapsed;
  }

  const Work& work_;
  // One for each thread:
  std::vector<uint64_t> next_;
  std::vector<double> rates_;
  std::vector<std::vector<double>> latencies_us_;
};

struct Turns {
  std::vector<double> first, second, ratios;
  std::vector<double> latencies_us;  // of the first thread
};

Turns TakeTurns(const Rounds& rounds, const Work& first, const Work& second) {
  Turns turns;
  Side a(first, rounds.threads);
  Side b(second, rounds.threads);
  a.Run(rounds.seconds / 4, nullptr);  // warm up
  if (second) b.Run(rounds.seconds / 4, nullptr);
  for (int round = 0; round < rounds.rounds; ++round) {
    double slower_second = 0;
    const bool second_begins = round % 2 == 1;
    if (second && second_begins) slower_second = b.Run(rounds.seconds, nullptr);
    turns.first.push_back(a.Run(rounds.seconds, &turns.latencies_us));
    if (!second) continue;
    if (!second_begins) slower_second = b.Run(rounds.seconds, nullptr);
    turns.second.push_back(slower_second);
    turns.ratios.push_back(turns.first.back() / turns.second.back());
  }
  return turns;
}

}  // namespace

PathResult Compare(const std::string& path, const Rounds& rounds, const Work& ours, const Work& raw) {
  Turns turns = TakeTurns(rounds, ours, raw);
  return {path,
          Median(turns.first),
          Median(turns.second),
          Median(turns.ratios),
          Percentile(turns.latencies_us, 0.50),
          Percentile(turns.latencies_us, 0.99)};
}

GrowthResult CompareGrowth(const std::string& path, const Rounds& rounds, const Work& small,
                           const Work& large) {
  const Turns turns = TakeTurns(rounds, small, large);
  return {path, 1e6 / Median(turns.first), 1e6 / Median(turns.second), Median(turns.ratios)};
}

bool Wanted(const std::vector<std::string>& paths, const std::string& path) {
  return paths.empty() || std::find(paths.begin(), paths.end(), path) != paths.end();
}

absl::Status CheckPaths(const std::vector<std::string>& paths, const Report& report) {
  for (const std::string& path : paths) {
    const auto named = [&](const PathResult& result) { return result.path == path; };
    if (std::none_of(report.results.begin(), report.results.end(), named)) {
      return absl::InvalidArgumentError(fmt::format("paths: {} has none named '{}'", report.workload, path));
    }
  }
  return absl::OkStatus();
}

uint64_t ResidentBytes(const std::string& process) {
  std::ifstream statm("/proc/" + process + "/statm");
  uint64_t pages = 0;
  uint64_t resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

void DescribeMachine(Report& report) {
  report.cores = std::thread::hardware_concurrency();
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) {
      report.cpu = line.substr(line.find(':') + 2);
      return;
    }
  }
}

Json ToJson(const Report& report) {
  Json results = Json::array();
  for (const PathResult& result : report.results) {
    Json one = {{"path", result.path},
                {"ours_ops_s", result.ours_ops_s},
                {"p50_us", result.p50_us},
                {"p99_us", result.p99_us}};
    if (result.raw_ops_s > 0) {
      one["raw_ops_s"] = result.raw_ops_s;
      one["ratio"] = result.ratio;
    }
    if (result.units > 0) one["units"] = result.units;
    results.push_back(std::move(one));
  }
  Json settings = Json::object();
  for (const auto& [name, value] : report.settings) settings[name] = value;
  Json json = {{"workload", report.workload},
               {"backend", report.backend},
               {"settings", std::move(settings)},
               {"machine", {{"cores", report.cores}, {"model", report.cpu}}},
               {"results", std::move(results)}};
  for (const GrowthResult& growth : report.growth) {
    json["growth"].push_back({{"path", growth.path},
                              {"small_us", growth.small_us},
                              {"large_us", growth.large_us},
                              {"factor", growth.factor}});
  }
  for (const auto& [name, value] : report.figures) json["figures"][name] = value;
  if (report.paged_read_rss_bytes > 0) json["paged_read_rss_bytes"] = report.paged_read_rss_bytes;
  return json;
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "benchmark: {}\n", status.ToString());
  std::abort();
}

}  // namespace kvstore::bench
