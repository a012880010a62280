#include "bench/migration/migrating_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "assembly/mysql_backend.h"
#include "backends/rocksdb/engine/data_dir.h"
#include "catalog/file_catalog.h"

namespace kvstore::bench {
namespace {

constexpr uint64_t kColumns = 10;

}  // namespace

std::string RowOf(uint64_t i) { return fmt::format("user:{:09}", i); }

MigratingStore::MigratingStore(const MigrateBenchOptions& options) : options_(options) {
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
  // Removes what an earlier run left behind that was interrupted.
  DropOnServers(kDataset);
  DropOnServers(kRawDataset);
  migrator_ = std::make_unique<Migrator>(router_->keeper(), "");
}

MigratingStore::~MigratingStore() {
  migrator_.reset();
  DropOnServers(kDataset);
  DropOnServers(kRawDataset);
  router_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

void MigratingStore::Say(const std::string& text) const {
  if (!options_.tell) return;
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void MigratingStore::Load() {
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

Json MigratingStore::RunCommand(const std::string& command, Json options) {
  options["command"] = command;
  options["dataset"] = kDataset;
  options["who"] = "kv bench";
  return Must(migrator_->Command(Json::parse(options.dump())));
}

Json MigratingStore::Await(const std::string& phase,
                           const std::function<void(const std::string&)>& on_change) {
  std::string last;
  for (;;) {
    Json status = RunCommand("status");
    const std::string now = status.value("phase", "");
    if (now != last && on_change) on_change(now);
    last = now;
    if (now == phase) return status;
    const std::string problem = status.value("problem", "");
    if (!problem.empty() && problem != told_) Say("   problem: " + problem);
    told_ = problem;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void MigratingStore::DropOnServers(const std::string& name) {
  const auto drop = [&](const std::string& table) {
    DatasetSpec spec{.name = table};
    mysql_->DropDataset(spec).IgnoreError();
  };
  for (const char* suffix : {"", "$away", "$dirty", "$state"}) drop(name + suffix);
}

}  // namespace kvstore::bench
