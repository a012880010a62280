#include "base/advice.h"

#include "absl/strings/cord.h"

namespace kvstore {
namespace {

constexpr char kPayload[] = "kvstore/advice";

}  // namespace

absl::Status Advise(absl::Status status, std::string_view advice) {
  status.SetPayload(kPayload, absl::Cord(absl::string_view(advice.data(), advice.size())));
  return status;
}

std::optional<std::string> AdviceOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  return std::string(*payload);
}

}  // namespace kvstore
