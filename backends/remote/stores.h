#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_api/mapping_store.h"
#include "backend_api/object_store.h"
#include "backend_api/row_store.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/kvstore.h"

/// The stores of a dataset on another server. Each call is forwarded to the server, and positions are sent as
/// markers. Thread-safe.
namespace kvstore::remote {

class RemoteRowStore : public RowStore {
 public:
  RemoteRowStore(std::shared_ptr<KVStore> server, const DatasetSpec& spec)
      : server_(std::move(server)), dataset_(spec.name), incarnation_(spec.incarnation) {}

  absl::StatusOr<RowPage> Get(std::string_view row, const ReadOptions& options,
                              const std::optional<RowPosition>& after) override;
  absl::StatusOr<PutResult> Put(std::string_view row, std::span<const CellWrite> cells,
                                const WriteOptions& options) override;
  absl::Status Delete(std::string_view row, const DeleteOptions& options) override;
  std::vector<absl::StatusOr<RowPage>> GetMany(std::span<const RowRead> reads) override;
  std::vector<absl::StatusOr<PutResult>> PutMany(std::span<const RowWrite> writes) override;
  std::vector<absl::Status> DeleteMany(std::span<const RowDelete> deletes) override;
  absl::StatusOr<std::vector<Partition>> Partitions(size_t wanted) override;
  absl::StatusOr<std::unique_ptr<RowScan>> Scan(const RowRange& range, const ScanOptions& options,
                                                const std::optional<ScanPosition>& after) override;

 private:
  /// Opens the marker of a page that the server has answered.
  absl::StatusOr<RowPage> Open(std::string_view row, absl::StatusOr<Row> page) const;

  const std::shared_ptr<KVStore> server_;
  const std::string dataset_;
  const uint64_t incarnation_;
};

class RemoteObjectStore : public ObjectStore {
 public:
  RemoteObjectStore(std::shared_ptr<KVStore> server, const DatasetSpec& spec)
      : server_(std::move(server)), dataset_(spec.name) {}

  absl::StatusOr<uint64_t> Create(std::string_view data, const CreateOptions& options) override;
  absl::StatusOr<Object> Get(uint64_t id, const ObjectReadOptions& options) override;
  std::vector<absl::StatusOr<Object>> GetMany(std::span<const uint64_t> ids,
                                              const ObjectReadOptions& options) override;
  absl::StatusOr<Object> Update(uint64_t id, const ObjectTransform& transform,
                                const UpdateOptions& options) override;
  absl::Status Erase(uint64_t id) override;

 private:
  const std::shared_ptr<KVStore> server_;
  const std::string dataset_;
};

class RemoteMappingStore : public MappingStore {
 public:
  RemoteMappingStore(std::shared_ptr<KVStore> server, const DatasetSpec& spec)
      : server_(std::move(server)), dataset_(spec.name), incarnation_(spec.incarnation) {}

  absl::Status Add(uint64_t from, uint64_t to, std::optional<uint64_t> sequence) override;
  absl::StatusOr<bool> Remove(uint64_t from, uint64_t to) override;
  absl::StatusOr<MappingList> List(uint64_t from, const MappingQuery& query) override;
  absl::StatusOr<uint64_t> Count(uint64_t from) override;

 private:
  const std::shared_ptr<KVStore> server_;
  const std::string dataset_;
  const uint64_t incarnation_;
};

}  // namespace kvstore::remote
