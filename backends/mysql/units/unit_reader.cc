#include "backends/mysql/units/unit_reader.h"

#include <utility>

#include "backends/mysql/units/lanes.h"
#include "backends/mysql/units/unit_snapshot.h"

namespace kvstore::mysql {

MySqlUnitReader::MySqlUnitReader(std::shared_ptr<Fleet> fleet, const DatasetSpec& spec,
                                 std::shared_ptr<const Dataset> dataset)
    : fleet_(std::move(fleet)),
      spec_(spec),
      dataset_(std::move(dataset)),
      units_(fleet_, {spec.shape, spec.type}, *dataset_,
             {.shards = [this] { return ShardsOf(fleet_->map(dataset_->family.space)); },
              .read = [this](uint32_t shard, const ReadTable& work) { return ReadShard(shard, work); }}) {}

absl::Status MySqlUnitReader::ReadShard(uint32_t shard, const ReadTable& work) const {
  // If the dataset has migrated, the table has another name, and the error says that it is served elsewhere.
  return fleet_->Run(dataset_->family.space, shard, Repeat::kAlways,
                     [&](Connection& connection) -> absl::Status {
                       // Large values are read by statements of their own. A migration learns from the dirty
                       // log which units it has read in part because of that; here nobody would.
                       Transaction transaction(connection, Transaction::Kind::kSnapshot);
                       absl::Status status = work(connection, dataset_->TableOn(shard));
                       transaction.Commit();
                       return status;
                     });
}

absl::StatusOr<std::unique_ptr<UnitSnapshot>> MySqlUnitReader::Snapshot(std::chrono::seconds max_age) {
  // A snapshot has no table that is made after it.
  if (TableMaker* const maker = fleet_->table_maker(); maker != nullptr && maker->MayLackTables(spec_)) {
    absl::Status made = units_.OnAll([&](Connection& connection, uint32_t shard) {
      return maker->MakeUnlessMade(connection, spec_, shard);
    });
    if (!made.ok()) return made;
  }
  return TakeSnapshot(fleet_, spec_, dataset_, max_age);
}

}  // namespace kvstore::mysql
