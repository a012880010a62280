#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "backends/mysql/backend.h"
#include "backends/rocksdb/backend.h"
#include "bench/migrate_bench.h"
#include "kvstore_api/router.h"
#include "migration/migrator.h"

namespace kvstore::bench {

/// "user:000000017": a row of what Load loads.
std::string RowOf(uint64_t i);

/// The value, or the end of the run.
template <typename T>
T Must(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

/// A store with both backends, in a directory of its own that goes with it. Its calls end the run on errors.
class MovingStore {
 public:
  static constexpr char kDataset[] = "kv_bench_moved";
  static constexpr char kRawDataset[] = "kv_bench_raw";

  explicit MovingStore(const MigrateBenchOptions& options);
  ~MovingStore();
  MovingStore(const MovingStore&) = delete;
  MovingStore& operator=(const MovingStore&) = delete;

  Router& router() { return *router_; }
  RocksDbBackend& rocksdb() { return *rocksdb_; }
  MySqlBackend& mysql() { return *mysql_; }
  uint64_t cells() const { return options_.cells; }
  const MySqlFleet& fleet() const { return options_.fleet; }

  /// If the user wants to be told.
  void Say(const std::string& text) const;
  /// Makes the dataset, and writes its cells.
  void Load();
  /// Gives a command of kv migrate.
  Json Do(const std::string& command, Json options = Json::object());
  /// Waits for a phase; `on_change` hears of each that comes.
  Json Await(const std::string& phase, const std::function<void(const std::string&)>& on_change = nullptr);

 private:
  void DropOnServers(const std::string& name);

  const MigrateBenchOptions options_;
  std::filesystem::path dir_;
  RocksDbBackend* rocksdb_ = nullptr;
  MySqlBackend* mysql_ = nullptr;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Migrator> migrator_;
  std::string told_;
};

}  // namespace kvstore::bench
