#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit_changes.h"
#include "base/metrics_sink.h"
#include "base/mutex.h"
#include "kvstore_api/dataset.h"

namespace kvstore::mysql {

/// The metrics of consumers, which are measured by a thread, so that nobody who asks for figures waits for
/// servers. They are measured while somebody asks for them, and are a few seconds old. Thread-safe.
class ConsumerWatch {
 public:
  /// Figures that are older than this are measured again when somebody asks.
  static constexpr std::chrono::seconds kMaxAge{5};

  using List = std::function<absl::StatusOr<std::vector<UnitConsumer>>(const DatasetSpec&)>;

  /// list  Returns the consumers of a dataset; may wait, and ends when its call is cancelled.
  /// tidy  Is called by the thread now and then while somebody asks for figures; may wait.
  ConsumerWatch(List list, std::function<void()> tidy) : list_(std::move(list)), tidy_(std::move(tidy)) {}
  ~ConsumerWatch();
  ConsumerWatch(const ConsumerWatch&) = delete;
  ConsumerWatch& operator=(const ConsumerWatch&) = delete;

  /// Reports what was measured last; nothing of a dataset whose consumers could not be listed. Returns at
  /// once.
  ///
  /// datasets  Those that keep changes.
  void Describe(MetricsSink& sink, const std::vector<DatasetSpec>& datasets);

 private:
  using Clock = std::chrono::steady_clock;

  void Measure();

  const List list_;
  const std::function<void()> tidy_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  std::condition_variable wanted_;
  std::vector<DatasetSpec> datasets_ ABSL_GUARDED_BY(mutex_);  // that are to be measured
  bool is_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point measured_at_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::vector<UnitConsumer>> measured_ ABSL_GUARDED_BY(mutex_);  // by incarnation
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::mysql
