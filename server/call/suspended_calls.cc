#include "server/call/suspended_calls.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace kvstore::server {

SuspendedCalls::SuspendedCalls(Router& router, std::function<bool()> draining)
    : router_(router), draining_(std::move(draining)), thread_([this] { Watch(); }) {}

SuspendedCalls::~SuspendedCalls() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  thread_.join();
}

void SuspendedCalls::Add(Suspended call) {
  const MutexLock lock(mutex_);
  suspended_.push_back(std::move(call));
  if (suspended_.size() == 1) wanted_.notify_all();
}

size_t SuspendedCalls::size() const {
  const MutexLock lock(mutex_);
  return suspended_.size();
}

void SuspendedCalls::Watch() {
  std::shared_ptr<const void> catalog;
  MutexLock lock(mutex_);
  for (;;) {
    // A catalog that is kept while nothing waits would keep dropped datasets open.
    if (suspended_.empty()) catalog.reset();
    while (!stopping_ && suspended_.empty()) lock.Wait(wanted_);
    if (stopping_) return;
    lock.Unlock();
    const bool adopted = router_.keeper().WaitForNewCatalog(catalog);
    lock.Lock();
    std::vector<Suspended> taken = DequeueDue(adopted || draining_());
    lock.Unlock();
    for (Suspended& call : taken) call.lane.Post(std::move(call.retry));
    lock.Lock();
  }
}

std::vector<SuspendedCalls::Suspended> SuspendedCalls::DequeueDue(bool all) {
  const auto now = Clock::now();
  size_t left = all ? suspended_.size() : std::max(kTogether, suspended_.size() / kShare);
  std::vector<Suspended> taken;
  std::vector<Suspended> kept;
  for (Suspended& call : suspended_) {
    const bool in_turn = left > 0;
    if (in_turn) --left;
    (in_turn || call.due(now) ? taken : kept).push_back(std::move(call));
  }
  suspended_ = std::move(kept);
  return taken;
}

}  // namespace kvstore::server
