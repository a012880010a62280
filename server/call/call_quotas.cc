#include "server/call/call_quotas.h"

#include <algorithm>

namespace kvstore::server {
namespace {

bool Counts(const Quota* quota) { return quota != nullptr && quota->is_limited(); }

}  // namespace

void CallQuotas::Find(const Principal* principal, std::string_view dataset) {
  quotas_ = {};
  if (principal == nullptr) return;
  quotas_[0] = &principal->share->quota;
  quotas_[1] = principal->QuotaOf(dataset);
}

absl::Status CallQuotas::Admit(size_t bytes) {
  const auto now = Quota::Clock::now();
  // The second quota is asked before the first one is charged: its refusal costs nothing of the first.
  if (Counts(quotas_[0]) && Counts(quotas_[1])) {
    if (const auto refusal = quotas_[1]->Check(now)) return Refuse(*quotas_[1], *refusal);
  }
  for (size_t i = 0; i < quotas_.size(); ++i) {
    if (!Counts(quotas_[i])) continue;
    if (const auto refusal = quotas_[i]->Admit(bytes, now)) return Refuse(*quotas_[i], *refusal);
    in_flight_[i] = quotas_[i];
  }
  return absl::OkStatus();
}

absl::Status CallQuotas::Refuse(Quota& quota, const Quota::Refusal& refusal) {
  Release();
  refused_by_ = {&quota, refusal.limit};
  return quota.Error(refusal);
}

void CallQuotas::End() {
  Release();
  if (refused_by_) refused_by_->first->CountRefused(refused_by_->second);
}

void CallQuotas::Release() {
  for (Quota*& quota : in_flight_) {
    if (quota != nullptr) std::exchange(quota, nullptr)->Release();
  }
}

void CallQuotas::Take(size_t bytes) {
  for (Quota* quota : quotas_) {
    if (Counts(quota)) quota->Take(bytes, Quota::Clock::now());
  }
}

bool CallQuotas::MaySend() const {
  return std::all_of(quotas_.begin(), quotas_.end(), [](const Quota* quota) {
    return !Counts(quota) || quota->MaySend(Quota::Clock::now());
  });
}

}  // namespace kvstore::server
