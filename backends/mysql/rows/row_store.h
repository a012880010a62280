#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/mysql/dataset.h"
#include "backends/mysql/fleet.h"
#include "backends/mysql/row_reader.h"
#include "backends/mysql/row_writer.h"
#include "kvstore_api/batch_bytes.h"
#include "kvstore_api/row_store.h"

namespace kvstore::mysql {

/// Rows in the tables of sql/rows.sql, on the mod shard of their key. Thread-safe.
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
  /// One a shard, however many are wanted.
  absl::StatusOr<std::vector<Partition>> Partitions(size_t wanted) override;
  absl::StatusOr<std::unique_ptr<RowScan>> Scan(const RowRange& range, const ScanOptions& options,
                                                const std::optional<ScanPosition>& after) override;

 private:
  uint32_t ShardOf(std::string_view row) const;
  /// Calls `work(shard, places)` for the places in `keys` of each shard; hosts in parallel.
  void ByShard(std::span<const std::string_view> keys,
               const std::function<void(uint32_t, std::span<const size_t>)>& work) const;
  void GetOnShard(uint32_t shard, std::span<const RowRead> reads, std::span<const size_t> places,
                  BatchBytes& bytes, std::vector<absl::StatusOr<RowPage>>& pages) const;
  /// First pages of rows that are read whole and alike. Those that it could not complete are left as they
  /// are, and returned.
  std::vector<size_t> ReadTogether(Connection& connection, const Table& table, std::span<const RowRead> reads,
                                   std::span<const size_t> places,
                                   std::vector<absl::StatusOr<RowPage>>& pages) const;

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
  const RowWriter writer_;
};

/// What to read under these options and the dataset's settings now. `columns`: where the sorted ones are
/// kept.
RowQuery MakeQuery(const Dataset& dataset, uint64_t lowest_live, const ReadOptions& options,
                   std::optional<std::vector<std::string>>& columns);

}  // namespace kvstore::mysql
