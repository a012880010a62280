#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "backend_api/batch_bytes.h"
#include "backend_api/object_store.h"
#include "backends/rocksdb/engine/engine.h"
#include "backends/rocksdb/objects/local_ids.h"
#include "backends/rocksdb/objects/requests.h"
#include "idgen/object_id.h"

namespace kvstore::rocks {

/// Encodes an object for storage: flags(1) be64(timestamp) JSON.
std::string EncodeObject(std::string_view data, uint64_t timestamp);
/// Decodes a stored object. DATA_LOSS if it does not decode.
absl::StatusOr<Object> DecodeObject(uint64_t id, std::string_view stored);

/// Objects in a column family: be64(id) -> flags(1) be64(timestamp) JSON.
///
/// All 65,536 shards are open: in an embedded store, a shard is only a part of the ID.
class RocksObjectStore : public ObjectStore {
 public:
  /// An object created without `near` or `shard` goes to one of the first kSpreadShards shards, so that a
  /// dataset that migrates to a fleet later needs only those open there.
  static constexpr uint32_t kSpreadShards = LocalIds::kSpreadShards;

  /// ids  the local IDs of the dataset (LocalIdsRegistry::ForDataset).
  RocksObjectStore(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family, uint32_t type,
                   std::shared_ptr<LocalIds> ids)
      : engine_(std::move(engine)),
        family_(std::move(family)),
        type_(type),
        ids_(std::move(ids)),
        requests_(*engine_, family_->settings->incarnation) {}

  // The methods of ObjectStore.
#define KV_OBJECT_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

  /// Removes the counters and the remembered requests of a dataset that is dropped.
  static absl::Status DropState(Engine& engine, uint64_t incarnation);

 private:
  /// Reads the objects by one MultiGet, and appends them to `objects`.
  void GetGroup(std::span<const uint64_t> ids, const ObjectReadOptions& options, BatchBytes& bytes,
                std::vector<absl::StatusOr<Object>>& objects);
  /// Assigns an ID on the shard that `options` name, or on one of the shards in turn.
  absl::StatusOr<ObjectId> NextId(const CreateOptions& options);
  /// As NextId, but skips IDs that objects have already: a migration may have brought them.
  absl::StatusOr<ObjectId> UnusedId(const CreateOptions& options);
  /// Writes the object, and remembers `request_id` with it unless that is empty.
  absl::Status Store(uint64_t id, std::string_view data, uint64_t timestamp,
                     std::string_view request_id = "");
  uint64_t Hash(uint64_t id) const;

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Family> family_;
  const uint32_t type_;
  const std::shared_ptr<LocalIds> ids_;
  Requests requests_;
  std::atomic<uint32_t> next_shard_ = 0;
  std::atomic<uint32_t> next_lock_ = 0;  // spreads creates over the row locks
};

}  // namespace kvstore::rocks
