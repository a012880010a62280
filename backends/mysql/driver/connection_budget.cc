#include "backends/mysql/driver/connection_budget.h"

#include <algorithm>

namespace kvstore::mysql {

ConnectionBudget::ConnectionBudget(const PoolOptions& options) : most_(options.max_total) {
  // So a connection stays for one and a half times idle_s at most after its last use.
  thread_ = std::thread([this, every = std::chrono::milliseconds(options.idle_s * 500)] { Run(every); });
}

ConnectionBudget::~ConnectionBudget() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void ConnectionBudget::Add(IdleConnections& pool) {
  const MutexLock lock(mutex_);
  pools_.push_back(&pool);
}

void ConnectionBudget::Remove(IdleConnections& pool) {
  const MutexLock lock(mutex_);
  std::erase(pools_, &pool);
}

bool ConnectionBudget::TakeFree() {
  size_t used = used_;
  while (used < most_) {
    if (used_.compare_exchange_weak(used, used + 1)) return true;
  }
  return false;
}

bool ConnectionBudget::Take(const IdleConnections& mine) {
  if (TakeFree()) return true;
  // The lock is held while connections are closed, so that each call closes one for itself.
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < pools_.size(); ++i) {
    IdleConnections& pool = *pools_[next_++ % pools_.size()];
    if (&pool == &mine || !pool.CloseOneIdle()) continue;
    if (TakeFree()) return true;
  }
  return TakeFree();
}

void ConnectionBudget::Run(std::chrono::milliseconds every) {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const auto until = std::chrono::steady_clock::now() + every;
    while (!stopping_) {
      if (lock.WaitUntil(stop_, until)) break;
    }
    if (stopping_) return;
    for (IdleConnections* const pool : pools_) pool->CloseLongIdle();
  }
}

}  // namespace kvstore::mysql
