#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "backends/mysql/dataset.h"
#include "backends/mysql/fleet.h"
#include "backends/mysql/options.h"
#include "backends/mysql/shard_tables.h"
#include "kvstore_api/backend.h"

namespace kvstore {

/// The backend on sharded MySQL servers: objects and mappings on the shards of their IDs, rows on mod shards.
/// Which host has which shard is in the shard maps, which may change while this runs. Hosts that are down
/// fail calls for their shards, and no others.
class MySqlBackend : public Backend {
 public:
  /// Reads the maps; hosts are connected to when they are needed.
  static absl::StatusOr<std::unique_ptr<MySqlBackend>> Open(mysql::MapSources sources,
                                                            const mysql::MySqlOptions& options);

  Capabilities capabilities() const override {
    return {
        .rows = true, .objects = true, .mappings = true, .migration = true, .waits = true, .shards = true};
  }
  /// On every open shard; FAILED_PRECONDITION if a shard's database is not there (see Init).
  absl::Status CreateDataset(const DatasetSpec& spec) override;
  absl::Status AlterDataset(const DatasetSpec& spec) override;
  absl::Status DropDataset(const DatasetSpec& spec) override;
  absl::Status DropLeftover(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override;
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override;
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override;
  absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(const DatasetSpec& spec) override;
  void Describe(MetricsSink& sink) const override { fleet_->Describe(sink); }

  /// Makes the databases of all open shards, and in them the tables of `datasets`; what is there stays, and
  /// what migrates or moves is left alone. Hosts in parallel. Run it before the first dataset is created, and
  /// when shards were opened.
  ///
  /// datasets    called again wherever something is missing: what was dropped or has migrated meanwhile is
  /// not
  ///             made. May be null: none.
  /// progress    shards done, and in all. May be null.
  /// left_alone  what was left as it is. May be null.
  absl::Status Init(const mysql::ReadSpecs& datasets, const Progress& progress,
                    mysql::LeftAlone* left_alone = nullptr);

  /// FAILED_PRECONDITION if Init would make a shard anew that another host has: the map is wrong there, or
  /// its master has lost it. UNAVAILABLE if a master does not answer.
  ///
  /// others  hosts that may have shards, beside those of the maps.
  absl::Status CheckNowhereElse(std::span<const Host> others);

  /// What lies beneath, for tests and benchmarks.
  mysql::Fleet& fleet() { return *fleet_; }

 private:
  explicit MySqlBackend(std::shared_ptr<mysql::Fleet> fleet) : fleet_(std::move(fleet)) {}
  /// DATA_LOSS unless the first host that answers has the dataset's table.
  absl::Status CheckThere(const DatasetSpec& spec);
  absl::StatusOr<std::shared_ptr<mysql::Dataset>> OpenDataset(const DatasetSpec& spec);

  const std::shared_ptr<mysql::Fleet> fleet_;
  std::mutex datasets_mutex_;
  uint32_t datasets_opened_ = 0;  // guarded by datasets_mutex_
  std::map<uint64_t, std::shared_ptr<mysql::Dataset>>
      datasets_;  // by incarnation; guarded by datasets_mutex_
};

}  // namespace kvstore
