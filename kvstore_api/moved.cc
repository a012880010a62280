#include "kvstore_api/moved.h"

#include "absl/strings/cord.h"

namespace kvstore {
namespace {

constexpr char kPayload[] = "kvstore/moving";
constexpr char kGone[] = "gone";

/// UNAVAILABLE, for whoever meets it without a router: to try again is right.
absl::Status Moving(std::string_view what, std::string_view message) {
  absl::Status status = absl::UnavailableError(absl::string_view(message.data(), message.size()));
  status.SetPayload(kPayload, absl::Cord(absl::string_view(what.data(), what.size())));
  return status;
}

}  // namespace

absl::Status MovedError(std::string_view message) { return Moving("moved", message); }
absl::Status FrozenError(std::string_view message) { return Moving("frozen", message); }
absl::Status GoneError(absl::Status status) {
  status.SetPayload(kPayload, absl::Cord(kGone));
  return status;
}
bool IsGone(const absl::Status& status) {
  if (status.ok()) return false;
  const auto payload = status.GetPayload(kPayload);
  return payload && *payload == kGone;
}
bool IsMoving(const absl::Status& status) { return !status.ok() && status.GetPayload(kPayload).has_value(); }

}  // namespace kvstore
