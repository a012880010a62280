#include "bench/migrate_bench.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "bench/clients.h"
#include "bench/history.h"
#include "bench/migrate_raw.h"
#include "bench/moving_store.h"
#include "bench/timeline.h"

namespace kvstore::bench {
namespace {

using Clock = Timeline::Clock;
using std::chrono::milliseconds;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Puts a second by a few threads, with and without capture, by turns: the ratio.
double CaptureRatio(Backend& backend, const DatasetSpec& spec, double seconds) {
  const auto rows = Must(backend.OpenRows(spec));
  const auto endpoint = Must(backend.OpenForMigration(spec));
  uint64_t epoch = 1'000'000'000'000'000;
  uint64_t next = 0;
  const auto rate = [&] {
    std::atomic<uint64_t> done{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, first = next + static_cast<uint64_t>(t)] {
        for (uint64_t i = first; !stop; i += 4) {
          // A server does nothing for a value that is there already.
          const std::string value = fmt::format("{:0100}", i);
          const CellWrite cell{"c0", value, 2};
          Check(rows->Put(RowOf(i * 7919 % 20'000), {&cell, 1}, {}).status());
          ++done;
        }
      });
    }
    const auto begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 3));
    stop = true;
    for (std::thread& thread : threads) thread.join();
    next += done;
    return static_cast<double>(done) / Since(begin);
  };
  std::vector<double> ratios;
  for (int round = 0; round < 5; ++round) {
    const double off = rate();
    Check(endpoint->RaiseEpoch(++epoch));
    Check(endpoint->Enter(epoch, EndpointState::kServing, true));
    const double on = rate();
    Check(endpoint->Enter(epoch, EndpointState::kServing, false));
    ratios.push_back(on / off);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

PathResult Path(const std::string& name, double units, double ours_s, double raw_s) {
  return {.path = name, .ours_ops_s = units / ours_s, .raw_ops_s = units / raw_s, .ratio = raw_s / ours_s};
}

}  // namespace

absl::StatusOr<Report> BenchMigrate(const MigrateBenchOptions& options) {
  Report report{.workload = "migrate", .backend = "rocksdb, mysql"};
  DescribeMachine(report);
  report.settings.emplace_back("cells", options.cells);
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::warn);
  MovingStore store(options);
  store.Say(fmt::format("loading {} cells of 100 bytes into the embedded store", options.cells));
  store.Load();
  const auto units = static_cast<double>(options.cells);

  if (options.raw) {
    // What the engines need alone, then the same by a migration, with nobody else at the store.
    std::vector<RawCell> cells;
    const double rocks_scan = RawRocksScan(store, cells);
    const double mysql_insert = RawMySqlInsert(store, cells);
    const double mysql_scan = RawMySqlScan(store, MovingStore::kRawDataset);
    const double rocks_write = RawRocksWrite(store, cells);
    const auto move = [&](const std::string& to, double raw_copy) {
      store.Do("create", {{"target", to}, {"share", 100}});
      store.Do("start");
      store.Await("backfill");
      Clock::time_point verify_at;
      const Json ready = store.Await("ready", [&](const std::string& phase) {
        if (phase == "verify") verify_at = Clock::now();
      });
      const double verify = Since(verify_at);
      const double backfill = static_cast<double>(ready.value("units_done", uint64_t{0})) /
                              std::max(1.0, static_cast<double>(ready.value("units_per_s", uint64_t{1})));
      report.results.push_back(Path("backfill_to_" + to, units, backfill, raw_copy));
      report.results.push_back(Path("verify_at_" + to, units, verify, rocks_scan + mysql_scan));
      store.Say(
          fmt::format("to {}: copied in {:.2f} s, the engines alone {:.2f} s; compared in {:.2f} s, read "
                      "alone in {:.2f} s",
                      to, backfill, raw_copy, verify, rocks_scan + mysql_scan));
      store.Do("cutover");
      store.Await("reversible");
      store.Do("finish");
      store.Await("finished");
    };
    move("mysql", rocks_scan + mysql_insert);
    report.figures.emplace_back(
        "writes kept while captured, mysql, percent",
        100 * CaptureRatio(store.mysql(), Must(store.router().GetDataset(MovingStore::kDataset)),
                           options.seconds));
    move("rocksdb", mysql_scan + rocks_write);
    report.figures.emplace_back(
        "writes kept while captured, rocksdb, percent",
        100 * CaptureRatio(store.rocksdb(), Must(store.router().GetDataset(MovingStore::kDataset)),
                           options.seconds));
  }

