#include "backend_api/migration_control.h"

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

bool MayTransition(EndpointState from, bool captures, EndpointState to) {
  using enum EndpointState;
  switch (to) {
    case kAbsent:
      return from == kAbsent || from == kImporting || from == kMoved;
    case kImporting:
      return from == kAbsent || from == kImporting;
    case kServing:
      return from != kAbsent;
    case kFrozen:
      return (from == kServing || from == kFrozen) && captures;
    case kMoved:
      return from == kFrozen || from == kMoved;
  }
  return false;
}

}  // namespace kvstore
