#include "backends/mysql/changes/consumer_watch.h"

#include <utility>

#include "backend_api/consumer_metrics.h"
#include "base/start_thread.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {

ConsumerWatch::~ConsumerWatch() {
  std::thread last;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    last = std::move(thread_);
  }
  wanted_.notify_all();
  if (last.joinable()) last.join();
}

void ConsumerWatch::Describe(MetricsSink& sink, const std::vector<DatasetSpec>& datasets) {
  std::map<uint64_t, std::vector<UnitConsumer>> measured;
  {
    const MutexLock lock(mutex_);
    datasets_ = datasets;
    if (!thread_.joinable() && !datasets.empty()) {
      // Without one nothing is reported; who asks next tries again.
      StartThread(thread_, "the metrics of consumers", [this] { Measure(); }).IgnoreError();
    }
    is_wanted_ = thread_.joinable();
    measured = measured_;
  }
  wanted_.notify_all();
  for (const DatasetSpec& spec : datasets) {
    const auto found = measured.find(spec.incarnation);
    if (found != measured.end()) DescribeConsumers(sink, spec.name, found->second);
  }
}

void ConsumerWatch::Measure() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stopping_ && !is_wanted_) lock.Wait(wanted_);
    if (stopping_) return;
    is_wanted_ = false;
    lock.Unlock();
    tidy_();
    lock.Lock();
    if (Clock::now() - measured_at_ < kMaxAge && !measured_.empty()) continue;
    const std::vector<DatasetSpec> datasets = datasets_;
    lock.Unlock();
    std::map<uint64_t, std::vector<UnitConsumer>> measured;
    const CallScope scope({.cancelled = &stopping_});
    for (const DatasetSpec& spec : datasets) {
      if (stopping_) return;
      auto consumers = list_(spec);
      if (consumers.ok()) measured.emplace(spec.incarnation, *std::move(consumers));
    }
    lock.Lock();
    measured_ = std::move(measured);
    measured_at_ = Clock::now();
  }
}

}  // namespace kvstore::mysql
