#include "server/call/forbidden_objects.h"

#include <fmt/format.h>

#include "idgen/object_id.h"

namespace kvstore::server {

absl::StatusOr<ForbiddenObjects> ForbiddenObjects::Of(Router& router, const Principal* principal) {
  ForbiddenObjects forbidden;
  if (principal == nullptr) return forbidden;
  forbidden.caller_ = principal->name;
  const auto specs = router.ListDatasets();
  if (!specs.ok()) return specs.status();
  for (const DatasetSpec& spec : *specs) {
    if (spec.shape == Shape::kObjects && !CheckRight(principal, spec.name, Right::kRead).ok()) {
      forbidden.types_.insert(spec.type);
    }
  }
  return forbidden;
}

bool ForbiddenObjects::Contains(uint64_t id) const {
  if (types_.empty()) return false;
  const auto parsed = ObjectId::FromValue(id);
  return parsed.ok() && types_.contains(parsed->type());
}

absl::Status ForbiddenObjects::Error() const {
  return absl::PermissionDeniedError(fmt::format("'{}' lacks the right to read this object", caller_));
}

}  // namespace kvstore::server
