#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/rocksdb/engine.h"
#include "backends/rocksdb/requests.h"
#include "idgen/object_id.h"
#include "kvstore_api/batch_bytes.h"
#include "kvstore_api/object_store.h"

namespace kvstore::rocks {

/// An object as it is stored.
std::string EncodeObject(std::string_view data, uint64_t timestamp);
/// DATA_LOSS if it does not decode.
absl::StatusOr<Object> DecodeObject(uint64_t id, std::string_view stored);

/// Objects in a column family: be64(id) -> flags(1) be64(timestamp) JSON.
///
/// All 65,536 shards are open: embedded, a shard is only a part of the ID. Local IDs count up from 1 on each
/// shard. The counters are kept in the default family, ahead by a reservation, so that an ID is never given
/// twice, also after a crash, which may leave a gap, or after a hard delete.
class RocksObjectStore : public ObjectStore {
 public:
  /// An object created without `near` or `shard` goes to one of the first so many shards, so that a dataset
  /// that moves to a fleet later needs only those open.
  static constexpr uint32_t kSpreadShards = 16;

  RocksObjectStore(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family, uint32_t type)
      : engine_(std::move(engine)),
        family_(std::move(family)),
        type_(type),
        requests_(*engine_, family_->settings->incarnation) {}
  ~RocksObjectStore() override;

  absl::StatusOr<uint64_t> Create(std::string_view data, const CreateOptions& options) override;
  absl::StatusOr<Object> Get(uint64_t id, const ObjectReadOptions& options) override;
  std::vector<absl::StatusOr<Object>> GetMany(std::span<const uint64_t> ids,
                                              const ObjectReadOptions& options) override;
  absl::StatusOr<Object> Update(uint64_t id, const ObjectTransform& transform,
                                const UpdateOptions& options) override;
  absl::Status Erase(uint64_t id) override;

  /// The next local ID of each shard that has any, or one that is reserved.
  static absl::StatusOr<std::map<uint32_t, uint64_t>> Counters(Engine& engine, uint64_t incarnation);
  /// Local IDs given from now on are at least these.
  absl::Status RaiseCounters(const std::map<uint32_t, uint64_t>& least);

  /// Forgets counters and requests of a dataset that is dropped.
  static absl::Status DropState(Engine& engine, uint64_t incarnation);
  /// After a part of the logs was left out, of so many bytes: all shards give IDs from here on that are above
  /// any that may have been given there.
  static absl::Status RaiseFloor(Engine& engine, uint64_t incarnation, uint64_t left_out);
  /// Where the least counter of all shards is kept, if there is one.
  static std::string FloorKey(uint64_t incarnation);
  /// Where the counter of a shard is kept: the first local ID that is not reserved.
  static std::string CounterKey(uint64_t incarnation, uint32_t shard);

 private:
  /// Appends the objects to `objects`.
  void GetTogether(std::span<const uint64_t> ids, const ObjectReadOptions& options, BatchBytes& bytes,
                   std::vector<absl::StatusOr<Object>>& objects);
  struct Counter {
    uint64_t next = 0;      // the next local ID
    uint64_t reserved = 0;  // IDs from here on are not reserved
  };

  absl::StatusOr<ObjectId> NextId(const CreateOptions& options);
  /// The shards that objects are spread over whose creator names none. While the dataset migrates they must
  /// be open on the other side too: those that have objects are.
  absl::StatusOr<std::vector<uint32_t>> Spread();
  /// NextId, of which there is no object.
  absl::StatusOr<ObjectId> UnusedId(const CreateOptions& options);
  absl::StatusOr<uint64_t> NextLocal(uint32_t shard);
  /// Read if it is not yet. Under counters_mutex_.
  absl::StatusOr<Counter*> FindCounter(uint32_t shard);
  absl::Status StoreCounter(uint32_t shard, uint64_t reserved);
  absl::Status Store(uint64_t id, std::string_view data, uint64_t timestamp,
                     std::string_view request_id = "");
  uint64_t Hash(uint64_t id) const;

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Family> family_;
  const uint32_t type_;
  Requests requests_;
  std::mutex counters_mutex_;
  std::map<uint32_t, Counter> counters_;  // by shard
  std::vector<uint32_t> used_;            // as Spread found them first; guarded by counters_mutex_
  std::atomic<uint32_t> next_shard_ = 0;
  std::atomic<uint32_t> next_lock_ = 0;  // spreads creates over the row locks
};

}  // namespace kvstore::rocks
