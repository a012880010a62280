#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend_api/batch_bytes.h"
#include "backend_api/row_store.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"
#include "backends/mysql/rows/row_reader.h"
#include "backends/mysql/rows/row_writer.h"

namespace kvstore::mysql {

/// Rows in the tables of sql/rows.sql. A row lies on the mod shard of its key. Thread-safe.
class MySqlRowStore : public RowStore {
 public:
  MySqlRowStore(std::shared_ptr<Fleet> fleet, std::shared_ptr<const Dataset> dataset)
      : fleet_(fleet), dataset_(dataset), writer_(std::move(fleet), std::move(dataset)) {}

  absl::StatusOr<RowPage> Get(std::string_view row, const ReadOptions& options,
                              const std::optional<RowPosition>& after) override;
  absl::StatusOr<PutResult> Put(std::string_view row, std::span<const CellWrite> cells,
                                const WriteOptions& options) override;
  absl::Status Delete(std::string_view row, const DeleteOptions& options) override;
  std::vector<absl::StatusOr<RowPage>> GetMany(std::span<const RowRead> reads) override;
  std::vector<absl::StatusOr<PutResult>> PutMany(std::span<const RowWrite> writes) override;
  std::vector<absl::Status> DeleteMany(std::span<const RowDelete> deletes) override;
  /// Returns one partition for each shard, however many are wanted.
  absl::StatusOr<std::vector<Partition>> Partitions(size_t wanted) override;
  absl::StatusOr<std::unique_ptr<RowScan>> Scan(const RowRange& range, const ScanOptions& options,
                                                const std::optional<ScanPosition>& after) override;

 private:
  uint32_t ShardOf(std::string_view row) const;
  /// Calls `work(shard, places)` for each shard that has some of `keys`, with their places; hosts in
  /// parallel.
  void ByShard(std::span<const std::string_view> keys,
               const std::function<void(uint32_t, std::span<const size_t>)>& work) const;
  /// Reads the first pages of the rows at `places`, all on one shard, until `bytes` is full.
  void GetOnShard(uint32_t shard, std::span<const RowRead> reads, std::span<const size_t> places,
                  BatchBytes& bytes, std::vector<absl::StatusOr<RowPage>>& pages) const;
  /// Reads the first pages of the rows at `places`, all of which IsPlain, by one statement. Returns the
  /// places of those that it could not complete; their pages are left as they are.
  std::vector<size_t> ReadTogether(Connection& connection, const Table& table, std::span<const RowRead> reads,
                                   std::span<const size_t> places,
                                   std::vector<absl::StatusOr<RowPage>>& pages) const;

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
  const RowWriter writer_;
};

}  // namespace kvstore::mysql
