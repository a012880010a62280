#include "backup/log_shipper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "blobstore/sha256.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::backup {
namespace {

/// How long a segment may take to be sent, and how long the last one when the server stops.
constexpr std::chrono::seconds kMaxPut{60};
constexpr std::chrono::seconds kMaxLastPut{2};
/// If a write is not readable for so long, the log has lost it.
constexpr std::chrono::seconds kUnreadable{60};
/// So many schemas wait to be sent; each has the whole catalog.
constexpr size_t kMostSchemas = 64;

}  // namespace

LogShipper::LogShipper(std::unique_ptr<WriteLog> log, Opener open, BaseMaker make_base,
                       ShipperOptions options)
    : log_(std::move(log)),
      open_(std::move(open)),
      make_base_(std::move(make_base)),
      options_(std::move(options)),
      started_ms_(WallClockMs()),
      thread_([this] { Run(); }) {}

LogShipper::~LogShipper() {
  Stop();
  thread_.join();
}

void LogShipper::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
}

LogShipper::Figures LogShipper::figures() const {
  const MutexLock lock(mutex_);
  return figures_;
}

void LogShipper::Describe(MetricsSink& sink) const {
  const Figures figures = this->figures();
  const uint64_t now = WallClockMs();
  const uint64_t until = figures.shipped_until_ms == 0 ? started_ms_ : figures.shipped_until_ms;
  sink.Gauge("kvstore_backup_log_age_seconds",
             "Time since when writes may not have been sent to the backups: what a loss of the store's "
             "folder would lose",
             {}, static_cast<double>(now - std::min(now, until)) / 1000);
  sink.Gauge("kvstore_backup_log_failing", "1 if the last attempt to send the log has failed", {},
             figures.last_error.ok() ? 0 : 1);
  sink.Counter("kvstore_backup_log_failures_total", "Attempts to send the log that have failed", {},
               static_cast<double>(figures.failures));
  sink.Counter("kvstore_backup_log_segments_total", "Segments of the log that were sent", {},
               static_cast<double>(figures.segments));
  sink.Counter("kvstore_backup_log_sent_bytes_total", "Bytes of segments that were sent", {},
               static_cast<double>(figures.sent_bytes));
}

bool LogShipper::Sleep(std::chrono::milliseconds time) {
  const auto until = Clock::now() + time;
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (lock.WaitUntil(stopped_, until)) break;
  }
  return !stopping_;
}

void LogShipper::Run() {
  uint64_t wait_ms = 0;
  while (Sleep(std::chrono::milliseconds(wait_ms))) {
    const absl::Status status = Round(/*is_last=*/false);
    if (!status.ok() && !stopping_) Failed(status);
    wait_ms = status.ok() ? options_.mark_ms : options_.retry_ms;
  }
  if (!chain_) return;
  const CallScope scope(CallLimits{.deadline = Clock::now() + kMaxLastPut});
  if (auto status = Round(/*is_last=*/true); !status.ok()) Failed(status);
}

absl::Status LogShipper::Round(bool is_last) {
  if (blobs_ == nullptr) {
    auto opened = open_();
    if (!opened.ok()) return opened.status();
    blobs_ = *std::move(opened);
  }
  if (!chain_) {
    if (auto status = BeginChain(); !status.ok()) return status;
  }
  Mark();
  if (auto status = NoteSchema(); !status.ok()) return status;
  // Datasets that come and go are told at once: a restore has those of the end of a segment.
  const bool is_due =
      !chain_->schemas.empty() || Clock::now() - shipped_at_ >= std::chrono::milliseconds(options_.ship_ms);
  if (!is_due && !is_last) return absl::OkStatus();
  absl::Status shipped = Ship();
  if (absl::IsOutOfRange(shipped) || absl::IsAlreadyExists(shipped)) {
    chain_.reset();
    Say(true,
        fmt::format("the log that follows a backup has a gap here, and begins anew with another backup: {}",
                    std::string(shipped.message())));
    return absl::OkStatus();
  }
  return shipped;
}

absl::Status LogShipper::BeginChain() {
  Reached("log-base");
  const CallScope scope(CallLimits{.cancelled = &stopping_});
  const auto base = make_base_(*blobs_);
  if (!base.ok()) return base.status();
  chain_ = Chain{.id = base->id, .shipped = base->sequence, .progressed = Clock::now()};
  // The backup may have only a part of the writes that were made while it was being made.
  chain_->marks.push_back({base->began_ms, base->sequence});
  const MutexLock lock(mutex_);
  ++figures_.chains;
  // The backup has all writes that were made before it began.
  figures_.shipped_until_ms = std::max(figures_.shipped_until_ms, base->began_ms);
  return absl::OkStatus();
}

void LogShipper::Mark() {
  // The number first: its changes were written by the time.
  const uint64_t last = log_->Last();
  // The clock may be set back.
  const uint64_t now = std::max(WallClockMs(), chain_->marks.back().at_ms);
  std::vector<LogMark>& marks = chain_->marks;
  const bool is_noted = !chain_->schemas.empty() && chain_->schemas.back().mark == marks.back();
  // While nothing is written there are two marks: since when the last change is there, and until when there
  // was no other one. Beside them, each schema keeps its own.
  if (!is_noted && marks.size() > 1 && last == marks.back().last && last == marks[marks.size() - 2].last) {
    marks.back().at_ms = now;
  } else {
    marks.push_back({now, std::max(last, marks.back().last)});
  }
  Reached("log-mark");
}

