#include "bench/migrate_bench.h"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "backends/rocksdb/backend.h"
#include "backends/rocksdb/data_dir.h"
#include "bench/history.h"
#include "bench/timeline.h"
#include "kvstore_api/file_catalog.h"
#include "kvstore_api/in_doubt.h"
#include "kvstore_api/unit_key.h"
#include "migration/migrator.h"
#include "registry/mysql_backend.h"
#include "shardmap/mod_shard.h"

namespace kvstore::bench {
namespace {

using Clock = Timeline::Clock;
using mysql::Space;
using mysql::Sql;
using std::chrono::milliseconds;

constexpr char kDataset[] = "kv_bench_moved";
constexpr char kRawDataset[] = "kv_bench_raw";
constexpr uint64_t kColumns = 10;
constexpr size_t kTogether = 128;
/// Keys that the clients write, and whose history is checked.
constexpr uint32_t kKeys = 4000;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string RowOf(uint64_t i) { return fmt::format("user:{:09}", i); }

template <typename T>
T Must(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

/// A store with both backends, in a directory of its own.
class Bench {
 public:
  explicit Bench(const MigrateBenchOptions& options) : options_(options) {
    std::string name = (std::filesystem::temp_directory_path() / "kv-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) Check(absl::UnavailableError("no directory can be made"));
    dir_ = name;
    auto data = Must(rocks::DataDir::Open(dir_, /*create=*/true));
    auto catalog = std::make_unique<FileCatalog>(data.catalog());
    auto rocksdb = Must(RocksDbBackend::Open(std::move(data), {}, {}, {.cache_bytes = size_t{1} << 30}));
    auto mysql = Must(OpenMySqlBackend(options.fleet, ""));
    rocksdb_ = rocksdb.get();
    mysql_ = mysql.get();
    Router::Backends backends;
    backends.emplace("rocksdb", std::move(rocksdb));
    backends.emplace("mysql", std::move(mysql));
    router_ = Must(Router::Open(std::move(catalog), {}, std::move(backends), "rocksdb"));
    // What a run before left that did not come to its end.
    DropOnServers(kDataset);
    DropOnServers(kRawDataset);
    migrator_ = std::make_unique<Migrator>(*router_, "");
  }
  ~Bench() {
    migrator_.reset();
    DropOnServers(kDataset);
    DropOnServers(kRawDataset);
    router_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Router& router() { return *router_; }
  RocksDbBackend& rocksdb() { return *rocksdb_; }
  MySqlBackend& mysql() { return *mysql_; }
  uint64_t cells() const { return options_.cells; }
  const MySqlFleet& fleet() const { return options_.fleet; }

  void Say(const std::string& text) const {
    if (!options_.tell) return;
    fmt::print("{}\n", text);
    std::fflush(stdout);
  }

  void Load() {
    Check(router_->CreateDataset({.name = kDataset}));
    const std::string value(100, 'v');
    std::vector<std::string> names;
    for (uint64_t c = 0; c < kColumns; ++c) names.push_back(fmt::format("c{}", c));
    for (uint64_t row = 0; row < cells() / kColumns;) {
      std::vector<std::string> keys;
      for (; keys.size() < 1000 && row < cells() / kColumns; ++row) keys.push_back(RowOf(row));
      std::vector<CellWrite> columns;
      for (const std::string& name : names) columns.push_back({name, value, 1});
      std::vector<RowWrite> writes;
      for (const std::string& key : keys) writes.push_back({key, columns, {}});
      for (const auto& result : Must(router_->PutRows(kDataset, writes))) Check(result.status());
    }
  }

  Json Do(const std::string& command, Json options = Json::object()) {
    options["command"] = command;
    options["dataset"] = kDataset;
    options["who"] = "kv bench";
    return Must(migrator_->Command(Json::parse(options.dump())));
  }
  /// Waits for a phase; `on_change` hears of each that comes.
  Json Await(const std::string& phase, const std::function<void(const std::string&)>& on_change = nullptr) {
    std::string last;
    for (;;) {
      Json status = Do("status");
      const std::string now = status.value("phase", "");
      if (now != last && on_change) on_change(now);
      last = now;
      if (now == phase) return status;
      const std::string problem = status.value("problem", "");
      if (!problem.empty() && problem != told_) Say("   problem: " + problem);
      told_ = problem;
      std::this_thread::sleep_for(milliseconds(2));
    }
  }

 private:
  void DropOnServers(const std::string& name) {
    const auto drop = [&](const std::string& table) {
      DatasetSpec spec{.name = table};
      mysql_->DropDataset(spec).IgnoreError();
    };
    for (const char* suffix : {"", "$away", "$dirty", "$state"}) drop(name + suffix);
  }

  const MigrateBenchOptions options_;
  std::filesystem::path dir_;
  RocksDbBackend* rocksdb_ = nullptr;
  MySqlBackend* mysql_ = nullptr;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Migrator> migrator_;
  std::string told_;
};

// ---- the engines alone ----

struct RawCell {
  std::string row;
  std::string column;
  std::string value;
};

/// Seconds to read all cells of the embedded store, which are kept.
double RawRocksScan(Bench& bench, std::vector<RawCell>& cells) {
  const auto begin = Clock::now();
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  const auto family = bench.rocksdb().engine().FindFamily(kDataset);
  const std::unique_ptr<rocksdb::Iterator> it(
      bench.rocksdb().engine().db().NewIterator(options, family->handle));
  std::vector<std::pair<std::string, std::string>> read;
  read.reserve(bench.cells());
  for (it->SeekToFirst(); it->Valid(); it->Next())
    read.emplace_back(it->key().ToString(), it->value().ToString());
  const double seconds = Since(begin);
  for (auto& [key, value] : read) {
    auto unit = *ParseRowUnitKey(std::string_view(key).substr(0, key.size() - 8));
    cells.push_back({std::move(unit.row), *std::move(unit.column), std::move(value)});
  }
  return seconds;
}

/// Runs work for each host's shards in a thread of its own, with a connection.
double OnHosts(Bench& bench, const std::function<void(RawConnection&, const std::vector<uint32_t>&)>& work) {
  std::map<Host, std::vector<uint32_t>> shards;
  for (const ShardRange& range : bench.mysql().fleet().map(Space::kMod).ranges()) {
    for (uint32_t shard = range.first; shard <= range.last; ++shard) shards[range.master].push_back(shard);
  }
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (const auto& [host, unused] : shards) {
    connections.push_back(std::make_unique<RawConnection>(host, bench.fleet()));
  }
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  size_t i = 0;
  for (const auto& [host, mine] : shards) {
    threads.emplace_back(
        [&, connection = connections[i++].get(), list = &mine] { work(*connection, *list); });
  }
  for (std::thread& thread : threads) thread.join();
  return Since(begin);
}

/// Seconds to insert all cells by statements of many rows.
double RawMySqlInsert(Bench& bench, const std::vector<RawCell>& cells) {
  const DatasetSpec spec{.name = kRawDataset, .backend = "mysql", .incarnation = 1};
  Check(bench.mysql().CreateDataset(spec));
  const uint32_t shards = bench.mysql().fleet().mod_shards();
  std::map<uint32_t, std::vector<const RawCell*>> by_shard;
  for (const RawCell& cell : cells) by_shard[ModShard(cell.row, shards)].push_back(&cell);
  return OnHosts(bench, [&](RawConnection& connection, const std::vector<uint32_t>& mine) {
    for (const uint32_t shard : mine) {
      const auto& list = by_shard[shard];
      for (size_t at = 0; at < list.size();) {
        connection.Run("START TRANSACTION");
        for (int batch = 0; batch < 8 && at < list.size(); ++batch) {
          const size_t count = list.size() - at >= kTogether ? kTogether : 1;
          sql::PreparedStatement& statement =
              connection.Prepare(Sql::kPutCells, Space::kMod, kRawDataset, shard, count);
          uint32_t bound = 0;
          for (size_t i = 0; i < count; ++i, ++at) {
            statement.setString(++bound, list[at]->row);
            statement.setString(++bound, list[at]->column);
            statement.setUInt64(++bound, 1);
            statement.setString(++bound, list[at]->value);
          }
          statement.executeUpdate();
        }
        connection.Run("COMMIT");
      }
    }
  });
}

/// Seconds to read all cells of a dataset on the servers.
double RawMySqlScan(Bench& bench, const char* dataset) {
  return OnHosts(bench, [&](RawConnection& connection, const std::vector<uint32_t>& mine) {
    for (const uint32_t shard : mine) {
      std::string row;
      for (;;) {
        sql::PreparedStatement& statement =
            connection.Prepare(Sql::kScanCells, Space::kMod, dataset, shard, 0);
        statement.setString(1, row);
        statement.setUInt64(2, 0);
        statement.setUInt64(3, 5000);
        const std::unique_ptr<sql::ResultSet> rows(statement.executeQuery());
        uint64_t count = 0;
        std::string value;
        for (; rows->next(); ++count) {
          row = rows->getString(1);
          value = rows->getString(5);
        }
        if (count < 5000) break;
      }
    }
  });
}

double RawRocksWrite(Bench& bench, const std::vector<RawCell>& cells) {
  Check(bench.router().CreateDataset({.name = kRawDataset, .backend = "rocksdb"}));
  const auto family = bench.rocksdb().engine().FindFamily(kRawDataset);
  const auto begin = Clock::now();
  for (size_t at = 0; at < cells.size();) {
    rocksdb::WriteBatch batch;
    for (size_t i = 0; i < 1000 && at < cells.size(); ++i, ++at) {
      std::string key = RowUnitKey(cells[at].row, cells[at].column) + std::string(8, '\xff');
      batch.Put(family->handle, key, cells[at].value);
    }
    bench.rocksdb().engine().db().Write({}, &batch);
  }
  const double seconds = Since(begin);
  Check(bench.router().DropDataset(kRawDataset, {}));
  return seconds;
}

// ---- clients ----

/// Threads that put, delete and read, at a pace that leaves the machine to others too, and remember what they
/// were told.
class Load {
 public:
  Load(Router& router, Timeline& timeline, History& history, int threads)
      : router_(router), timeline_(timeline), history_(history) {
    for (int t = 0; t < threads; ++t) threads_.emplace_back([this, t] { Run(static_cast<uint64_t>(t)); });
  }
  ~Load() { Stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  uint64_t errors() const { return errors_; }

 private:
  void Run(uint64_t seed) {
    std::mt19937_64 random(seed + 1);
    while (!stop_ && !history_.full()) {
      const auto key = static_cast<uint32_t>(random() % kKeys);
      const std::string row = "hot:" + std::to_string(key);
      // Half of them only read: those are not held with writes.
      const uint64_t choice = seed % 2 == 0 ? 0 : random() % 10;
      const auto kind = choice < 5   ? History::Kind::kRead
                        : choice < 9 ? History::Kind::kWrite
                                     : History::Kind::kDelete;
      const uint64_t value = kind == History::Kind::kWrite ? history_.NewValue() : History::kNone;
      const auto begin = Clock::now();
      const size_t operation = history_.Begin(key, kind, value);
      absl::Status status;
      uint64_t found = History::kNone;
      if (kind == History::Kind::kRead) {
        const auto read = router_.GetRow(kDataset, row, {});
        status = read.status();
        if (read.ok() && !read->items.empty()) {
          const std::string& text = read->items[0].cells[0].value;
          std::from_chars(text.data(), text.data() + text.size(), found);
        }
      } else if (kind == History::Kind::kWrite) {
        const std::string text = std::to_string(value);
        const CellWrite cell{"c", text, std::nullopt};
        status = router_.PutRow(kDataset, row, {&cell, 1}, {}).status();
      } else {
        status = router_.DeleteRow(kDataset, row, {});
      }
      if (status.ok()) {
        history_.End(operation, found);
      } else {
        ++errors_;
        if (!IsInDoubt(status)) history_.Fail(operation);
      }
      const auto end = Clock::now();
      timeline_.Add(begin, end, kind != History::Kind::kRead);
      std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 1000));
    }
  }

  Router& router_;
  Timeline& timeline_;
  History& history_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> errors_{0};
  std::vector<std::thread> threads_;
};

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
        const std::string value(100, 'w');
        const CellWrite cell{"c0", value, 2};
        for (uint64_t i = first; !stop; i += 4) {
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
  Bench bench(options);
  bench.Say(fmt::format("loading {} cells of 100 bytes into the embedded store", options.cells));
  bench.Load();
  const auto units = static_cast<double>(options.cells);

  if (options.raw) {
    // What the engines need alone, then the same by a migration, with nobody else at the store.
    std::vector<RawCell> cells;
    const double rocks_scan = RawRocksScan(bench, cells);
    const double mysql_insert = RawMySqlInsert(bench, cells);
    const double mysql_scan = RawMySqlScan(bench, kRawDataset);
    const double rocks_write = RawRocksWrite(bench, cells);
    const auto move = [&](const std::string& to, double raw_copy) {
      bench.Do("create", {{"target", to}, {"share", 100}});
      bench.Do("start");
      bench.Await("backfill");
      Clock::time_point verify_at;
      const Json ready = bench.Await("ready", [&](const std::string& phase) {
        if (phase == "verify") verify_at = Clock::now();
      });
      const double verify = Since(verify_at);
      const double backfill = static_cast<double>(ready.value("units_done", uint64_t{0})) /
                              std::max(1.0, static_cast<double>(ready.value("units_per_s", uint64_t{1})));
      report.results.push_back(Path("backfill_to_" + to, units, backfill, raw_copy));
      report.results.push_back(Path("verify_at_" + to, units, verify, rocks_scan + mysql_scan));
      bench.Say(
          fmt::format("to {}: copied in {:.2f} s, the engines alone {:.2f} s; compared in {:.2f} s, read "
                      "alone in {:.2f} s",
                      to, backfill, raw_copy, verify, rocks_scan + mysql_scan));
      bench.Do("cutover");
      bench.Await("reversible");
      bench.Do("finish");
      bench.Await("finished");
    };
    move("mysql", rocks_scan + mysql_insert);
    report.figures.emplace_back(
        "writes kept while captured, mysql, percent",
        100 * CaptureRatio(bench.mysql(), Must(bench.router().GetDataset(kDataset)), options.seconds));
    move("rocksdb", mysql_scan + rocks_write);
    report.figures.emplace_back(
        "writes kept while captured, rocksdb, percent",
        100 * CaptureRatio(bench.rocksdb(), Must(bench.router().GetDataset(kDataset)), options.seconds));
  }

  // What clients see.
  Timeline timeline;
  History history(kKeys, 4'000'000);
  const auto wait = [&] { std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds)); };
  uint64_t errors = 0;
  {
    Load load(bench.router(), timeline, history, 4);
    bench.Say("four clients read, write and delete; the migration begins");
    timeline.Mark("load");
    const auto loaded_at = Clock::now();
    wait();
    const double p99_before = timeline.Quantile(loaded_at, Clock::now(), 0.99);
    const auto tell = [&](const std::string& phase) {
      timeline.Mark(phase);
      bench.Say("   " + phase);
    };
    bench.Do("create", {{"target", "mysql"}});
    const auto started_at = Clock::now();
    bench.Do("start");
    Clock::time_point copied_at;
    bench.Await("ready", [&](const std::string& phase) {
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
      bench.Do(command);
      const Json status = bench.Await(phase, tell);
      std::this_thread::sleep_for(milliseconds(300));
      const double writes = timeline.LongestMs(begin, Clock::now(), true);
      const double reads = timeline.LongestMs(begin, Clock::now(), false);
      bench.Say(fmt::format(
          "   '{}' serves; writes were held for {} ms, reads for {} ms; the longest call of a client: "
          "write {:.0f} ms, read {:.0f} ms",
          to, status.value("write_pause_ms", 0), status.value("read_pause_ms", 0), writes, reads));
      report.figures.emplace_back("write pause to " + to + ", ms", status.value("write_pause_ms", 0));
      report.figures.emplace_back("read pause to " + to + ", ms", status.value("read_pause_ms", 0));
      report.figures.emplace_back("longest write at the cutover to " + to + ", ms", writes);
      report.figures.emplace_back("longest read at the cutover to " + to + ", ms", reads);
    };
    bench.Say("cutover");
    cut("cutover", "reversible", "mysql");
    wait();
    bench.Say("and back");
    cut("reverse", "ready", "rocksdb");
    wait();
    bench.Do("cancel");
    bench.Await("aborted", tell);
    wait();
    load.Stop();
    errors = load.errors();
  }
  const auto problem = history.Check();
  bench.Say(problem
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
    bench.Say("picture: " + options.svg.string());
  }
  spdlog::set_level(level);
  if (problem) return absl::DataLossError("the clients' history: " + *problem);
  return report;
}

}  // namespace kvstore::bench
