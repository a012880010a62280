#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "backend_api/checkpoint.h"
#include "backend_api/mapping_store.h"
#include "backend_api/migration_endpoint.h"
#include "backend_api/object_store.h"
#include "backend_api/row_store.h"
#include "backend_api/unit_changes.h"
#include "backend_api/unit_reader.h"
#include "base/metrics_sink.h"
#include "kvstore_api/dataset.h"

namespace kvstore {

/// The capabilities of a backend, by which the layers above refuse calls early and say why.
struct Capabilities {
  bool rows = false;
  bool objects = false;
  bool mappings = false;
  bool migration = false;  ///< Implements OpenForMigration.
  /// Calls wait for other machines, so that they must not be made on threads that must not wait.
  bool waits = false;
  /// Datasets are on shards, which operators open and move: rows on mod shards, other shapes on ID shards.
  bool shards = false;
  bool changes = false;  ///< Keeps changes (DatasetSpec::keep_changes_ms): implements ReadChanges.
  /// CreateDataset is one atomic step. It also replaces the empty dataset that an earlier create of this name
  /// left if its caller never got an answer. So the layer above need not record a create before it begins.
  bool creates_at_once = false;
};

/// A storage engine, which stores the data behind the API. It owns its connections or files. Thread-safe.
///
/// The layer above owns the datasets' names and settings (the catalog), and passes them in DatasetSpecs; a
/// backend stores data only. A new backend is a folder that implements this interface, a line in assembly/,
/// and a fixture with which tests/backend_suite runs on it. `docs/backends.md` is the guide.
class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual Capabilities capabilities() const = 0;

  /// Creates the dataset's files or tables. Idempotent, because a create that was cut short is repeated.
  [[nodiscard]] virtual absl::Status CreateDataset(const DatasetSpec& spec) = 0;
  /// Puts the changeable settings of `spec` (DatasetChange) in force, also for stores that are open. `spec`
  /// has all settings.
  [[nodiscard]] virtual absl::Status AlterDataset(const DatasetSpec& spec) = 0;
  /// As AlterDataset, for settings that another process has already put in force on shared storage: this
  /// process only has to use them.
  [[nodiscard]] virtual absl::Status NoteSettings(const DatasetSpec& spec) { return AlterDataset(spec); }
  /// Removes the dataset and its data. Idempotent, because a drop that was cut short is repeated. Stores that
  /// are still open fail from then on, and must not crash.
  [[nodiscard]] virtual absl::Status DropDataset(const DatasetSpec& spec) = 0;

  /// Opens an existing dataset of that shape. DATA_LOSS if its data is not there.
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(
      const DatasetSpec& spec) = 0;

  /// Removes expired and surplus cells physically, now, and frees their space. Reads return the same as
  /// before. DATA_LOSS if the dataset's data is not there.
  ///
  /// progress  may be null. If it returns false: CANCELLED, and what was done stays done.
  [[nodiscard]] virtual absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec,
                                                              const Progress& progress) = 0;
  /// Returns rough sizes, without reading data. DATA_LOSS if the dataset's data is not there.
  [[nodiscard]] virtual absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) = 0;

  /// Removes a leftover that CreateDataset reported (leftover.h) and that the catalog does not name. It may
  /// be a live dataset of another catalog: if it has any data, this is FAILED_PRECONDITION, and nothing is
  /// removed.
  [[nodiscard]] virtual absl::Status DropLeftover(const DatasetSpec& spec) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' has no leftovers of datasets to drop");
  }

  /// Opens an existing dataset to be read as a whole, whether it migrates or not (unit_reader.h).
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<UnitReader>> OpenUnits(const DatasetSpec& spec) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' does not read datasets as units");
  }

  /// Returns the position of somebody who begins to follow the changes of a dataset. FAILED_PRECONDITION if
  /// it keeps none.
  [[nodiscard]] virtual absl::StatusOr<std::string> StartChanges(const DatasetSpec& spec,
                                                                 ChangesFrom /*from*/) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' does not keep changes");
  }
  /// Returns the changes after a position that this backend has returned: every write of a client that was
  /// acknowledged, at least once, and those of each unit in order. None if there are none yet: does not wait.
  /// OUT_OF_RANGE if some of what is after the position is not kept any more, or was lost: nothing is left
  /// out silently.
  [[nodiscard]] virtual absl::StatusOr<UnitChanges> ReadChanges(const DatasetSpec& spec,
                                                                std::string_view /*position*/,
                                                                const ChangeLimits& /*limits*/) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' does not keep changes");
  }

  /// Stores a consumer's position, and keeps the changes after it until the consumer has another position or
  /// is dropped (KVStore::SetConsumer, which has checked the name). OUT_OF_RANGE as for ReadChanges.
  [[nodiscard]] virtual absl::Status SetConsumer(const DatasetSpec& spec, std::string_view /*name*/,
                                                 std::string_view /*position*/) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' does not keep changes");
  }
  /// Returns all consumers, by name.
  [[nodiscard]] virtual absl::StatusOr<std::vector<UnitConsumer>> ListConsumers(const DatasetSpec& spec) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' does not keep changes");
  }
  /// NOT_FOUND if there is none of that name.
  [[nodiscard]] virtual absl::Status DropConsumer(const DatasetSpec& spec, std::string_view /*name*/) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' does not keep changes");
  }

  /// Opens a dataset, which may be absent, as a side of a migration. One worker at a time has one.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(
      const DatasetSpec& spec) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' takes no part in migrations");
  }

  /// Makes a checkpoint of all datasets, and of the catalog unless it is in ZooKeeper, for a backup, while
  /// calls go on. Every write that was acknowledged before this call is in it. UNIMPLEMENTED for a backend
  /// whose data is not in files of this process.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<Checkpoint>> MakeCheckpoint() {
    return absl::UnimplementedError("the data of this backend is not in files of this process");
  }

  /// Returns an error if nothing at all can be written here, as on a full disk or without file descriptors.
  /// If that was so and may have passed, tries to resume. Called now and then, by any thread.
  [[nodiscard]] virtual absl::Status CheckWrites() { return absl::OkStatus(); }

  /// Reports metrics: memory, files, connections, shard maps. Called now and then, by any thread.
  virtual void Describe(MetricsSink& sink) const = 0;
};

}  // namespace kvstore
