#include "cli/reports/batch_writer.h"

#include <fmt/format.h>

#include <utility>

#include "kvstore_api/call_scope.h"

namespace kvstore::cli {

BatchWriter::BatchWriter(reports::Reports& reports, bool add, size_t in_flight)
    : reports_(reports), add_(add) {
  const CallLimits limits = CallScope::Current();
  for (size_t i = 0; i < in_flight; ++i) {
    threads_.emplace_back([this, limits] {
      const CallScope scope(limits);
      Work();
    });
  }
}

BatchWriter::~BatchWriter() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status BatchWriter::Write(Task task) {
  MutexLock lock(mutex_);
  while (waiting_.size() + in_work_ >= threads_.size() && failed_.ok()) lock.Wait(changed_);
  if (!failed_.ok()) return failed_;
  waiting_.push_back({given_++, std::move(task)});
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status BatchWriter::Finish() {
  MutexLock lock(mutex_);
  while (in_work_ > 0 || (!waiting_.empty() && failed_.ok())) lock.Wait(changed_);
  return failed_;
}

void BatchWriter::Work() {
  MutexLock lock(mutex_);
  while (true) {
    while (!ended_ && (waiting_.empty() || !failed_.ok())) lock.Wait(changed_);
    if (ended_) return;
    const Numbered next = std::move(waiting_.front());
    waiting_.pop_front();
    ++in_work_;
    lock.Unlock();
    const absl::Status status =
        reports_.Write(next.task.batch, {.batch = next.task.id, .add = add_}).status();
    lock.Lock();
    --in_work_;
    if (!status.ok() && (failed_.ok() || next.number < failed_number_)) {
      failed_number_ = next.number;
      failed_ = absl::Status(
          status.code(),
          fmt::format("stopped at {}: {}; give the same command again: what is written already counts once",
                      next.task.place, std::string(status.message())));
    }
    changed_.notify_all();
  }
}

}  // namespace kvstore::cli
