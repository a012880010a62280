#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend_api/mapping_store.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"

namespace kvstore::mysql {

/// Mappings in the tables of sql/mappings.sql. A mapping lies on the shard of its `from`. Thread-safe.
class MySqlMappingStore : public MappingStore {
 public:
  MySqlMappingStore(std::shared_ptr<Fleet> fleet, std::shared_ptr<const Dataset> dataset)
      : fleet_(std::move(fleet)), dataset_(std::move(dataset)) {}

  // The methods of MappingStore.
#define KV_MAPPING_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

 private:
  /// Runs `work(connection, table)` on the shard of `from`. INVALID_ARGUMENT if that is not open.
  template <typename Work>
  auto RunOnShardOf(uint64_t from, Repeat repeat, Work work)
      -> std::invoke_result_t<Work, Connection&, const Table&>;

  /// Lists up to `limit` entries of a shard from `start` on.
  absl::StatusOr<std::vector<ScannedMapping>> ListFrom(uint32_t shard, const MappingPosition& start,
                                                       uint64_t limit);

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
};

}  // namespace kvstore::mysql
