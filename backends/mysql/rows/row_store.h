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

  // The methods of RowStore.
#define KV_ROW_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

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
