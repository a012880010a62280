#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "backend_api/shard_operations.h"
#include "base/mutex.h"

namespace kvstore::testing {

/// Notes the commands that arrive, and does what a test wants of it. Thread-safe.
class NotedOperations : public ShardOperations {
 public:
  using Work = std::function<absl::StatusOr<Json>(const ShardEvents&)>;

  explicit NotedOperations(Work work) : work_(std::move(work)) {}

  absl::StatusOr<Json> Operate(const Json& command, const ShardEvents& events) override {
    {
      const MutexLock lock(mutex_);
      commands_.push_back(command);
    }
    return work_(events);
  }
  std::vector<Json> commands() {
    const MutexLock lock(mutex_);
    return commands_;
  }

 private:
  const Work work_;
  Mutex mutex_;
  std::vector<Json> commands_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::testing
