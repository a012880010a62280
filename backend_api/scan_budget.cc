#include "backend_api/scan_budget.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "backend_api/batch_bytes.h"

namespace kvstore {
namespace {

constexpr char kPausedPayload[] = "kvstore/paused";

thread_local std::optional<uint64_t> left;

absl::Status Paused(std::string_view message, std::string_view position) {
  absl::Status status = absl::ResourceExhaustedError(absl::string_view(message.data(), message.size()));
  status.SetPayload(kPausedPayload, absl::Cord(absl::string_view(position.data(), position.size())));
  return status;
}

}  // namespace

ScanBudget::ScanBudget(uint64_t cells) : before_(left) { left = cells; }
ScanBudget::~ScanBudget() { left = before_; }

void SpendScanBudget(uint64_t cells) {
  if (left) *left -= std::min(*left, cells);
}
bool IsScanBudgetSpent() { return left == uint64_t{0}; }
uint64_t ScanBudgetLeft() { return left.value_or(UINT64_MAX); }
bool HasScanBudget() { return left.has_value(); }

absl::Status PausedError(std::string_view position) {
  return Paused("the scan has found nothing so far: call it again to continue", position);
}
bool IsPaused(const absl::Status& status) {
  return !status.ok() && status.GetPayload(kPausedPayload).has_value();
}
std::string PausedAt(const absl::Status& status) {
  const auto payload = status.GetPayload(kPausedPayload);
  return payload ? std::string(*payload) : std::string();
}

absl::Status BatchFullError() {
  return Paused(
      "batch: there was no room for this entry: the answers of a batch have about 64 MiB together at most, "
      "and 8 MiB over HTTP; ask for this one in another batch",
      "");
}

}  // namespace kvstore
