#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/local_id_floors.h"
#include "backends/rocksdb/engine/engine.h"
#include "base/mutex.h"

namespace kvstore::rocks {

/// Assigns the local IDs of a dataset of objects, which count up from 1 on each shard. The counters are
/// stored in the default family, ahead by a reservation, so that an ID is never assigned twice, not even
/// after a crash (which may leave a gap) or after a hard delete. Thread-safe.
class LocalIds {
 public:
  /// Objects that are created without a shard go to the first so many.
  static constexpr uint32_t kSpreadShards = 16;

  /// type    the type number of the dataset's objects, for messages.
  /// stores  held while a counter is stored. All LocalIds of a dataset share it: the ones before may still be
  ///         returning what they have reserved.
  LocalIds(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family, uint32_t type,
           std::shared_ptr<Mutex> stores)
      : engine_(std::move(engine)), family_(std::move(family)), type_(type), stores_(std::move(stores)) {}
  /// Returns the unused rest of each reservation.
  ~LocalIds();
  LocalIds(const LocalIds&) = delete;
  LocalIds& operator=(const LocalIds&) = delete;

  /// Returns the next local ID of a shard. RESOURCE_EXHAUSTED if the shard has assigned all IDs that there
  /// are.
  absl::StatusOr<uint64_t> Next(uint32_t shard);
  /// Raises counters: IDs assigned from now on are at least these.
  absl::Status RaiseTo(const LocalIdFloors& least);
  /// The shards over which a migrating dataset spreads objects that are created without a shard: those that
  /// had objects when this was first called, or else shard 0. They are open on the other side too, where
  /// others may not be.
  absl::StatusOr<std::vector<uint32_t>> UsedShards();

  /// The stored counter of each shard that has one: the next local ID, or a later one that is reserved.
  static absl::StatusOr<std::map<uint32_t, uint64_t>> Stored(Engine& engine, uint64_t incarnation);
  /// Returns the lowest local IDs that may be assigned next: those of the shards whose counters are stored,
  /// and the floor that a repair has set (RaiseFloor), below which nothing is assigned on any shard.
  static absl::StatusOr<LocalIdFloors> Floors(Engine& engine, uint64_t incarnation);
  /// Adds the removal of all counters of a dataset to `batch`.
  static absl::Status Drop(Engine& engine, uint64_t incarnation, rocksdb::WriteBatch& batch);
  /// After a repair has left out `left_out` bytes of the logs: raises the counters of all shards above any ID
  /// that may have been assigned in them. Harmless for a dataset without objects.
  static absl::Status RaiseFloor(Engine& engine, uint64_t incarnation, uint64_t left_out);
  /// The key of a shard's counter, which is the first local ID that is not reserved.
  static std::string CounterKey(uint64_t incarnation, uint32_t shard);

 private:
  struct Counter {
    uint64_t next = 0;      // the next local ID
    uint64_t reserved = 0;  // the first ID that is not reserved
  };

  /// The key of the lowest value that the counters of all shards may have, if one is stored.
  static std::string FloorKey(uint64_t incarnation);
  static absl::Status StoreFloor(Engine& engine, uint64_t incarnation, uint64_t floor);
  /// Raises the counter of a shard: its next ID is at least this one.
  absl::Status Raise(uint32_t shard, uint64_t next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The counter of a shard, which is read from the database the first time.
  absl::StatusOr<Counter*> Find(uint32_t shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Reserves the IDs of a shard below this one.
  absl::Status Reserve(uint32_t shard, uint64_t reserved);
  absl::Status Store(uint32_t shard, uint64_t counter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(*stores_);

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Family> family_;
  const uint32_t type_;
  const std::shared_ptr<Mutex> stores_;
  Mutex mutex_;                                                   // taken before *stores_
  std::map<uint32_t, Counter> counters_ ABSL_GUARDED_BY(mutex_);  // by shard
  std::vector<uint32_t> used_ ABSL_GUARDED_BY(mutex_);            // as UsedShards found them first
};

/// Holds the one LocalIds of each dataset, shared by the stores that create objects and the endpoints that
/// raise the counters. Thread-safe.
class LocalIdsRegistry {
 public:
  /// Returns the LocalIds of the family's dataset, and makes them if nobody has them now.
  std::shared_ptr<LocalIds> ForDataset(const std::shared_ptr<Engine>& engine,
                                       const std::shared_ptr<Family>& family, uint32_t type);

 private:
  struct Known {
    std::weak_ptr<LocalIds> ids;
    const std::shared_ptr<Mutex> stores = std::make_shared<Mutex>();
  };

  Mutex mutex_;
  std::map<uint64_t, Known> known_ ABSL_GUARDED_BY(mutex_);  // by incarnation
};

}  // namespace kvstore::rocks
