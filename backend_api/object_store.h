#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// A page of a scan.
struct ObjectScanPage {
  std::vector<Object> objects;   ///< In ascending order of their IDs.
  std::optional<uint64_t> next;  ///< The lowest ID that was not looked at; none at the end of the range.
};

/// The NOT_FOUND of an object that was deleted softly, for a call that does not ask for such objects.
absl::Status InactiveObjectError(uint64_t id);

/// The objects of one dataset in a backend. Thread-safe. The router has checked all arguments: IDs are valid
/// and of the dataset's type, documents are JSON objects within the limits.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  /// RESOURCE_EXHAUSTED when the shard has used its last local ID.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> Create(std::string_view data,
                                                        const CreateOptions& options) = 0;
  /// NOT_FOUND also for an inactive object, unless `include_inactive` is set.
  [[nodiscard]] virtual absl::StatusOr<Object> Get(uint64_t id, const ObjectReadOptions& options) = 0;
  /// By default the objects are read one after the other, as by RowStore::GetMany.
  [[nodiscard]] virtual std::vector<absl::StatusOr<Object>> GetMany(std::span<const uint64_t> ids,
                                                                    const ObjectReadOptions& options);
  /// Reads, transforms and writes atomically; returns the object as written.
  [[nodiscard]] virtual absl::StatusOr<Object> Update(uint64_t id, const ObjectTransform& transform,
                                                      const UpdateOptions& options) = 0;
  /// Removes the object for good. Its ID is never used again.
  [[nodiscard]] virtual absl::Status Erase(uint64_t id) = 0;

  /// Returns the objects of `range` from its start on. The page ends as `options` say, and also when the
  /// thread's ScanBudget (scan_budget.h) is spent; then it may have no objects, but `next` is always after
  /// the start of the range. All backends have the order of IDs, so a scan may go on in another one.
  [[nodiscard]] virtual absl::StatusOr<ObjectScanPage> Scan(const IdRange& range,
                                                            const ObjectScanOptions& options) = 0;
  /// Returns about `wanted` partitions (Partition::ids) of about equal size; at least one.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Partition>> Partitions(size_t wanted) = 0;
};

}  // namespace kvstore
