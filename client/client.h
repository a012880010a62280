#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend_api/migration_endpoint.h"
#include "backend_api/migrations.h"
#include "client/caller.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::client {

/// The KVStore behind a server, and the migrations of its datasets. See kvstore_api/connect.h. Thread-safe.
class Client : public KVStore, public Migrations {
 public:
  explicit Client(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}

  absl::Status CreateDataset(const DatasetSpec& spec) override;
  absl::Status AlterDataset(std::string_view dataset, const DatasetChange& change) override;
  absl::Status DropDataset(std::string_view dataset, const DropOptions& options) override;
  absl::StatusOr<DatasetSpec> GetDataset(std::string_view dataset) override;
  absl::StatusOr<std::vector<DatasetSpec>> ListDatasets() override;
  absl::StatusOr<DatasetStats> GetStats(std::string_view dataset) override;
  absl::StatusOr<ReclaimResult> Compact(std::string_view dataset, const Progress& progress) override;

  absl::StatusOr<Row> GetRow(std::string_view dataset, std::string_view row,
                             const ReadOptions& options) override;
  absl::StatusOr<PutResult> PutRow(std::string_view dataset, std::string_view row,
                                   std::span<const CellWrite> cells, const WriteOptions& options) override;
  absl::Status DeleteRow(std::string_view dataset, std::string_view row,
                         const DeleteOptions& options) override;
  absl::StatusOr<std::vector<absl::StatusOr<Row>>> GetRows(std::string_view dataset,
                                                           std::span<const RowRead> reads) override;
  absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> PutRows(std::string_view dataset,
                                                                 std::span<const RowWrite> writes) override;
  absl::StatusOr<std::vector<absl::Status>> DeleteRows(std::string_view dataset,
                                                       std::span<const RowDelete> deletes) override;
  absl::StatusOr<std::unique_ptr<RowCursor>> ScanRows(std::string_view dataset, const RowRange& range,
                                                      const ScanOptions& options) override;
  absl::StatusOr<std::vector<Partition>> ListPartitions(std::string_view dataset, size_t wanted) override;

  absl::StatusOr<uint64_t> CreateObject(std::string_view dataset, std::string_view data,
                                        const CreateOptions& options) override;
  absl::StatusOr<Object> GetObject(std::string_view dataset, uint64_t id,
                                   const ObjectReadOptions& options) override;
  absl::StatusOr<std::vector<absl::StatusOr<Object>>> GetObjects(std::string_view dataset,
                                                                 std::span<const uint64_t> ids,
                                                                 const ObjectReadOptions& options) override;
  absl::StatusOr<Object> UpdateObject(std::string_view dataset, uint64_t id, const ObjectTransform& transform,
                                      const UpdateOptions& options) override;
  absl::StatusOr<Object> PatchObject(std::string_view dataset, uint64_t id, std::string_view merge_patch,
                                     const UpdateOptions& options) override;
  absl::Status DeleteObject(std::string_view dataset, uint64_t id, bool hard) override;

  absl::Status AddMapping(std::string_view dataset, uint64_t from, uint64_t to,
                          std::optional<uint64_t> sequence) override;
  absl::StatusOr<bool> RemoveMapping(std::string_view dataset, uint64_t from, uint64_t to) override;
  absl::StatusOr<MappingPage> ListMapping(std::string_view dataset, uint64_t from,
                                          const MappingListOptions& options) override;
  absl::StatusOr<uint64_t> CountMapping(std::string_view dataset, uint64_t from) override;
  absl::StatusOr<JoinedPage> ListObjects(std::string_view dataset, uint64_t from,
                                         const MappingListOptions& options) override;

  /// Returns the text of the server's /metrics.
  absl::StatusOr<std::string> GetMetrics();

  absl::StatusOr<Json> Command(const Json& command) override;

  const std::string& address() const { return caller_->address(); }
  /// Returns what makes the calls, for other parts of the client that share its connections.
  const std::shared_ptr<Caller>& caller() const { return caller_; }
  /// Opens a dataset in the backend that the spec names on the server, for the worker of a migration.
  std::unique_ptr<MigrationEndpoint> OpenForMigration(const DatasetSpec& spec) const;

 private:
  absl::StatusOr<Object> Update(v1::UpdateObjectRequest& request);
  /// PutRows with more than one message. Adds a result for each write.
  absl::Status Import(std::string_view dataset, std::span<const RowWrite> writes,
                      std::vector<absl::StatusOr<PutResult>>& results);
  /// One attempt of Import. A verdict with `retry` and no results says that nothing was done.
  Caller::Verdict ImportOnce(std::string_view dataset, std::span<const RowWrite> writes,
                             std::vector<absl::StatusOr<PutResult>>& results);

  const std::shared_ptr<Caller> caller_;
};

}  // namespace kvstore::client
