#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/fleet/mysql_fixture.h"
#include "idgen/object_id.h"

/// kv bench objects.
namespace kvstore::bench {
namespace {

using mysql::Sql;

constexpr uint64_t kObjects = 20'000;
constexpr size_t kThreads = 8;
constexpr size_t kBatch = 100;

/// A document of 200 bytes.
std::string Document(uint64_t i) {
  return fmt::format(R"({{"title":"pin {:012}","link":"https://example.com/{:012}","note":"{}"}})", i, i,
                     std::string(124, static_cast<char>('a' + i % 26)));
}

/// Spreads numbers, so that neighbours in time are not neighbours in the table.
uint64_t Scatter(uint64_t i) { return (i * 0x9E3779B97F4A7C15) >> 20; }

/// Objects on the shards of the first host, created in one order for both sides.
struct Loaded {
  explicit Loaded(MySqlFixture& fixture)
      : dataset(fixture.Create("objects", Shape::kObjects)),
        shards(fixture.ShardsOfFirstHost(ShardSpace::kId)) {
    ids.resize(kObjects);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = t; i < kObjects; i += kThreads) {
          auto id = fixture.store().CreateObject(dataset, Document(i), {.shard = shards[i % shards.size()]});
          Check(id.status());
          ids[i] = *id;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const std::string dataset;
  const std::vector<uint32_t> shards;
  std::vector<uint64_t> ids;
};

void MeasureGets(MySqlFixture& fixture, const MySqlBenchOptions& options, Report& report,
                 const Loaded& loaded) {
  const auto connections = RawConnections(fixture, ShardSpace::kId, kThreads);
  std::vector<std::vector<sql::PreparedStatement*>> raw(kThreads);
  for (size_t t = 0; t < kThreads; ++t) {
    for (const uint32_t shard : loaded.shards) {
      raw[t].push_back(&connections[t]->Prepare(Sql::kGetObject, ShardSpace::kId, loaded.dataset, shard));
    }
  }
  if (fixture.cached()) {
    for (const uint64_t id : loaded.ids) Check(fixture.store().GetObject(loaded.dataset, id, {}).status());
  }
  for (const uint64_t threads : {uint64_t{1}, uint64_t{kThreads}}) {
    Measure(
        report, options, fmt::format("get_object_{}", threads), threads,
        [&](uint64_t i) {
          Check(fixture.store().GetObject(loaded.dataset, loaded.ids[Scatter(i) % kObjects], {}).status());
          return uint64_t{1};
        },
        [&](uint64_t i) {
          const uint64_t n = Scatter(i) % kObjects;
          sql::PreparedStatement& statement = *raw[i % threads][n % loaded.shards.size()];
          statement.setUInt64(1, loaded.ids[n] & ObjectId::kMaxLocal);
          const std::unique_ptr<sql::ResultSet> rows(statement.executeQuery());
          if (!rows->next()) Check(absl::NotFoundError("an object"));
          const std::string data = rows->getString(1);
          return data.empty() ? rows->getUInt64(2) : uint64_t{1};
        });
  }
}

void MeasureCreates(MySqlFixture& fixture, const MySqlBenchOptions& options, Report& report,
                    const Loaded& loaded) {
  const std::string ours = fixture.Create("created", Shape::kObjects);
  const std::string theirs = fixture.Create("created_raw", Shape::kObjects);
  const auto connections = RawConnections(fixture, ShardSpace::kId, kThreads);
  std::vector<std::vector<sql::PreparedStatement*>> raw(kThreads);
  for (size_t t = 0; t < kThreads; ++t) {
    for (const uint32_t shard : loaded.shards) {
      raw[t].push_back(&connections[t]->Prepare(Sql::kCreateObject, ShardSpace::kId, theirs, shard));
    }
  }
  Measure(
      report, options, fmt::format("create_object_{}", kThreads), kThreads,
      [&](uint64_t i) {
        const uint32_t shard = loaded.shards[Scatter(i) % loaded.shards.size()];
        Check(fixture.store().CreateObject(ours, Document(i), {.shard = shard}).status());
        return uint64_t{1};
      },
      [&](uint64_t i) {
        sql::PreparedStatement& statement = *raw[i % kThreads][Scatter(i) % loaded.shards.size()];
        statement.setString(1, Document(i));
        const std::unique_ptr<sql::ResultSet> rows(statement.executeQuery());
        rows->next();
        return rows->getUInt64(1) > 0 ? uint64_t{1} : uint64_t{0};
      });
  fixture.Drop(ours);
  fixture.Drop(theirs);
}

/// Compares batches over all shards of all hosts with as many single gets; the unit is a batch.
void MeasureBatches(MySqlFixture& fixture, const MySqlBenchOptions& options, Report& report) {
  const std::string dataset = fixture.Create("batched", Shape::kObjects);
  std::vector<uint32_t> shards;
  for (const ShardRange& range : fixture.fleet().map(ShardSpace::kId).ranges()) {
    for (uint32_t shard = range.first; shard <= range.last; ++shard) shards.push_back(shard);
  }
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 2'000; ++i) {
    const auto id = fixture.store().CreateObject(dataset, Document(i), {.shard = shards[i % shards.size()]});
    Check(id.status());
    ids.push_back(*id);
  }
  const auto batch = [&](const std::vector<uint64_t>& from, uint64_t i) {
    std::vector<uint64_t> wanted;
    for (size_t k = 0; k < kBatch; ++k) wanted.push_back(from[Scatter(i * kBatch + k) % from.size()]);
    return wanted;
  };
  const auto get = [&](const std::vector<uint64_t>& from, uint64_t i) {
    const auto objects = fixture.store().GetObjects(dataset, batch(from, i), {});
    Check(objects.status());
    for (const auto& object : *objects) Check(object.status());
    return uint64_t{1};
  };
  Measure(
      report, options, fmt::format("get_objects_{}_against_single_gets", kBatch), 1,
      [&](uint64_t i) { return get(ids, i); },
      [&](uint64_t i) {
        for (const uint64_t id : batch(ids, i)) Check(fixture.store().GetObject(dataset, id, {}).status());
        return uint64_t{1};
      });
  // Compares with the same batches on the first host alone, to show what a second host adds if the clients
  // are not the limit.
  const std::vector<uint32_t> first = fixture.ShardsOfFirstHost(ShardSpace::kId);
  std::vector<uint64_t> ids_of_first;
  for (uint64_t i = 0; i < ids.size(); ++i) {
    const auto id = fixture.store().CreateObject(dataset, Document(i), {.shard = first[i % first.size()]});
    Check(id.status());
    ids_of_first.push_back(*id);
  }
  Measure(
      report, options, fmt::format("get_objects_{}_of_all_hosts_against_one", kBatch), kThreads,
      [&](uint64_t i) { return get(ids, i); }, [&](uint64_t i) { return get(ids_of_first, i); });
  fixture.Drop(dataset);
}

/// Returns the nanoseconds of a look-up in the shard map in force, by eight threads at once.
double LookupNs(MySqlFixture& fixture) {
  constexpr uint64_t kLookups = 5'000'000;
  std::vector<std::thread> threads;
  std::vector<uint64_t> found(kThreads);
  std::vector<double> seconds(kThreads);
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      timespec begin{};
      timespec end{};
      // Measures the CPU time of the thread, because eight threads may share fewer cores.
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
      for (uint64_t i = 0; i < kLookups; ++i) {
        const ShardRange* range =
            fixture.fleet().map(ShardSpace::kId).Find(static_cast<uint32_t>(Scatter(i + t) & 0xFFFF));
        if (range != nullptr) ++found[t];
      }
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
      seconds[t] = static_cast<double>(end.tv_sec - begin.tv_sec) +
                   static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e9;
    });
  }
  double sum = 0;
  for (size_t t = 0; t < kThreads; ++t) {
    threads[t].join();
    sum += seconds[t];
  }
  if (found[0] == 0) Check(absl::InternalError("no look-up found a shard"));
  return sum / static_cast<double>(kThreads * kLookups) * 1e9;
}

}  // namespace

absl::StatusOr<Report> BenchObjects(const MySqlBenchOptions& options) {
  auto fixture = MySqlFixture::Open(options);
  if (!fixture.ok()) return fixture.status();
  Report report = NewReport("objects", options);
  report.settings.emplace_back("objects", kObjects);
  const Loaded loaded(**fixture);
  MeasureGets(**fixture, options, report, loaded);
  MeasureCreates(**fixture, options, report, loaded);
  MeasureBatches(**fixture, options, report);
  report.figures.emplace_back("shard_map_lookup_8_threads_ns", LookupNs(**fixture));
  (*fixture)->AddCacheFigures(report);
  return report;
}

}  // namespace kvstore::bench
