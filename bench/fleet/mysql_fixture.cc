#include "bench/fleet/mysql_fixture.h"

#include <cppconn/statement.h>
#include <fmt/format.h>
#include <mysql_driver.h>

#include <algorithm>
#include <utility>

#include "assembly/mysql_backend.h"
#include "base/random_number.h"
#include "catalog/file_catalog.h"
#include "coordination/zookeeper.h"

namespace kvstore::bench {

absl::StatusOr<std::unique_ptr<MySqlFixture>> MySqlFixture::Open(const MySqlBenchOptions& options) {
  auto folder = Folder::Make();
  if (!folder.ok()) return folder.status();
  std::unique_ptr<MySqlFixture> fixture(new MySqlFixture(options.fleet, *std::move(folder)));
  auto backend = OpenMySqlBackend(options.fleet, "");
  if (!backend.ok()) return backend.status();
  fixture->fleet_ = &(*backend)->fleet();
  Router::Backends backends;
  std::unique_ptr<Backend> store = *std::move(backend);
  if (options.caches) {
    auto cached = fixture->Cached(std::move(store), *options.caches);
    if (!cached.ok()) return cached.status();
    store = *std::move(cached);
  }
  backends.emplace(kMySql, std::move(store));
  auto router = Router::Open(std::make_unique<FileCatalog>(fixture->folder_.path() / "catalog.json"),
                             std::move(backends), kMySql);
  if (!router.ok()) return router.status();
  fixture->store_ = *std::move(router);
  return fixture;
}

absl::StatusOr<std::unique_ptr<Backend>> MySqlFixture::Cached(std::unique_ptr<Backend> of,
                                                              const BenchCaches& caches) {
  CacheOptions options = caches.options;
  options.lease_ms = 500;
  const std::string node =
      cached::ViewNode(caches.coordination.root, fmt::format("kv_bench_{:x}", RandomNumber()));
  forget_caches_ = [coordination = caches.coordination, node] {
    ZooKeeper(coordination.zookeeper, nullptr).Delete(node).IgnoreError();
  };
  auto backend = std::make_unique<CachedBackend>(
      std::move(of), std::make_unique<cached::Caches>(options, caches.coordination.zookeeper, node));
  caches_ = &backend->caches();
  if (auto used = caches_->UseServers({}); !used.ok()) return used;
  // Nobody has written by this list of servers, so that they need no quarantine.
  for (cached::Cache* cache : {&caches_->objects(), &caches_->mappings()}) {
    const auto view = caches_->view().Load();
    for (const auto& server : cache->Servers(*view)) {
      auto trusted = server->Change(view->view.list, [](cached::Guard& guard) {
        guard.trusted = true;
        return true;
      });
      if (!trusted.ok()) return trusted;
    }
  }
  return backend;
}

void MySqlFixture::AddCacheFigures(Report& report) const {
  if (caches_ == nullptr) return;
  for (cached::Cache* cache : {&caches_->objects(), &caches_->mappings()}) {
    const cached::CacheStats& stats = cache->stats();
    const auto hits = static_cast<double>(stats.hits.load());
    const double others = static_cast<double>(stats.fills.load()) + static_cast<double>(stats.marked.load()) +
                          static_cast<double>(stats.bypasses.load());
    if (hits + others == 0) continue;
    const std::string name(Name(cache->kind()));
    report.figures.emplace_back("cache_" + name + "_hit_rate_percent", 100 * hits / (hits + others));
    report.figures.emplace_back("cache_" + name + "_queries_saved", hits);
    report.figures.emplace_back("cache_" + name + "_fills", static_cast<double>(stats.fills.load()));
    report.figures.emplace_back("cache_" + name + "_waits", static_cast<double>(stats.waits.load()));
    report.figures.emplace_back("cache_" + name + "_marked", static_cast<double>(stats.marked.load()));
    report.figures.emplace_back("cache_" + name + "_bypasses", static_cast<double>(stats.bypasses.load()));
    report.figures.emplace_back("cache_" + name + "_writes", static_cast<double>(stats.marks.load()));
  }
}

MySqlFixture::~MySqlFixture() {
  while (!created_.empty()) Drop(created_.back());
  store_.reset();
  if (forget_caches_) forget_caches_();
}

std::string MySqlFixture::Create(const std::string& name, Shape shape, uint32_t max_versions) {
  std::string dataset = "kv_bench_" + name;
  Check(store_->CreateDataset({.name = dataset, .shape = shape, .max_versions = max_versions}));
  created_.push_back(dataset);
  return dataset;
}

void MySqlFixture::Drop(std::string dataset) {
  created_.erase(std::find(created_.begin(), created_.end(), dataset));
  // A dataset that is left would be in the way of the next run.
  if (const auto status = store_->DropDataset(dataset, {}); !status.ok()) {
    fmt::print(stderr, "benchmark: dataset {} is left: {}\n", dataset, std::string(status.message()));
  }
}

std::vector<uint32_t> MySqlFixture::ShardsOfFirstHost(ShardSpace space) {
  const Host first = FirstHost(space);
  std::vector<uint32_t> shards;
  for (const ShardRange& range : fleet_->map(space).ranges()) {
    for (uint32_t shard = range.first; shard <= range.last && range.master == first; ++shard)
      shards.push_back(shard);
  }
  return shards;
}

RawConnection::RawConnection(const Host& host, const MySqlFleetOptions& options) {
  sql::ConnectOptionsMap map;
  map["hostName"] = sql::SQLString(fmt::format("tcp://{}:{}", host.name, host.port));
  map["userName"] = sql::SQLString(options.options.user);
  map["password"] = sql::SQLString(options.options.password);
  map["OPT_CHARSET_NAME"] = sql::SQLString("utf8mb4");
  connection_.reset(sql::mysql::get_mysql_driver_instance()->connect(map));
  plain_.reset(connection_->createStatement());
}

sql::PreparedStatement& RawConnection::Prepare(const std::string& text) {
  statements_.emplace_back(connection_->prepareStatement(text));
  return *statements_.back();
}

sql::PreparedStatement& RawConnection::Prepare(mysql::Sql sql, ShardSpace space, const std::string& dataset,
                                               uint32_t shard, size_t count) {
  const mysql::TableFamily family{.space = space, .name = dataset};
  return Prepare(mysql::Text(sql, mysql::Table{&family, shard}, count, /*returning=*/true));
}

void RawConnection::Run(const std::string& text) { plain_->execute(text); }

uint64_t RawConnection::Ask(const std::string& text) {
  const std::unique_ptr<sql::ResultSet> rows(plain_->executeQuery(text));
  rows->next();
  return rows->getUInt64(1);
}

std::vector<std::unique_ptr<RawConnection>> RawConnections(MySqlFixture& fixture, ShardSpace space,
                                                           size_t count) {
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (size_t i = 0; i < count; ++i) {
    connections.push_back(std::make_unique<RawConnection>(fixture.FirstHost(space), fixture.options()));
  }
  return connections;
}

void Measure(Report& report, const MySqlBenchOptions& options, const std::string& path, uint64_t threads,
             const Work& ours, const Work& raw) {
  if (!Wanted(options.paths, path)) return;
  report.results.push_back(Compare(path,
                                   {.rounds = options.rounds, .seconds = options.seconds, .threads = threads},
                                   ours, options.compare ? raw : Work()));
}

Report NewReport(const std::string& workload, const MySqlBenchOptions& options) {
  Report report{.workload = workload, .backend = kMySql};
  report.settings = {{"rounds", static_cast<uint64_t>(options.rounds)},
                     {"max_connections", options.fleet.options.pool.max_connections}};
  DescribeMachine(report);
  return report;
}

}  // namespace kvstore::bench
