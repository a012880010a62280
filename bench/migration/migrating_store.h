#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "backends/mysql/backend.h"
#include "backends/rocksdb/backend.h"
#include "bench/fleet/mysql_fixture.h"
#include "bench/harness/report.h"
#include "bench/migration/migrate_options.h"
#include "migration/migrator.h"
#include "router/router.h"

namespace kvstore::bench {

/// Returns the key of a row that Load writes: "user:000000017".
std::string RowOf(uint64_t i);

/// Returns the value, or ends the run on an error.
template <typename T>
T Must(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

/// A store with both backends, in a directory of its own, which the destructor removes. Its calls end the run
/// on errors.
class MigratingStore {
 public:
  static constexpr char kDataset[] = "kv_bench_moved";
  static constexpr char kRawDataset[] = "kv_bench_raw";

  explicit MigratingStore(const MigrateBenchOptions& options);
  ~MigratingStore();
  MigratingStore(const MigratingStore&) = delete;
  MigratingStore& operator=(const MigratingStore&) = delete;

  Router& router() { return *router_; }
  RocksDbBackend& rocksdb() { return *rocksdb_; }
  MySqlBackend& mysql() { return *mysql_; }
  uint64_t cells() const { return options_.cells; }
  const MySqlFleetOptions& fleet() const { return options_.fleet; }

  /// Prints a text if the user asked for that.
  void Say(const std::string& text) const;
  /// Creates the dataset and writes its cells.
  void Load();
  /// Gives a command of kv migrate.
  Json RunCommand(const std::string& command, Json options = Json::object());
  /// Waits for a phase; calls `on_change` with each new phase.
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
