#include "backup/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::backup {

absl::Status InParallel(size_t count, size_t threads, const std::function<absl::Status(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  Mutex mutex;
  absl::Status first;  // the first error; guarded by mutex
  const CallLimits limits = CallScope::Current();
  const auto run = [&] {
    const CallScope scope(limits);
    while (!failed) {
      const size_t i = next++;
      if (i >= count) return;
      absl::Status status = CheckCall();
      if (status.ok()) status = work(i);
      if (status.ok()) continue;
      const MutexLock lock(mutex);
      if (first.ok()) first = std::move(status);
      failed = true;
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(count, threads); ++i) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
  return first;
}

}  // namespace kvstore::backup
