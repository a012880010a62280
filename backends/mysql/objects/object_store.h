#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "backends/mysql/dataset.h"
#include "backends/mysql/fleet.h"
#include "backends/mysql/spread.h"
#include "idgen/object_id.h"
#include "kvstore_api/object_store.h"

namespace kvstore::mysql {

/// Objects in the tables of sql/objects.sql. Thread-safe.
class MySqlObjectStore : public ObjectStore {
 public:
  MySqlObjectStore(std::shared_ptr<Fleet> fleet, std::shared_ptr<const Dataset> dataset)
      : fleet_(std::move(fleet)), dataset_(std::move(dataset)) {}

  absl::StatusOr<uint64_t> Create(std::string_view data, const CreateOptions& options) override;
  absl::StatusOr<Object> Get(uint64_t id, const ObjectReadOptions& options) override;
  std::vector<absl::StatusOr<Object>> GetMany(std::span<const uint64_t> ids,
                                              const ObjectReadOptions& options) override;
  absl::StatusOr<Object> Update(uint64_t id, const ObjectTransform& transform,
                                const UpdateOptions& options) override;
  absl::Status Erase(uint64_t id) override;

 private:
  absl::StatusOr<uint64_t> CreateOn(uint32_t shard, std::string_view data, std::string_view request_id);
  /// On the shard that the request_id chooses, unless there is one on a shard that it chose before.
  absl::StatusOr<uint64_t> CreateOnce(const Spread& spread, std::string_view data,
                                      const CreateOptions& options);
  /// The object that a create with this request_id has made there.
  absl::StatusOr<std::optional<uint64_t>> FindMade(uint32_t shard, std::string_view request_id);
  /// The new object's local ID.
  absl::StatusOr<uint64_t> Insert(Connection& connection, uint32_t shard, std::string_view data,
                                  std::string_view request_id);
  /// The shard of an ID; INVALID_ARGUMENT if it is not open.
  absl::StatusOr<uint32_t> ShardOf(std::string_view field, uint64_t id) const;
  absl::Status CheckOpen(std::string_view field, uint32_t shard) const;
  /// What one statement reads: the IDs at `places`, which are on `shards` neighbouring shards of one host.
  struct Group {
    uint32_t first_shard = 0;
    uint32_t shards = 1;
    std::vector<size_t> places;
  };
  std::vector<Group> GroupByShards(std::span<const uint64_t> ids,
                                   std::vector<absl::StatusOr<Object>>& results) const;
  void GetGroup(const Group& group, std::span<const uint64_t> ids, const ObjectReadOptions& options,
                std::vector<absl::StatusOr<Object>>& results);

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
  std::atomic<bool> warned_{false};  // that a shard's IDs come to their end
};

}  // namespace kvstore::mysql
