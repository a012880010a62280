#include "migration/contradiction.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace kvstore::migration {

using State = EndpointState;

bool ServesAnywhere(const EndpointStatus& status) {
  return status.Any(State::kServing) || status.Any(State::kFrozen);
}

std::string StatesText(const EndpointStatus& status) {
  std::string text;
  for (const auto& [state, count] : status.partitions) {
    text += fmt::format("{}{} on {} partition{}", text.empty() ? "" : ", ", kvstore::Name(state), count,
                        count == 1 ? "" : "s");
  }
  return text.empty() ? "no partitions" : text;
}

bool IsOutdated(const Record& record, const EndpointStatus& truth, const EndpointStatus* copy) {
  // Before its first worker a record knows no epoch, and the sides may know that of an earlier migration.
  if (record.phase == Phase::kCreated || record.phase == Phase::kPrepare) return false;
  return std::max(truth.epoch, copy == nullptr ? 0 : copy->epoch) > record.epoch;
}

bool ShowsCutover(const EndpointStatus& truth, const EndpointStatus& copy) {
  return truth.Any(State::kMoved) || copy.Any(State::kMoved) || ServesAnywhere(copy);
}

std::string FindContradiction(const Record& record, const std::string& routed, const EndpointStatus& truth,
                              const EndpointStatus* copy) {
  const std::string& truth_name = record.on_target ? record.target : record.source;
  const std::string& copy_name = record.on_target ? record.source : record.target;
  const bool copy_serves = copy != nullptr && ServesAnywhere(*copy);
  const bool outdated = IsOutdated(record, truth, copy);
  const auto serves = [&](std::string_view role) {
    return fmt::format("'{}', which {}, serves: it is {}", copy_name, role, StatesText(*copy));
  };
  const auto age = [&](std::string_view what) {
    return fmt::format(
        "the record is older than what both sides have, and {}: it knows worker {}, and they know "
        "worker {}",
        what, record.epoch, std::max(truth.epoch, copy == nullptr ? 0 : copy->epoch));
  };
  switch (record.phase) {
    case Phase::kFinishing:
      if (copy_serves) return serves("the record says is to be removed");
      if (!truth.All(State::kServing)) {
        return fmt::format(
            "'{}', which the record says is the only one to stay, does not serve everywhere: it is "
            "{}",
            truth_name, StatesText(truth));
      }
      return outdated ? age("says that one is to be removed") : "";
    case Phase::kAborting:
      // A host of it may have come back as it was before a rollback: then the other side serves beside it,
      // and the catalog says so.
      if (copy_serves && !(routed == truth_name && truth.All(State::kServing) && !outdated)) {
        return serves("the record says is to be removed");
      }
      if (record.released) return outdated ? age("says that one is to be removed") : "";
      if (truth.Any(State::kAbsent)) {
        return fmt::format("'{}', which the record says is the only one to stay, is {}", truth_name,
                           StatesText(truth));
      }
      if (copy == nullptr && truth.Any(State::kMoved)) {
        return fmt::format(
            "'{}', which the record says is the only one to stay, has moved, and '{}' cannot be "
            "asked",
            truth_name, copy_name);
      }
      return outdated ? age("says that one is to be removed") : "";
    case Phase::kCutover:
      if (!outdated) return "";
      if (copy_serves && (ServesAnywhere(truth) || !copy->All(State::kServing))) {
        return age(fmt::format("'{}' serves in the middle of the cutover that it describes", copy_name));
      }
      if (!copy_serves && !truth.All(State::kServing)) {
        return age(fmt::format("'{}' does not serve everywhere", truth_name));
      }
      return "";
    case Phase::kBackfill:
    case Phase::kVerify:
    case Phase::kReady:
    case Phase::kReversible:
      // It would be made anew there, empty, in place of the side that serves.
      if (copy_serves && truth.Any(State::kAbsent)) {
        return fmt::format("'{}', which the record takes for the truth, is {}, and '{}' serves", truth_name,
                           StatesText(truth), copy_name);
      }
      return "";
    default:
      return "";
  }
}

}  // namespace kvstore::migration
