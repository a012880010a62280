#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend_api/batch_bytes.h"
#include "backend_api/object_store.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"
#include "backends/mysql/fleet/spread.h"
#include "idgen/object_id.h"

namespace kvstore::mysql {

/// Objects in the tables of sql/objects.sql. An object lies on the shard of its ID. Thread-safe.
class MySqlObjectStore : public ObjectStore {
 public:
  MySqlObjectStore(std::shared_ptr<Fleet> fleet, std::shared_ptr<const Dataset> dataset)
      : fleet_(std::move(fleet)), dataset_(std::move(dataset)) {}

  // The methods of ObjectStore.
#define KV_OBJECT_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

 private:
  /// Creates an object on a shard; with a request_id, returns the one that was created there with it before.
  absl::StatusOr<uint64_t> CreateOn(uint32_t shard, std::string_view data, std::string_view request_id);
  /// Creates an object on the shard that the request_id chooses, unless an attempt before has created it on a
  /// shard that the request_id chose then (Spreads).
  absl::StatusOr<uint64_t> CreateOnce(const Spread& spread, std::string_view data,
                                      const CreateOptions& options);
  /// Returns the object that a create with this request_id has made on a shard; nullopt if there is none.
  absl::StatusOr<std::optional<uint64_t>> FindCreated(uint32_t shard, std::string_view request_id);
  /// Inserts an object and returns its local ID.
  absl::StatusOr<uint64_t> Insert(Connection& connection, uint32_t shard, std::string_view data,
                                  std::string_view request_id);
  /// Returns the shard of an ID; INVALID_ARGUMENT, which names `field`, if that is not open.
  absl::StatusOr<uint32_t> ShardOf(std::string_view field, uint64_t id) const;
  absl::Status CheckOpen(std::string_view field, uint32_t shard) const;
  /// The IDs at `places`, which one statement reads; they lie on `shards` neighbouring shards of one host.
  struct Group {
    uint32_t first_shard = 0;
    uint32_t shards = 1;
    std::vector<size_t> places;
  };
  /// Divides the IDs into groups. Those whose shards are not open get their errors in `results`.
  std::vector<Group> GroupByShards(std::span<const uint64_t> ids,
                                   std::vector<absl::StatusOr<Object>>& results) const;
  /// Reads the objects of a group into the same places of `results`.
  void GetGroup(const Group& group, std::span<const uint64_t> ids, const ObjectReadOptions& options,
                BatchBytes& bytes, std::vector<absl::StatusOr<Object>>& results);

  /// An object that a statement of a scan has listed.
  struct Listed {
    uint64_t local = 0;
    uint64_t timestamp = 0;
    uint64_t bytes = 0;
    std::optional<std::string> data;  // unless it has more than kInlineValueBytes
  };
  /// Lists up to `limit` objects of a shard with local IDs of [first, end).
  absl::StatusOr<std::vector<Listed>> List(uint32_t shard, uint64_t first, uint64_t end, uint64_t limit);

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
  std::atomic<bool> warned_{false};  // the log has said that a shard runs out of local IDs
};

}  // namespace kvstore::mysql