  // What clients see.
  Timeline timeline;
  History history(Clients::kKeys, 4'000'000);
  const auto wait = [&] { std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds)); };
  uint64_t errors = 0;
  {
    Clients load(store.router(), MovingStore::kDataset, timeline, history, 4);
    store.Say("four clients read, write and delete; the migration begins");
    timeline.Mark("load");
    const auto loaded_at = Clock::now();
    wait();
    const double p99_before = timeline.Quantile(loaded_at, Clock::now(), 0.99);
    const auto tell = [&](const std::string& phase) {
      timeline.Mark(phase);
      store.Say("   " + phase);
    };
    store.Do("create", {{"target", "mysql"}});
    const auto started_at = Clock::now();
    store.Do("start");
    Clock::time_point copied_at;
    store.Await("ready", [&](const std::string& phase) {
      if (phase == "verify") copied_at = Clock::now();
      tell(phase);
    });
    const double p99_during = timeline.Quantile(started_at, copied_at, 0.99);
    report.figures.emplace_back("p99 without a migration, us", p99_before);
    report.figures.emplace_back("p99 during the backfill, us", p99_during);
    report.figures.emplace_back("p99 during / without", p99_during / p99_before);
    wait();
    const auto cut = [&](const std::string& command, const std::string& phase, const std::string& to) {
      const auto begin = Clock::now();
      store.Do(command);
      const Json status = store.Await(phase, tell);
      std::this_thread::sleep_for(milliseconds(300));
      const double writes = timeline.LongestMs(begin, Clock::now(), true);
      const double reads = timeline.LongestMs(begin, Clock::now(), false);
      store.Say(fmt::format(
          "   '{}' serves; writes were held for {} ms, reads for {} ms; the longest call of a client: "
          "write {:.0f} ms, read {:.0f} ms",
          to, status.value("write_pause_ms", 0), status.value("read_pause_ms", 0), writes, reads));
      report.figures.emplace_back("write pause to " + to + ", ms", status.value("write_pause_ms", 0));
      report.figures.emplace_back("read pause to " + to + ", ms", status.value("read_pause_ms", 0));
      report.figures.emplace_back("longest write at the cutover to " + to + ", ms", writes);
      report.figures.emplace_back("longest read at the cutover to " + to + ", ms", reads);
    };
    store.Say("cutover");
    cut("cutover", "reversible", "mysql");
    wait();
    store.Say("and back");
    cut("reverse", "ready", "rocksdb");
    wait();
    store.Do("cancel");
    store.Await("aborted", tell);
    wait();
    load.Stop();
    errors = load.errors();
  }
  const auto problem = history.Check();
  store.Say(problem
                ? "the history of the clients has no explanation: " + *problem
                : fmt::format("the history of {} calls is linearizable: nothing lost, nothing resurrected",
                              history.size()));
  report.figures.emplace_back("calls of clients", static_cast<double>(history.size()));
  report.figures.emplace_back("calls that failed", static_cast<double>(errors));
  if (!options.svg.empty()) {
    if (!timeline.WriteSvg(options.svg,
                           fmt::format("{} cells move from RocksDB to two MariaDB hosts and back, under load",
                                       options.cells))) {
      return absl::UnavailableError("cannot write " + options.svg.string());
    }
    store.Say("picture: " + options.svg.string());
  }
  spdlog::set_level(level);
  if (problem) return absl::DataLossError("the clients' history: " + *problem);
  return report;
}

}  // namespace kvstore::bench
