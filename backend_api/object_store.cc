#include "backend_api/object_store.h"

#include <fmt/format.h>

#include "backend_api/batch_bytes.h"
#include "kvstore_api/call_scope.h"

namespace kvstore {

absl::Status InactiveObjectError(uint64_t id) {
  return absl::NotFoundError(fmt::format("object_id: object {} is deleted (\"active\": false)", id));
}

std::vector<absl::StatusOr<Object>> ObjectStore::GetMany(std::span<const uint64_t> ids,
                                                         const ObjectReadOptions& options) {
  std::vector<absl::StatusOr<Object>> objects;
  objects.reserve(ids.size());
  BatchBytes bytes;
  for (const uint64_t id : ids) {
    const absl::Status status = bytes.full() ? BatchFullError() : CheckCall();
    objects.push_back(status.ok() ? Get(id, options) : absl::StatusOr<Object>(status));
    if (objects.back().ok()) bytes.Add(objects.back()->data.size());
  }
  return objects;
}

}  // namespace kvstore
