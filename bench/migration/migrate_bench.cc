#include "bench/migration/migrate_bench.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "bench/harness/timeline.h"
#include "bench/migration/clients.h"
#include "bench/migration/migrate_raw.h"
#include "bench/migration/migrating_store.h"
#include "testing/history.h"

namespace kvstore::bench {
namespace {

using Clock = Timeline::Clock;
using std::chrono::milliseconds;
using testing::History;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Returns the ratio of puts a second by a few threads with capture to those without, measured in turn.
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
          // The value changes each time, because a server does nothing for a value that it has already.
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
    Check(endpoint->TransitionTo(epoch, EndpointState::kServing, true));
    const double on = rate();
    Check(endpoint->TransitionTo(epoch, EndpointState::kServing, false));
    ratios.push_back(on / off);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

PathResult Path(const std::string& name, double units, double ours_s, double raw_s) {
  return {.path = name, .ours_ops_s = units / ours_s, .raw_ops_s = units / raw_s, .ratio = raw_s / ours_s};
}

/// One run, which adds its measurements to the report.
class Run {
 public:
  Run(const MigrateBenchOptions& options, MigratingStore& store, Report& report)
      : options_(options), store_(store), report_(report), units_(static_cast<double>(options.cells)) {}

  /// Measures what the engines need alone, then the same by a migration, while nobody else uses the store.
  void MeasureCopies() {
    std::vector<RawCell> cells;
    const double rocks_scan = RawRocksScan(store_, cells);
    const double mysql_insert = RawMySqlInsert(store_, cells);
    const double mysql_scan = RawMySqlScan(store_, MigratingStore::kRawDataset);
    const double rocks_write = RawRocksWrite(store_, cells);
    Migrate("mysql", rocks_scan + mysql_insert, rocks_scan + mysql_scan);
    MeasureCapture("mysql", store_.mysql());
    Migrate("rocksdb", mysql_scan + rocks_write, rocks_scan + mysql_scan);
    MeasureCapture("rocksdb", store_.rocksdb());
  }

  /// Measures what clients notice of a migration there and back. Returns how many of their calls failed.
  uint64_t MeasureClients(History& history) {
    Clients load(store_.router(), MigratingStore::kDataset, timeline_, history, 4);
    store_.Say("four clients read, write and delete; the migration begins");
    timeline_.Mark("load");
    const auto loaded_at = Clock::now();
    Wait();
    const double p99_before = timeline_.Quantile(loaded_at, Clock::now(), 0.99);
    store_.RunCommand("create", {{"target", "mysql"}});
    const auto started_at = Clock::now();
    store_.RunCommand("start");
    Clock::time_point copied_at;
    store_.Await("ready", [&](const std::string& phase) {
      if (phase == "verify") copied_at = Clock::now();
      ReportPhase(phase);
    });
    const double p99_during = timeline_.Quantile(started_at, copied_at, 0.99);
    Figure("p99 without a migration, us", p99_before);
    Figure("p99 during the backfill, us", p99_during);
    Figure("p99 during / without", p99_during / p99_before);
    Wait();
    store_.Say("cutover");
    ChangeSides("cutover", "reversible", "mysql");
    Wait();
    store_.Say("and back");
    ChangeSides("reverse", "ready", "rocksdb");
    Wait();
    store_.RunCommand("cancel");
    store_.Await("aborted", [this](const std::string& phase) { ReportPhase(phase); });
    Wait();
    load.Stop();
    return load.errors();
  }

  absl::Status WritePicture() const {
    if (options_.svg.empty()) return absl::OkStatus();
    if (!timeline_.WriteSvg(
            options_.svg, fmt::format("{} cells move from RocksDB to two MariaDB hosts and back, under load",
                                      options_.cells))) {
      return absl::UnavailableError("cannot write " + options_.svg.string());
    }
    store_.Say("picture: " + options_.svg.string());
    return absl::OkStatus();
  }

 private:
  void Figure(const std::string& name, double value) { report_.figures.emplace_back(name, value); }
  void Wait() const { std::this_thread::sleep_for(std::chrono::duration<double>(options_.seconds)); }
  void ReportPhase(const std::string& phase) {
    timeline_.Mark(phase);
    store_.Say("   " + phase);
  }

