#include "backends/mysql/fleet/table_maker.h"

#include <optional>

#include "backend_api/outcome.h"

namespace kvstore::mysql {

void TableMaker::Add(uint32_t family, const DatasetSpec& spec) {
  const MutexLock lock(mutex_);
  families_[family] = spec;
}

void TableMaker::Forget(uint64_t incarnation) {
  const MutexLock lock(mutex_);
  std::erase_if(families_, [&](const auto& family) { return family.second.incarnation == incarnation; });
}

absl::StatusOr<FirstUse> TableMaker::MakeMissing(Connection& connection, const Table& table,
                                                 uint32_t shards) {
  std::optional<DatasetSpec> spec;
  {
    const MutexLock lock(mutex_);
    if (const auto found = families_.find(table.family->number); found != families_.end()) {
      spec = found->second;
    }
  }
  if (!spec) return FirstUse::kNotHere;
  for (uint32_t shard = table.shard; shard < table.shard + shards; ++shard) {
    auto made = MakeOnFirstUse(connection, *spec, shard, *records_);
    // The dataset may have gone, too, of which the caller learns in another way.
    if (!made.ok()) return GoneError(made.status());
    if (*made != FirstUse::kThere) return made;
  }
  return FirstUse::kThere;
}

bool TableMaker::MayLackTables(const DatasetSpec& spec) {
  const auto record = records_->Find(spec, /*shard=*/0);
  return !record.ok() || record->has_value();
}

absl::StatusOr<bool> TableMaker::WasNeverMade(Connection& connection, const DatasetSpec& spec,
                                              uint32_t shard) {
  if (HasTables(connection, spec, shard)) return false;
  const auto made = records_->Find(spec, shard);
  if (!made.ok()) return made.status();
  return made->has_value() && !**made;
}

}  // namespace kvstore::mysql
