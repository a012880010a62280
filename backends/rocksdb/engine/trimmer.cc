#include "backends/rocksdb/engine/trimmer.h"

#include <utility>

namespace kvstore::rocks {
namespace {

constexpr size_t kMaxQueued = 16'384;

}  // namespace

void Trimmer::Start(Trim trim) {
  const MutexLock lock(mutex_);
  thread_ = std::thread([this, trim = std::move(trim)] { Run(trim); });
}

void Trimmer::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Trimmer::Suggest(const std::shared_ptr<FamilySettings>& settings, std::string_view column) {
  {
    const MutexLock lock(mutex_);
    if (queue_.size() >= kMaxQueued || stopping_) return false;
    queue_.push_back({settings, std::string(column)});
  }
  changed_.notify_all();
  return true;
}

void Trimmer::Drain() {
  MutexLock lock(mutex_);
  while (!queue_.empty() || busy_) lock.Wait(changed_);
}

void Trimmer::Run(const Trim& trim) {
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && queue_.empty()) lock.Wait(changed_);
    if (stopping_) return;
    const Suggestion next = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.Unlock();
    trim(next.settings, next.column);
    lock.Lock();
    busy_ = false;
    if (queue_.empty()) changed_.notify_all();
  }
}

}  // namespace kvstore::rocks