  /// Migrates to a backend. raw_copy, raw_verify: seconds that the engines alone need for copying and
  /// verifying.
  void Migrate(const std::string& to, double raw_copy, double raw_verify) {
    store_.RunCommand("create", {{"target", to}, {"share", 100}});
    store_.RunCommand("start");
    store_.Await("backfill");
    Clock::time_point verify_at;
    const Json ready = store_.Await("ready", [&](const std::string& phase) {
      if (phase == "verify") verify_at = Clock::now();
    });
    const double verify = Since(verify_at);
    const double backfill = static_cast<double>(ready.value("units_done", uint64_t{0})) /
                            std::max(1.0, static_cast<double>(ready.value("units_per_s", uint64_t{1})));
    report_.results.push_back(Path("backfill_to_" + to, units_, backfill, raw_copy));
    report_.results.push_back(Path("verify_at_" + to, units_, verify, raw_verify));
    store_.Say(fmt::format(
        "to {}: copied in {:.2f} s, the engines alone {:.2f} s; compared in {:.2f} s, read alone in {:.2f} s",
        to, backfill, raw_copy, verify, raw_verify));
    store_.RunCommand("cutover");
    store_.Await("reversible");
    store_.RunCommand("finish");
    store_.Await("finished");
  }

  void MeasureCapture(const std::string& name, Backend& backend) {
    const DatasetSpec spec = Must(store_.router().GetDataset(MigratingStore::kDataset));
    Figure(fmt::format("writes kept while captured, {}, percent", name),
           100 * CaptureRatio(backend, spec, options_.seconds));
  }

  /// Gives the command by which the other side, `to`, serves, and waits for the phase after it.
  void ChangeSides(const std::string& command, const std::string& phase, const std::string& to) {
    const auto begin = Clock::now();
    store_.RunCommand(command);
    const Json status = store_.Await(phase, [this](const std::string& passed) { ReportPhase(passed); });
    std::this_thread::sleep_for(milliseconds(300));
    const double writes = timeline_.LongestMs(begin, Clock::now(), true);
    const double reads = timeline_.LongestMs(begin, Clock::now(), false);
    store_.Say(fmt::format(
        "   '{}' serves; writes were held for {} ms, reads for {} ms; the longest call of a client: write "
        "{:.0f} ms, read {:.0f} ms",
        to, status.value("write_pause_ms", 0), status.value("read_pause_ms", 0), writes, reads));
    Figure("write pause to " + to + ", ms", status.value("write_pause_ms", 0));
    Figure("read pause to " + to + ", ms", status.value("read_pause_ms", 0));
    Figure("longest write at the cutover to " + to + ", ms", writes);
    Figure("longest read at the cutover to " + to + ", ms", reads);
  }

  const MigrateBenchOptions& options_;
  MigratingStore& store_;
  Report& report_;
  const double units_;
  Timeline timeline_;
};

}  // namespace

absl::StatusOr<Report> BenchMigrate(const MigrateBenchOptions& options) {
  Report report{.workload = "migrate", .backend = "rocksdb, mysql"};
  DescribeMachine(report);
  report.settings.emplace_back("cells", options.cells);
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::warn);
  MigratingStore store(options);
  store.Say(fmt::format("loading {} cells of 100 bytes into the embedded store", options.cells));
  store.Load();
  Run run(options, store, report);
  if (options.raw) run.MeasureCopies();
  History history(Clients::kKeys, 4'000'000);
  const uint64_t errors = run.MeasureClients(history);
  const auto problem = history.Check();
  store.Say(problem
                ? "the history of the clients has no explanation: " + *problem
                : fmt::format("the history of {} calls is linearizable: nothing lost, nothing resurrected",
                              history.size()));
  report.figures.emplace_back("calls of clients", static_cast<double>(history.size()));
  report.figures.emplace_back("calls that failed", static_cast<double>(errors));
  if (auto status = run.WritePicture(); !status.ok()) return status;
  spdlog::set_level(level);
  if (problem) return absl::DataLossError("the clients' history: " + *problem);
  return report;
}

}  // namespace kvstore::bench