absl::Status LogShipper::NoteSchema() {
  Chain& chain = *chain_;
  auto schema = log_->Schema();
  if (!schema.ok()) return schema.status();
  // The schema is read after the mark: a dataset that comes or goes in between counts as if it had before it.
  if (*schema != (chain.schemas.empty() ? chain.schema : chain.schemas.back().schema)) {
    // While nothing can be sent, the older ones are enough: a restore then has the last one a little early.
    if (chain.schemas.size() >= kMostSchemas) chain.schemas.pop_back();
    chain.schemas.push_back({chain.marks.back(), *std::move(schema)});
  }
  return absl::OkStatus();
}

absl::Status LogShipper::Ship() {
  Chain& chain = *chain_;
  while (chain.shipped < chain.marks.back().last || !chain.schemas.empty()) {
    // A segment whose put has failed may be there all the same, so it is put again with the same bytes: what
    // is found in its place then is this segment, or is not ours.
    if (!chain.unsent) {
      if (auto status = MakeSegment(); !status.ok()) return status;
    }
    if (!chain.unsent) return absl::OkStatus();
    if (auto status = PutSegment(); !status.ok()) return status;
  }
  chain.progressed = shipped_at_ = Clock::now();
  const MutexLock lock(mutex_);
  figures_.shipped_until_ms = std::max(figures_.shipped_until_ms, chain.marks.back().at_ms);
  figures_.last_error = absl::OkStatus();
  return absl::OkStatus();
}

absl::Status LogShipper::MakeSegment() {
  Chain& chain = *chain_;
  // No mark tells yet when the changes after the last mark were written. A segment ends with the mark of a
  // schema, so that a restore has each schema from its own time on.
  const LogMark until = chain.schemas.empty() ? chain.marks.back() : chain.schemas.front().mark;
  auto writes = log_->Read(chain.shipped, kSegmentBytes);
  if (!writes.ok()) return writes.status();
  while (!writes->empty() && writes->back().last() > until.last) writes->pop_back();
  if (writes->empty() && chain.shipped < until.last) {
    if (Clock::now() - chain.progressed <= kUnreadable) return absl::OkStatus();  // not in the file yet
    return absl::OutOfRangeError(fmt::format("the change {} cannot be read from the log", chain.shipped + 1));
  }
  LogSegment segment{.chain = chain.id,
                     .number = chain.number,
                     .previous = chain.previous,
                     .after = chain.shipped,
                     .last = writes->empty() ? chain.shipped : writes->back().last(),
                     .marks = {},
                     .schema = chain.schemas.empty() ? chain.schema : chain.schemas.front().schema,
                     .schema_is_later = false,
                     .writes = *std::move(writes)};
  const bool is_until = segment.last == until.last;
  segment.schema_is_later = !chain.schemas.empty() && !is_until;
  // The segment gets the marks up to the one with which it ends, or else up to the first one after its last
  // write, which tells by when its writes were written.
  auto end = std::find_if(chain.marks.begin(), chain.marks.end(), [&](const LogMark& mark) {
    return mark.last > segment.last || (is_until && mark.at_ms > until.at_ms);
  });
  if (!is_until) ++end;
  segment.marks.assign(chain.marks.begin(), end);
  std::string bytes = EncodeSegment(segment);
  segment.writes.clear();
  chain.unsent = Unsent{.segment = std::move(segment),
                        .bytes = std::move(bytes),
                        .tells_schema = is_until && !chain.schemas.empty()};
  return absl::OkStatus();
}

absl::Status LogShipper::PutSegment() {
  Chain& chain = *chain_;
  const LogSegment& segment = chain.unsent->segment;
  const std::string& bytes = chain.unsent->bytes;
  const std::string blob = SegmentBlob(segment.chain, segment.number);
  const CallScope scope(
      CallLimits{.deadline = std::min(CallScope::Current().deadline.value_or(Clock::time_point::max()),
                                      Clock::now() + kMaxPut)});
  Reached("log-segment");
  absl::Status put = blobs_->Put(blob, bytes, PutMode::kIfAbsent).status();
  if (absl::IsAlreadyExists(put)) {
    const auto there = blobs_->Get(blob, kBlobPieceBytes);
    if (!there.ok()) return there.status();
    // The answer to an earlier attempt was lost on the way.
    if (*there == bytes) put = absl::OkStatus();
  }
  if (!put.ok()) return put;
  // The next segment begins with the last mark that is not after the end of this one.
  const LogMark mark = *std::find_if(segment.marks.rbegin(), segment.marks.rend(),
                                     [&](const LogMark& each) { return each.last <= segment.last; });
  std::erase_if(chain.marks,
                [&](const LogMark& each) { return each.at_ms <= mark.at_ms && each.last <= mark.last; });
  chain.marks.insert(chain.marks.begin(), mark);
  if (chain.unsent->tells_schema) {
    chain.schema = std::move(chain.schemas.front().schema);
    chain.schemas.pop_front();
  }
  chain.previous = Hex(Sha256Of(bytes));
  ++chain.number;
  chain.shipped = segment.last;
  chain.progressed = Clock::now();
  {
    const MutexLock lock(mutex_);
    ++figures_.segments;
    figures_.sent_bytes += bytes.size();
  }
  chain.unsent.reset();
  return absl::OkStatus();
}

void LogShipper::Failed(const absl::Status& status) {
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    ++figures_.failures;
    // The same error again and again is one line.
    is_first = figures_.last_error != status;
    figures_.last_error = status;
  }
  if (is_first)
    Say(true, fmt::format("the log cannot be sent to the backups: {}; it is tried again", status.ToString()));
}

}  // namespace kvstore::backup
