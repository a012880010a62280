#include "server/call/brief_calls.h"

#include "server/call/ends_elsewhere.h"

namespace kvstore::server {
namespace {

/// These calls take no time by themselves, but a busy machine may need a while for them.
constexpr std::chrono::seconds kMostAge{5};

}  // namespace

bool BriefCalls::Admit(CallTransport& transport) {
  const MutexLock lock(mutex_);
  if (since_.size() >= most_) return false;
  since_.emplace(&transport, Clock::now());
  return true;
}

void BriefCalls::Release(CallTransport& transport) {
  const MutexLock lock(mutex_);
  since_.erase(&transport);
}

void BriefCalls::CancelOld() {
  const auto before = Clock::now() - kMostAge;
  // The lock keeps each of them from ending meanwhile; its end takes it.
  const EndsElsewhere elsewhere;
  const MutexLock lock(mutex_);
  for (const auto& [transport, since] : since_) {
    if (since < before) transport->Cancel();
  }
}

}  // namespace kvstore::server
