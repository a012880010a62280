#include "backend_api/outcome.h"

#include "absl/strings/cord.h"

namespace kvstore {
namespace {

constexpr char kMigratingPayload[] = "kvstore/moving";
constexpr char kGone[] = "gone";

/// The code is UNAVAILABLE because a caller that uses a backend without a router should retry.
absl::Status Migrating(std::string_view what, std::string_view message) {
  absl::Status status = absl::UnavailableError(absl::string_view(message.data(), message.size()));
  status.SetPayload(kMigratingPayload, absl::Cord(absl::string_view(what.data(), what.size())));
  return status;
}

}  // namespace

absl::Status MarkInDoubt(absl::Status status) {
  status.SetPayload(kInDoubtPayload, absl::Cord());
  return status;
}

absl::Status ServedElsewhereError(std::string_view message) { return Migrating("moved", message); }

absl::Status WritesHeldError(std::string_view message) { return Migrating("frozen", message); }

absl::Status GoneError(absl::Status status) {
  status.SetPayload(kMigratingPayload, absl::Cord(kGone));
  return status;
}

bool IsMigrating(const absl::Status& status) {
  return !status.ok() && status.GetPayload(kMigratingPayload).has_value();
}

bool IsGone(const absl::Status& status) {
  if (status.ok()) return false;
  const auto payload = status.GetPayload(kMigratingPayload);
  return payload && *payload == kGone;
}

}  // namespace kvstore
