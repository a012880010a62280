#include "kvstore_api/migration_endpoint.h"

namespace kvstore {

std::string_view Name(EndpointState state) {
  switch (state) {
    case EndpointState::kAbsent:
      return "absent";
    case EndpointState::kImporting:
      return "importing";
    case EndpointState::kServing:
      return "serving";
    case EndpointState::kFrozen:
      return "frozen";
    case EndpointState::kMoved:
      return "moved";
  }
  return "unknown";
}

}  // namespace kvstore
