#include "server/held_calls.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace kvstore::server {

HeldCalls::HeldCalls(Router& router, WorkerPool& workers, std::function<bool()> drains)
    : router_(router), workers_(workers), drains_(std::move(drains)), thread_([this] { Watch(); }) {}

HeldCalls::~HeldCalls() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  thread_.join();
}

void HeldCalls::Add(Held call) {
  const std::lock_guard lock(mutex_);
  held_.push_back(std::move(call));
  if (held_.size() == 1) wanted_.notify_all();
}

size_t HeldCalls::size() const {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

void HeldCalls::Watch() {
  std::shared_ptr<const void> catalog;
  std::unique_lock lock(mutex_);
  for (;;) {
    // It would keep datasets open that are gone.
    if (held_.empty()) catalog.reset();
    wanted_.wait(lock, [this] { return stopping_ || !held_.empty(); });
    if (stopping_) return;
    lock.unlock();
    const bool adopted = router_.AwaitCatalog(catalog);
    lock.lock();
    std::vector<Held> taken = Take(adopted || drains_());
    lock.unlock();
    for (Held& call : taken) workers_.Post(std::move(call.again));
    lock.lock();
  }
}

std::vector<HeldCalls::Held> HeldCalls::Take(bool all) {
  const auto now = Clock::now();
  size_t left = all ? held_.size() : std::max(kTogether, held_.size() / kShare);
  std::vector<Held> taken;
  std::vector<Held> kept;
  for (Held& call : held_) {
    const bool in_turn = left > 0;
    if (in_turn) --left;
    (in_turn || call.due(now) ? taken : kept).push_back(std::move(call));
  }
  held_ = std::move(kept);
  return taken;
}

}  // namespace kvstore::server
