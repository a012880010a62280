#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/mapping_store.h"
#include "kvstore_api/metrics_sink.h"
#include "kvstore_api/migration_endpoint.h"
#include "kvstore_api/object_store.h"
#include "kvstore_api/row_store.h"

namespace kvstore {

/// What a backend can do, so that the layers above can refuse early and say why.
struct Capabilities {
  bool rows = false;
  bool objects = false;
  bool mappings = false;
  bool migration = false;  ///< OpenForMigration.
  /// Calls wait for other machines: they are not made on threads that must not wait.
  bool waits = false;
  /// Its datasets are on shards, which operators open and move: rows on mod shards, the rest on ID shards.
  bool shards = false;
};

/// A storage engine: the seam between the one API and what stores the data. Owns its connections or files.
/// Thread-safe.
///
/// The layer above owns names and settings (the catalog) and tells the backend about them in DatasetSpecs; a
/// backend keeps data only. To add one: a folder that fills this interface, a line in registry/, and a
/// fixture with which tests/backend_suite runs on it. `docs/backends.md` is the guide.
class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual Capabilities capabilities() const = 0;

  /// Makes room for the dataset. OK if the same was done before: a create that was cut short is repeated.
  [[nodiscard]] virtual absl::Status CreateDataset(const DatasetSpec& spec) = 0;
  /// Puts the changeable settings of `spec` in force, also for stores that are open. `spec` has all settings.
  [[nodiscard]] virtual absl::Status AlterDataset(const DatasetSpec& spec) = 0;
  /// As AlterDataset, for settings that another process has put in force: only to be taken note of here.
  [[nodiscard]] virtual absl::Status NoteSettings(const DatasetSpec& spec) { return AlterDataset(spec); }
  /// Removes the dataset and its data. OK if there is none: a drop that was cut short is repeated.
  /// Stores that are still open fail from then on, and must not crash.
  [[nodiscard]] virtual absl::Status DropDataset(const DatasetSpec& spec) = 0;

  /// Opens an existing dataset. Called with a spec of the right shape; DATA_LOSS if the data is not there.
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(
      const DatasetSpec& spec) = 0;

  /// Removes expired and surplus cells physically, now, and gives their space back. Reads see no difference.
  [[nodiscard]] virtual absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec,
                                                              const Progress& progress) = 0;
  [[nodiscard]] virtual absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) = 0;

  /// Removes what CreateDataset said is in its way (leftover.h) and the catalog does not name. It may be a
  /// live dataset of another catalog: FAILED_PRECONDITION, and nothing is removed, if it has any data.
  [[nodiscard]] virtual absl::Status DropLeftover(const DatasetSpec& spec) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' leaves nothing");
  }

  /// What a migration needs of this backend, as source or target; the dataset may be absent. One worker at a
  /// time has one.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(
      const DatasetSpec& spec) {
    return absl::UnimplementedError("backend: '" + spec.backend + "' takes no part in migrations");
  }

  /// OK unless nothing can be written here, whatever it is: on a full disk, or without file descriptors.
  /// Tries to go on, where that was so and may have passed. Called now and then, by any thread.
  [[nodiscard]] virtual absl::Status CheckWrites() { return absl::OkStatus(); }

  /// Tells how it is: memory, files, connections, shard maps. Called now and then, by any thread.
  virtual void Describe(MetricsSink& sink) const = 0;
};

}  // namespace kvstore
