#include "backends/rocksdb/trimmer.h"

#include <utility>

namespace kvstore::rocks {
namespace {

constexpr size_t kMaxQueued = 16'384;

}  // namespace

void Trimmer::Start(Trim trim) {
  const std::lock_guard lock(mutex_);
  thread_ = std::thread([this, trim = std::move(trim)] { Run(trim); });
}

void Trimmer::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Trimmer::Suggest(const std::shared_ptr<FamilySettings>& settings, const std::string& column) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= kMaxQueued || stopping_) return;
    queue_.push_back({settings, column});
  }
  changed_.notify_all();
}

void Trimmer::Drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

void Trimmer::Run(const Trim& trim) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const Suggestion next = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    trim(next.settings->name, next.column);
    lock.lock();
    busy_ = false;
    if (queue_.empty()) changed_.notify_all();
  }
}

}  // namespace kvstore::rocks
