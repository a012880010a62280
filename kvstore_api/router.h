#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/snapshot.h"
#include "kvstore_api/backend.h"
#include "kvstore_api/catalog.h"
#include "kvstore_api/kvstore.h"

namespace kvstore {

/// The KVStore in process: checks arguments, finds the dataset's store, opens and seals markers, and calls
/// the backend. Finding costs one hash look-up in an immutable snapshot of the catalog, which every change of
/// a dataset replaces.
class Router : public KVStore {
 public:
  using Backends = std::map<std::string, std::unique_ptr<Backend>, std::less<>>;

  /// Takes over catalog and backends, opens every dataset, and finishes creates and drops that a crash cut
  /// short.
  ///
  /// default_backend  where datasets go whose creator names no backend; must be one of `backends`.
  static absl::StatusOr<std::unique_ptr<Router>> Open(std::unique_ptr<Catalog> catalog, Backends backends,
                                                      std::string default_backend);

  absl::Status CreateDataset(const DatasetSpec& spec) override;
  absl::Status AlterDataset(std::string_view dataset, const DatasetChange& change) override;
  absl::Status DropDataset(std::string_view dataset) override;
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

 private:
  /// An open dataset: the store of its shape is set, the others are null.
  struct Dataset {
    DatasetSpec spec;
    Backend* backend = nullptr;
    std::shared_ptr<RowStore> rows;
    std::shared_ptr<ObjectStore> objects;
    std::shared_ptr<MappingStore> mappings;
  };

  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Datasets = std::unordered_map<std::string, std::shared_ptr<const Dataset>, NameHash, std::equal_to<>>;

  /// A dataset and what keeps it alive during a call.
  struct Found {
    std::shared_ptr<const Datasets> snapshot;
    const Dataset* dataset;
    const Dataset* operator->() const { return dataset; }
  };

  Router(std::unique_ptr<Catalog> catalog, Backends backends, std::string default_backend);

  absl::StatusOr<Found> Find(std::string_view name) const;
  absl::StatusOr<Found> Find(std::string_view name, Shape shape) const;
  /// As Find for shape objects, and INVALID_ARGUMENT unless `id` is an ID of the dataset's type.
  absl::StatusOr<Found> FindForObject(std::string_view name, uint64_t id) const;
  absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const DatasetSpec& spec);
  absl::StatusOr<Backend*> FindBackend(std::string_view name) const;
  absl::Status FinishDrop(const DatasetSpec& spec);
  /// Gives a spec of CreateDataset its backend, type and incarnation. Under catalog_mutex_.
  absl::Status Complete(DatasetSpec& spec) const;
  void Publish(std::string_view name, std::shared_ptr<const Dataset> dataset);
  void Unpublish(std::string_view name);

  const std::unique_ptr<Catalog> catalog_;
  const Backends backends_;
  const std::string default_backend_;
  std::mutex
      catalog_mutex_;  // one change of a dataset at a time; guards catalog_ and the replacing of snapshot_
  Snapshot<Datasets> snapshot_;
};

}  // namespace kvstore
