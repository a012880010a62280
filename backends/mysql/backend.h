#pragma once

#include <map>
#include <memory>
#include <span>

#include "backend_api/backend.h"
#include "backend_api/consumer_places.h"
#include "backend_api/table_records.h"
#include "backends/mysql/changes/changes.h"
#include "backends/mysql/changes/consumer_watch.h"
#include "backends/mysql/changes/consumers.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/elsewhere.h"
#include "backends/mysql/fleet/fleet.h"
#include "backends/mysql/fleet/shard_tables.h"
#include "base/mutex.h"
#include "kvstore_api/mysql_options.h"

namespace kvstore {

/// The backend on sharded MySQL servers. Objects and mappings lie on the shards of their IDs, rows on mod
/// shards. The shard maps say which host has a shard, and may change while the backend runs. A host that is
/// down fails the calls for its shards, and no others. Thread-safe.
class MySqlBackend : public Backend {
 public:
  /// Reads the shard maps and begins to watch them. Hosts are connected to when they are needed.
  ///
  /// consumers  where the places of those are noted who follow changes; null: nowhere, and SetConsumer,
  ///            ListConsumers and DropConsumer are UNIMPLEMENTED.
  /// tables     where it is recorded which tables were made on first use. Null: nowhere; then
  ///            MySqlOptions::tables_on_first_use has no effect.
  static absl::StatusOr<std::unique_ptr<MySqlBackend>> Open(
      mysql::MapSources sources, const mysql::MySqlOptions& options,
      std::unique_ptr<ConsumerPlaces> consumers = nullptr, std::unique_ptr<TableRecords> tables = nullptr);

  Capabilities capabilities() const override {
    return {.rows = true,
            .objects = true,
            .mappings = true,
            .migration = true,
            .waits = true,
            .shards = true,
            .changes = true};
  }
  /// Makes the dataset's table on every open shard; with MySqlOptions::tables_on_first_use only on the first
  /// one of each range of the map, which shows whether the host can have it. FAILED_PRECONDITION if a shard's
  /// database is missing: Init makes it.
  absl::Status CreateDataset(const DatasetSpec& spec) override;
  absl::Status AlterDataset(const DatasetSpec& spec) override;
  absl::Status NoteSettings(const DatasetSpec& spec) override;
  absl::Status DropDataset(const DatasetSpec& spec) override;
  absl::Status DropLeftover(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override;
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override;
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override;
  absl::StatusOr<std::unique_ptr<UnitReader>> OpenUnits(const DatasetSpec& spec) override;
  absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(const DatasetSpec& spec) override;
  absl::StatusOr<std::string> StartChanges(const DatasetSpec& spec, ChangesFrom from) override;
  absl::StatusOr<UnitChanges> ReadChanges(const DatasetSpec& spec, std::string_view position,
                                          const ChangeLimits& limits) override;
  absl::Status SetConsumer(const DatasetSpec& spec, std::string_view name,
                           std::string_view position) override;
  absl::StatusOr<std::vector<UnitConsumer>> ListConsumers(const DatasetSpec& spec) override;
  absl::Status DropConsumer(const DatasetSpec& spec, std::string_view name) override;
  void Describe(MetricsSink& sink) const override;

  /// Makes the databases of all open shards, and in them the tables of `datasets`, unless they are there.
  /// Leaves alone what migrates or moves. Works on hosts in parallel. To be run before the first dataset is
  /// created, and after shards were opened.
  ///
  /// datasets    returns the catalog's datasets on this backend. It is called again wherever a table is
  ///             missing, so that none is made of a dataset that was dropped or has migrated meanwhile. Null:
  ///             none.
  /// progress    shards done, and in all; false ends with CANCELLED. May be null.
  /// left_alone  receives what was left alone. May be null.
  absl::Status Init(const mysql::ReadSpecs& datasets, const Progress& progress,
                    mysql::LeftAlone* left_alone = nullptr);

  /// Checks that Init would not make a shard anew that another host has: see mysql::CheckNowhereElse.
  ///
  /// others  hosts that may have shards, in addition to those of the maps.
  absl::Status CheckNowhereElse(std::span<const Host> others, mysql::EmptyElsewhere empty);

  /// The fleet, and the stream of changes, for tests and benchmarks.
  mysql::Fleet& fleet() { return *fleet_; }
  const mysql::Changes& changes() const { return changes_; }

 private:
  MySqlBackend(std::shared_ptr<mysql::Fleet> fleet, std::unique_ptr<ConsumerPlaces> consumers)
      : fleet_(std::move(fleet)),
        changes_(fleet_),
        consumers_(changes_, std::move(consumers)),
        consumer_watch_([this](const DatasetSpec& spec) { return consumers_.List(spec); },
                        [this] { changes_.CloseUnused(); }) {}
  /// Returns the records, where the tables of a dataset that is created are to be noted which are made; null
  /// if all are made at once.
  absl::StatusOr<TableRecords*> RecordsForCreate(const DatasetSpec& spec);
  /// Makes the table on the first shard of each range of the map.
  absl::Status CreateForFirstUse(const DatasetSpec& spec, TableRecords& records);
  /// Asks the first host that answers whether it has the dataset's table. DATA_LOSS if it has not, although
  /// the table was made; FAILED_PRECONDITION if the number of mod shards is another one than when the data
  /// was made.
  absl::Status CheckThere(const DatasetSpec& spec);
  /// Puts settings in force here.
  void Apply(const DatasetSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(datasets_mutex_);
  /// Notes whether the dataset keeps changes, for the metrics of its consumers.
  void NoteFollowed(const DatasetSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(datasets_mutex_);
  /// Returns the dataset as stores share it, with the settings of `spec`.
  absl::StatusOr<std::shared_ptr<mysql::Dataset>> OpenDataset(const DatasetSpec& spec);

  const std::shared_ptr<mysql::Fleet> fleet_;
  mutable mysql::Changes changes_;
  mysql::Consumers consumers_;
  mutable mysql::ConsumerWatch consumer_watch_;
  mutable Mutex datasets_mutex_;
  uint32_t datasets_opened_ ABSL_GUARDED_BY(datasets_mutex_) = 0;  // the last TableFamily::number given
  // By incarnation.
  std::map<uint64_t, std::shared_ptr<mysql::Dataset>> datasets_ ABSL_GUARDED_BY(datasets_mutex_);
  std::map<uint64_t, DatasetSpec> followed_ ABSL_GUARDED_BY(datasets_mutex_);  // those that keep changes
};

}  // namespace kvstore
