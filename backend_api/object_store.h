#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

namespace kvstore {

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
  [[nodiscard]] virtual std::vector<absl::StatusOr<Object>> GetMany(std::span<const uint64_t> ids,
                                                                    const ObjectReadOptions& options) = 0;
  /// Reads, transforms and writes atomically; returns the object as written.
  [[nodiscard]] virtual absl::StatusOr<Object> Update(uint64_t id, const ObjectTransform& transform,
                                                      const UpdateOptions& options) = 0;
  /// Removes the object for good. Its ID is never used again.
  [[nodiscard]] virtual absl::Status Erase(uint64_t id) = 0;
};

}  // namespace kvstore
