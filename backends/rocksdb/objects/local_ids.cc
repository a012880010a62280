#include "backends/rocksdb/objects/local_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "backends/rocksdb/engine/status.h"
#include "base/big_endian.h"
#include "idgen/object_id.h"

namespace kvstore::rocks {
namespace {

constexpr uint64_t kReservation = 64;  // local IDs
constexpr std::string_view kCounterPrefix = "ids/";

std::string Encode(uint64_t counter) {
  std::string value;
  AppendBigEndian(value, counter);
  return value;
}

/// Reads a stored counter; 1 if there is none.
absl::StatusOr<uint64_t> ReadCounter(Engine& engine, const std::string& key) {
  std::string stored;
  const auto status = engine.db().Get({}, engine.meta(), key, &stored);
  if (status.IsNotFound()) return 1;
  if (!status.ok()) return ToStatus(status, "read a counter of IDs");
  if (stored.size() != sizeof(uint64_t)) return absl::DataLossError("a counter of IDs does not decode");
  return ReadBigEndian<uint64_t>(stored);
}

}  // namespace

std::string LocalIds::FloorKey(uint64_t incarnation) {
  std::string key(kCounterPrefix);
  AppendBigEndian(key, incarnation);
  return key;
}

std::string LocalIds::CounterKey(uint64_t incarnation, uint32_t shard) {
  std::string key(kCounterPrefix);
  AppendBigEndian(key, incarnation);
  AppendBigEndian(key, shard);
  return key;
}

absl::Status LocalIds::RaiseFloor(Engine& engine, uint64_t incarnation, uint64_t left_out) {
  const auto counters = Stored(engine, incarnation);
  if (!counters.ok()) return counters.status();
  const auto floor = ReadCounter(engine, FloorKey(incarnation));
  if (!floor.ok()) return floor.status();
  uint64_t least = *floor;
  for (const auto& [shard, next] : *counters) least = std::max(least, next);
  // A create takes at least a byte of a log, and counters are ahead by a reservation.
  return StoreFloor(engine, incarnation, std::min(least + left_out + kReservation, ObjectId::kMaxLocal + 1));
}

absl::Status LocalIds::StoreFloor(Engine& engine, uint64_t incarnation, uint64_t floor) {
  rocksdb::WriteBatch batch;
  if (const auto status = batch.Put(engine.meta(), FloorKey(incarnation), Encode(floor)); !status.ok()) {
    return ToStatus(status, "raise the counters of IDs");
  }
  return engine.Write(batch, /*sync=*/true);
}

absl::StatusOr<std::map<uint32_t, uint64_t>> LocalIds::Stored(Engine& engine, uint64_t incarnation) {
  std::map<uint32_t, uint64_t> next;
  const std::string begin = CounterKey(incarnation, 0);
  const std::string end = CounterKey(incarnation, ObjectId::kMaxShard + 1);
  const std::unique_ptr<rocksdb::Iterator> it(engine.db().NewIterator({}, engine.meta()));
  for (it->Seek(begin); it->Valid() && it->key().compare(end) < 0; it->Next()) {
    if (it->value().size() != sizeof(uint64_t))
      return absl::DataLossError("a counter of IDs does not decode");
    const std::string_view key = it->key().ToStringView();
    next[ReadBigEndian<uint32_t>(key.substr(key.size() - sizeof(uint32_t)))] =
        ReadBigEndian<uint64_t>(it->value().ToStringView());
  }
  if (!it->status().ok()) return ToStatus(it->status(), "read the counters of IDs");
  return next;
}

absl::StatusOr<LocalIdFloors> LocalIds::Floors(Engine& engine, uint64_t incarnation) {
  auto stored = Stored(engine, incarnation);
  if (!stored.ok()) return stored.status();
  const auto floor = ReadCounter(engine, FloorKey(incarnation));
  if (!floor.ok()) return floor.status();
  LocalIdFloors floors{.shards = *std::move(stored), .others = *floor};
  for (auto& [shard, least] : floors.shards) least = std::max(least, *floor);
  return floors;
}

LocalIds::~LocalIds() {
  if (engine_->FindFamily(family_->settings->name) != family_) return;  // dropped
  for (const auto& [shard, counter] : counters_) {
    // Store the unused rest of the reservation as free, unless a migration may have raised the counter
    // meanwhile. If that fails there is a gap, which is harmless.
    if (counter.next >= counter.reserved || family_->gate.state() != EndpointState::kServing) continue;
    const MutexLock lock(*stores_);
    // Others may have been made for the dataset meanwhile, and have reserved IDs after these.
    const auto stored = ReadCounter(*engine_, CounterKey(family_->settings->incarnation, shard));
    if (stored.ok() && *stored == counter.reserved) Store(shard, counter.next).IgnoreError();
  }
}

absl::StatusOr<LocalIds::Counter*> LocalIds::Find(uint32_t shard) {
  const auto found = counters_.find(shard);
  if (found != counters_.end()) return &found->second;
  const uint64_t incarnation = family_->settings->incarnation;
  const auto stored = ReadCounter(*engine_, CounterKey(incarnation, shard));
  if (!stored.ok()) return stored.status();
  const auto floor = ReadCounter(*engine_, FloorKey(incarnation));
  if (!floor.ok()) return floor.status();
  const uint64_t next = std::max(*stored, *floor);
  const Counter counter{next, next};
  return &counters_.emplace(shard, counter).first->second;
}

absl::Status LocalIds::Reserve(uint32_t shard, uint64_t reserved) {
  const MutexLock lock(*stores_);
  return Store(shard, reserved);
}

absl::Status LocalIds::Store(uint32_t shard, uint64_t counter) {
  rocksdb::WriteBatch batch;
  const auto status =
      batch.Put(engine_->meta(), CounterKey(family_->settings->incarnation, shard), Encode(counter));
  if (!status.ok()) return ToStatus(status, "reserve IDs");
  // Not synced: the create that needs this reservation follows it in the same log, and syncs both if it must.
  return engine_->Write(batch, /*sync=*/false);
}

absl::Status LocalIds::RaiseTo(const LocalIdFloors& least) {
  const MutexLock lock(mutex_);
  const uint64_t incarnation = family_->settings->incarnation;
  if (least.others > 1) {
    const auto floor = ReadCounter(*engine_, FloorKey(incarnation));
    if (!floor.ok()) return floor.status();
    if (*floor < least.others) {
      if (auto status = StoreFloor(*engine_, incarnation, least.others); !status.ok()) return status;
    }
    // Counters that are in memory already were read before the floor was raised.
    for (const auto& [shard, counter] : counters_) {
      if (auto status = Raise(shard, least.others); !status.ok()) return status;
    }
  }
  for (const auto& [shard, next] : least.shards) {
    if (auto status = Raise(shard, next); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status LocalIds::Raise(uint32_t shard, uint64_t next) {
  const auto counter = Find(shard);
  if (!counter.ok()) return counter.status();
  if ((*counter)->next >= next) return absl::OkStatus();
  if ((*counter)->reserved < next) {
    if (auto status = Reserve(shard, next); !status.ok()) return status;
    (*counter)->reserved = next;
  }
  (*counter)->next = next;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> LocalIds::Next(uint32_t shard) {
  const MutexLock lock(mutex_);
  const auto found = Find(shard);
  if (!found.ok()) return found.status();
  Counter& counter = **found;
  if (counter.next > ObjectId::kMaxLocal) {
    return absl::ResourceExhaustedError(
        fmt::format("shard {}: all {} local IDs of type {} are used", shard, ObjectId::kMaxLocal, type_));
  }
  if (counter.next >= counter.reserved) {
    const uint64_t reserved = std::min(counter.next + kReservation, ObjectId::kMaxLocal + 1);
    if (auto status = Reserve(shard, reserved); !status.ok()) return status;
    counter.reserved = reserved;
  }
  return counter.next++;
}

absl::StatusOr<std::vector<uint32_t>> LocalIds::UsedShards() {
  const MutexLock lock(mutex_);
  if (used_.empty()) {
    const auto counters = Stored(*engine_, family_->settings->incarnation);
    if (!counters.ok()) return counters.status();
    for (const auto& [shard, next] : *counters) {
      if (next > 1) used_.push_back(shard);
    }
    // Without any object, the first shard is as good as any.
    if (used_.empty()) used_.push_back(0);
  }
  return used_;
}

absl::Status LocalIds::Drop(Engine& engine, uint64_t incarnation, rocksdb::WriteBatch& batch) {
  const std::string begin = FloorKey(incarnation);
  const std::string end = CounterKey(incarnation, ObjectId::kMaxShard + 1);
  const auto status = batch.DeleteRange(engine.meta(), begin, end);
  return status.ok() ? absl::OkStatus() : ToStatus(status, "forget the counters of IDs");
}

std::shared_ptr<LocalIds> LocalIdsRegistry::ForDataset(const std::shared_ptr<Engine>& engine,
                                                       const std::shared_ptr<Family>& family, uint32_t type) {
  const MutexLock lock(mutex_);
  Known& known = known_[family->settings->incarnation];
  std::shared_ptr<LocalIds> ids = known.ids.lock();
  if (!ids) known.ids = ids = std::make_shared<LocalIds>(engine, family, type, known.stores);
  return ids;
}

}  // namespace kvstore::rocks
