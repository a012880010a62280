#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "backend_api/backend.h"
#include "client/client.h"
#include "kvstore_api/kvstore.h"

namespace kvstore {

/// A backend whose data is on another kvstore server. A dataset here is the dataset of the same name and
/// incarnation there, so that positions, and the markers made of them, are valid on both sides.
///
/// The server may have a catalog of its own, or share the one of this process. If it shares it, it stores the
/// datasets that the catalog puts on the backend of this name, and every other process with that catalog
/// reaches them through a RemoteBackend. Only such a server takes part in migrations. Thread-safe.
class RemoteBackend : public Backend {
 public:
  /// Returns at once; see kvstore::Connect for addresses and errors.
  static absl::StatusOr<std::unique_ptr<RemoteBackend>> Connect(const std::string& address,
                                                                const ConnectOptions& options);
  explicit RemoteBackend(std::shared_ptr<client::Client> server) : server_(std::move(server)) {}

  Capabilities capabilities() const override {
    return {.rows = true, .objects = true, .mappings = true, .migration = true, .waits = true};
  }
  absl::Status CreateDataset(const DatasetSpec& spec) override;
  absl::Status AlterDataset(const DatasetSpec& spec) override;
  absl::Status NoteSettings(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::Status DropDataset(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override;
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override;
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override;
  absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(const DatasetSpec& spec) override;
  /// Describes nothing: the server has metrics of its own.
  void Describe(MetricsSink&) const override {}

 private:
  /// Returns DATA_LOSS if the server does not have the dataset, or another incarnation of it; OK if it cannot
  /// be reached.
  absl::Status CheckThere(const DatasetSpec& spec);

  const std::shared_ptr<client::Client> server_;
};

}  // namespace kvstore
