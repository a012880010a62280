#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "router/router.h"
#include "server/call/access.h"

namespace kvstore::server {

/// The objects that a caller may not read, which a join of a mapping with objects may come upon. An immutable
/// value.
class ForbiddenObjects {
 public:
  /// principal  Null: it may read all.
  static absl::StatusOr<ForbiddenObjects> Of(Router& router, const Principal* principal);

  /// Returns whether the caller may not read the object with this ID, whether there is one or not.
  bool Contains(uint64_t id) const;
  /// Returns the error that stands in place of such an object.
  absl::Status Error() const;

 private:
  std::string caller_;
  std::set<uint32_t> types_;  // of datasets
};

}  // namespace kvstore::server
