#include "backend_api/leftover.h"

#include <charconv>
#include <string>

#include "absl/strings/cord.h"

namespace kvstore {
namespace {

constexpr char kLeftoverPayload[] = "kvstore/leftover";

}  // namespace

absl::Status LeftoverError(std::string_view message, uint64_t incarnation) {
  absl::Status status = absl::FailedPreconditionError(absl::string_view(message.data(), message.size()));
  status.SetPayload(kLeftoverPayload, absl::Cord(std::to_string(incarnation)));
  return status;
}

std::optional<uint64_t> LeftoverOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kLeftoverPayload);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  uint64_t incarnation = 0;
  std::from_chars(text.data(), text.data() + text.size(), incarnation);
  return incarnation;
}

}  // namespace kvstore
