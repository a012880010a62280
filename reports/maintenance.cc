#include "reports/maintenance.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/clock.h"
#include "kvstore_api/call_scope.h"
#include "reports/compaction.h"
#include "reports/metadata.h"
#include "reports/rollup.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// Hosts' clocks, which give rows their timestamps, may be behind this machine's by so much.
constexpr uint64_t kClockMarginMs = 600'000;
/// Less work than this is not worth a sleep of its own.
constexpr std::chrono::milliseconds kLeastWork{5};

}  // namespace

Maintenance::Maintenance(KVStore& store, MaintenanceOptions options)
    : store_(store), options_(std::move(options)), thread_([this] { Run(); }) {}

Maintenance::~Maintenance() {
  Stop();
  thread_.join();
}

void Maintenance::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
}

Maintenance::Figures Maintenance::figures() const {
  const MutexLock lock(mutex_);
  return figures_;
}

void Maintenance::Describe(MetricsSink& sink) const {
  const Figures figures = this->figures();
  if (figures.reports > 0) {
    const auto count = [&](std::string_view name, std::string_view help, uint64_t value) {
      sink.Counter(name, help, {}, static_cast<double>(value));
    };
    count("kvstore_report_rounds_total", "Rounds of maintenance over all reports", figures.rounds);
    count("kvstore_report_chunks_merged_total", "Chunks that became one with others", figures.chunks_merged);
    count("kvstore_report_rows_expired_total", "Rows removed because of a report's retention",
          figures.rows_expired);
    count("kvstore_report_rollups_made_total", "Rows of points whose roll-ups were made",
          figures.rollups_made);
    count("kvstore_report_errors_total", "Reports whose maintenance failed, each time", figures.errors);
  }
  if (figures.last_error.ok()) return;
  sink.Gauge(
      "kvstore_report_last_error_seconds", "When the maintenance of a report failed last, since 1970",
      {{"report", figures.failed_report}, {"code", absl::StatusCodeToString(figures.last_error.code())}},
      static_cast<double>(figures.last_error_ms) / 1000);
}

void Maintenance::Run() {
  const CallScope scope(CallLimits{.cancelled = &stopping_});
  // Processes that are started together do not work on the same rows at the same time.
  std::mt19937_64 random(std::random_device{}());
  uint64_t wait_ms = random() % options_.interval_ms;
  while (Sleep(std::chrono::milliseconds(wait_ms)).ok()) {
    rested_ = Clock::now();
    if (Round().ok()) {
      const MutexLock lock(mutex_);
      ++figures_.rounds;
    }
    wait_ms = options_.interval_ms;
  }
}

absl::Status Maintenance::Round() {
  const auto reports = Metadata(store_, options_.dataset).List();
  KV_RETURN_IF_ERROR(CheckCall());
  // A dataset of another shape has that name: it is somebody else's.
  if (absl::IsFailedPrecondition(reports.status())) return absl::OkStatus();
  if (!reports.ok()) {
    Failed("", reports.status());
    return reports.status();
  }
  {
    const MutexLock lock(mutex_);
    figures_.reports = reports->size();
  }
  // Reports that are gone are forgotten.
  begun_before_ms_ = std::exchange(begun_ms_, {});
  for (const std::string& report : *reports) {
    const absl::Status status = Maintain(report);
    KV_RETURN_IF_ERROR(CheckCall());
    // A report may be dropped meanwhile.
    if (!status.ok() && !absl::IsNotFound(status)) Failed(report, status);
    KV_RETURN_IF_ERROR(Pause());
  }
  return absl::OkStatus();
}

absl::Status Maintenance::Maintain(const std::string& report) {
  const Metadata metadata(store_, options_.dataset);
  KV_ASSIGN_OR_RETURN(const ReportInfo info, metadata.Get(report, {}));
  const auto pause = [this] { return Pause(); };
  const uint64_t begun = WallClockMs();
  CompactionOptions compaction{.min_chunks = options_.min_chunks, .pause = pause};
  const auto before = begun_before_ms_.find(info.settings.id);
  // A failed round is not remembered, so that the next one looks at all rows again.
  if (before != begun_before_ms_.end()) {
    compaction.changed_since_ms = before->second - std::min(before->second, kClockMarginMs);
  }
  KV_ASSIGN_OR_RETURN(const CompactionResult compacted, CompactReport(metadata, report, compaction));
  {
    const MutexLock lock(mutex_);
    figures_.chunks_merged += compacted.chunks_merged;
    figures_.rows_expired += compacted.rows_expired;
  }
  begun_ms_[info.settings.id] = begun;
  const RollupOptions rollups{.quiet_ms = options_.quiet_ms, .pause = pause};
  KV_ASSIGN_OR_RETURN(const RollupResult made, MakeRollups(metadata, report, rollups));
  const MutexLock lock(mutex_);
  figures_.rollups_made += made.rows_written;
  return absl::OkStatus();
}

void Maintenance::Failed(const std::string& report, const absl::Status& status) {
  bool is_new = false;
  {
    const MutexLock lock(mutex_);
    is_new = figures_.failed_report != report || figures_.last_error != status;
    ++figures_.errors;
    figures_.failed_report = report;
    figures_.last_error = status;
    figures_.last_error_ms = WallClockMs();
  }
  if (!is_new || !options_.log) return;
  const std::string what = report.empty() ? "the list of reports" : fmt::format("report '{}'", report);
  options_.log(fmt::format("maintenance of dataset '{}': {}: {}; tried again in {} s", options_.dataset, what,
                           status.ToString(), options_.interval_ms / 1000));
}

absl::Status Maintenance::Pause() {
  const Clock::duration worked = Clock::now() - rested_;
  if (worked < kLeastWork) return CheckCall();
  absl::Status status = Sleep(worked * (100 - options_.share) / options_.share);
  rested_ = Clock::now();
  return status;
}

absl::Status Maintenance::Sleep(Clock::duration time) {
  const auto until = Clock::now() + time;
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (lock.WaitUntil(stopped_, until)) break;
  }
  return CheckCall();
}

}  // namespace kvstore::reports
