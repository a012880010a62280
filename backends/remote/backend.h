#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "kvstore_api/backend.h"
#include "kvstore_api/kvstore.h"

namespace kvstore {

/// A backend that is another server: a dataset here is the dataset of the same name and incarnation there, so
/// that positions, and markers made of them, are good on both sides.
///
/// The server may keep a catalog of its own, or share this process' one; then it stores what the catalog puts
/// on the backend of this name, and each process that shares the catalog reaches it through one of these.
/// Only then it takes part in migrations.
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
  /// The server describes itself.
  void Describe(MetricsSink&) const override {}

 private:
  /// DATA_LOSS if the server has no dataset of that incarnation; OK if it cannot be reached.
  absl::Status CheckThere(const DatasetSpec& spec);

  const std::shared_ptr<client::Client> server_;
};

}  // namespace kvstore
