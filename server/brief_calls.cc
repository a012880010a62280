#include "server/brief_calls.h"

namespace kvstore::server {
namespace {

/// A machine that is busy may need a while for what else takes no time.
constexpr std::chrono::seconds kMostAge{5};

}  // namespace

bool BriefCalls::Enter(grpc::CallbackServerContext& context) {
  const std::lock_guard lock(mutex_);
  if (since_.size() >= most_) return false;
  since_.emplace(&context, Clock::now());
  return true;
}

void BriefCalls::Leave(grpc::CallbackServerContext& context) {
  const std::lock_guard lock(mutex_);
  since_.erase(&context);
}

void BriefCalls::CancelOld() {
  const auto before = Clock::now() - kMostAge;
  // Held, so that none of them ends meanwhile.
  const std::lock_guard lock(mutex_);
  for (const auto& [context, since] : since_) {
    if (since < before) context->TryCancel();
  }
}

}  // namespace kvstore::server
