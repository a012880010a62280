#include "reports/metric_scan.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "kvstore_api/call_scope.h"
#include "reports/rollup_plan.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// The scan of one metric, whose salts are taken by any threads.
class MetricScan {
 public:
  MetricScan(const ScanContext& context, const Metric& metric, const StepGrid& grid, TimeSpan span)
      : context_(context),
        plan_(context.info, context.query, context.filters, metric, grid, span),
        grid_(grid),
        left_(context.info.settings.salts) {
    scans_.reserve(left_);
    while (scans_.size() < left_) scans_.emplace_back(context, metric, plan_, grid, span);
  }

  /// Scans a salt, each once.
  absl::Status Run(uint32_t salt) { return scans_[salt].Run(static_cast<uint8_t>(salt)); }
  /// To be called after each salt that went well; true for the last one.
  bool EndsWith() { return --left_ == 0; }
  /// The groups of all salts.
  absl::StatusOr<GroupTable> Merge(std::vector<QueryCost>& costs, std::vector<std::string>& missing) {
    GroupTable merged(grid_, KeepsOf(context_.query), context_.use);
    for (size_t salt = 0; salt < scans_.size(); ++salt) {
      SaltScan& scan = scans_[salt];
      KV_RETURN_IF_ERROR(merged.Merge(std::move(scan.table())));
      costs[salt] += scan.cost();
      missing.insert(missing.end(), scan.missing().begin(), scan.missing().end());
    }
    return merged;
  }

 private:
  const ScanContext& context_;
  const RollupPlan plan_;
  const StepGrid& grid_;
  std::vector<SaltScan> scans_;  // by salt
  std::atomic<size_t> left_;     // salts that are not scanned yet
};

/// The scans of all metrics, which threads carry out salt by salt. Those of a metric begin together and are
/// merged at its end, so that a query of many metrics has the groups of a few in parts.
class Scans {
 public:
  Scans(const ScanContext& context, const StepGrid& grid, TimeSpan span, MetricCosts& costs)
      : context_(context),
        grid_(grid),
        span_(span),
        costs_(costs),
        tables_(context.info.metrics.size()),
        missing_(tables_.size()) {}

  size_t size() const { return tables_.size() * context_.info.settings.salts; }

  /// Scans until there is nothing more to scan, or a scan has failed.
  void Work() {
    while (const auto task = Next()) {
      absl::Status status = task->metric->Run(task->salt);
      if (status.ok() && task->metric->EndsWith()) status = Merge(*task);
      if (!status.ok()) Fail(task->number, std::move(status));
    }
  }

  /// The groups of each metric, when all threads have ended. The error is the first one in the order of
  /// metrics and salts.
  absl::StatusOr<std::vector<GroupTable>> Take(std::vector<std::string>& missing) && {
    const MutexLock lock(mutex_);
    if (!failed_.ok()) return failed_;
    std::vector<GroupTable> tables;
    for (size_t i = 0; i < tables_.size(); ++i) {
      tables.push_back(*std::move(tables_[i]));
      missing.insert(missing.end(), missing_[i].begin(), missing_[i].end());
    }
    return tables;
  }

 private:
  struct Task {
    size_t number = 0;
    size_t index = 0;  // of the metric
    uint32_t salt = 0;
    std::shared_ptr<MetricScan> metric;
  };

  std::optional<Task> Next() {
    const MutexLock lock(mutex_);
    if (!failed_.ok() || next_ == size()) return std::nullopt;
    const size_t salts = context_.info.settings.salts;
    Task task{.number = next_++};
    task.index = task.number / salts;
    task.salt = static_cast<uint32_t>(task.number % salts);
    if (task.salt == 0) {
      metric_ = std::make_shared<MetricScan>(context_, context_.info.metrics[task.index], grid_, span_);
    }
    task.metric = metric_;
    return task;
  }

  absl::Status Merge(const Task& task) {
    KV_ASSIGN_OR_RETURN(tables_[task.index], task.metric->Merge(costs_[task.index], missing_[task.index]));
    return absl::OkStatus();
  }

  void Fail(size_t number, absl::Status status) {
    const MutexLock lock(mutex_);
    if (!failed_.ok() && failed_number_ < number) return;
    failed_number_ = number;
    failed_ = std::move(status);
  }

  const ScanContext& context_;
  const StepGrid& grid_;
  const TimeSpan span_;
  // These have an element for each metric, which only the thread that has scanned the metric's last salt uses
  // until all threads have ended.
  MetricCosts& costs_;
  std::vector<std::optional<GroupTable>> tables_;
  std::vector<std::vector<std::string>> missing_;
  Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<MetricScan> metric_ ABSL_GUARDED_BY(mutex_);  // whose salts are given out
  size_t failed_number_ ABSL_GUARDED_BY(mutex_) = 0;            // only if failed_ is an error
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::vector<GroupTable>> ScanMetrics(const ScanContext& context, const StepGrid& grid,
                                                    TimeSpan span, MetricCosts& costs,
                                                    std::vector<std::string>& missing) {
  Scans scans(context, grid, span, costs);
  // The threads are within the limits of the call that they work for.
  const CallLimits limits = CallScope::Current();
  std::vector<std::thread> threads;
  const size_t wanted = std::min(scans.size(), context.query.limits.threads);
  for (size_t i = 1; i < wanted; ++i) {
    threads.emplace_back([&] {
      const CallScope scope(limits);
      scans.Work();
    });
  }
  scans.Work();
  for (std::thread& thread : threads) thread.join();
  return std::move(scans).Take(missing);
}

}  // namespace kvstore::reports
