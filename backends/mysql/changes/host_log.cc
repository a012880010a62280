#include "backends/mysql/changes/host_log.h"

#include <fmt/format.h>
#include <mysql.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/start_thread.h"

namespace kvstore::mysql {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A connection that was not used for so long is closed.
constexpr seconds kMaxParkedTime{10};
/// How long a page waits for the thread to get what the host has already.
constexpr milliseconds kMaxWaitForEnd{1000};
/// A page that finds nothing for so long ends, so that its caller sees that it goes on.
constexpr milliseconds kMaxSearch{300};
/// So long, and until there are so many, transactions are collected for a page.
constexpr milliseconds kCollect{15};
constexpr size_t kManyTransactions = 64;
/// Between two attempts to connect.
constexpr milliseconds kReconnect{200};
/// About how many bytes a row takes in memory besides the names of its row and column.
constexpr size_t kRowBytes = sizeof(TouchedRow);

/// Whether a table may be a dataset's.
bool IsOfADataset(const LoggedTable& table) {
  return table.name.find('$') == std::string::npos &&
         (table.Shard(ShardSpace::kId) || table.Shard(ShardSpace::kMod));
}

LogReader::NextEvent NextOf(LogSession& session) {
  return [&session] { return session.Next(); };
}

/// Returns the error of a follower who is too late, or whose place is not of this log.
absl::Status AtPlace(const absl::Status& status) {
  if (!absl::IsOutOfRange(status)) return status;
  const std::string message(status.message());
  if (message.starts_with("from: ")) return status;
  return absl::OutOfRangeError(
      fmt::format("from: some changes after this token are not kept any more, or were lost; begin again with "
                  "--snapshot, or --from begin for the oldest that are there ({})",
                  message));
}

}  // namespace

HostLog::~HostLog() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    if (session_ != nullptr) session_->Stop();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void HostLog::Touch() {
  const bool was_unused = !IsInUse();
  used_at_ = Clock::now().time_since_epoch().count();
  if (was_unused) changed_.notify_all();
}

void HostLog::Watch(const LogVector& end) {
  Touch();
  const MutexLock lock(mutex_);
  if (started_ && !lost_) return;
  base_ = end_ = end;
  kept_.clear();
  kept_bytes_ = 0;
  lost_ = false;
  changed_.notify_all();
  if (started_) return;
  const absl::Status started =
      StartThread(thread_, fmt::format("the binary log of {}", host_.ToString()), [this] { Run(); });
  started_ = started.ok();
  if (started_ || std::exchange(told_of_no_thread_, true)) return;
  spdlog::warn("changes: {}; until there is one, each follower reads by a connection of its own",
               std::string(started.message()));
}

size_t HostLog::kept() const {
  const MutexLock lock(mutex_);
  return kept_.size();
}

// ---- the thread ----

bool HostLog::IsInUse() const {
  return Clock::now().time_since_epoch().count() - used_at_.load(std::memory_order_relaxed) <
         Clock::duration(unused_after_).count();
}

void HostLog::Run() {
  mysql_thread_init();
  bool was_reported = false;
  for (;;) {
    LogVector after;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && (lost_ || !IsInUse())) lock.Wait(changed_);
      if (stopping_) break;
      after = end_;
    }
    auto session = LogSession::Open(host_, login_, after, LogSession::AtEnd::kWaits);
    absl::Status status = session.status();
    if (session.ok()) {
      {
        const MutexLock lock(mutex_);
        session_ = session->get();
        if (stopping_) break;
      }
      status = ReadOn(**session);
      const MutexLock lock(mutex_);
      session_ = nullptr;
    }
    MutexLock lock(mutex_);
    if (stopping_) break;
    if (status.ok()) {
      was_reported = false;
      continue;
    }
    if (!was_reported) {
      spdlog::warn("changes: the binary log of {}: {}", host_.ToString(), std::string(status.message()));
    }
    was_reported = true;
    if (absl::IsOutOfRange(status)) lost_ = true;
    // Followers read by connections of their own meanwhile, and are told what is wrong.
    lock.WaitUntil(changed_, Clock::now() + kReconnect);
  }
  mysql_thread_end();
}

absl::Status HostLog::ReadOn(LogSession& session) {
  LogVector after;
  {
    const MutexLock lock(mutex_);
    after = end_;
  }
  LogReader reader(NextOf(session), std::move(after), IsOfADataset, session.checksums());
  Kept transaction;
  bool too_large = false;
  while (IsInUse()) {
    auto item = reader.Next();
    if (!item.ok()) return item.status();
    switch (item->kind) {
      case LogItem::Kind::kBegin:
        transaction = {.gtid = item->gtid, .at_ms = item->at_ms, .end = {}, .standalone = item->standalone};
        too_large = false;
        break;
      case LogItem::Kind::kRows:
        for (const TouchedRow& row : item->rows) {
          transaction.bytes += kRowBytes + row.row.size() + row.column.size();
        }
        too_large = too_large || transaction.bytes > kMaxTransactionBytes;
        if (too_large) {
          transaction.rows.clear();
        } else {
          transaction.rows.push_back({std::move(item->table), std::move(item->rows)});
        }
        break;
      case LogItem::Kind::kStatement:
        transaction.bytes += item->statement.text.size();
        too_large = too_large || transaction.bytes > kMaxTransactionBytes;
        if (too_large) {
          transaction.statements.clear();
        } else {
          transaction.statements.push_back(std::move(item->statement));
        }
        break;
      case LogItem::Kind::kCommit:
        transaction.end = std::move(item->end);
        Keep(std::exchange(transaction, {}), too_large, reader.done());
        break;
      case LogItem::Kind::kIdle:
        break;
      case LogItem::Kind::kEnd:
        return absl::UnavailableError("the server has ended the connection over which its log is read");
    }
  }
  return absl::OkStatus();
}

void HostLog::Keep(Kept transaction, bool too_large, const LogVector& done) {
  {
    const MutexLock lock(mutex_);
    end_ = done;
    if (too_large) {
      // A follower that is before this transaction reads it over a connection of its own, in parts.
      kept_.clear();
      kept_bytes_ = 0;
      base_ = end_;
    } else {
      transaction.bytes += sizeof(Kept);
      transaction.arrived = Clock::now();
      kept_bytes_ += transaction.bytes;
      kept_.push_back(std::make_shared<const Kept>(std::move(transaction)));
      while (kept_bytes_ > kMaxBytes) {
        base_.Add(kept_.front()->gtid);
        kept_bytes_ -= kept_.front()->bytes;
        kept_.pop_front();
      }
    }
  }
  changed_.notify_all();
}

// ---- followers ----

absl::StatusOr<LogPage> HostLog::Read(const DatasetTables& tables, const LogPlace& from, size_t limit,
                                      const LogVector& wanted, const FilePlace& visible) {
  Touch();
  {
    MutexLock lock(mutex_);
    // A follower that is after the end has read already what the thread is about to read.
    const auto deadline = Clock::now() + kMaxWaitForEnd;
    while (started_ && !lost_ && !stopping_ && from.done.Has(base_) &&
           !(end_.Has(from.done) && end_.Has(wanted))) {
      if (Clock::now() >= deadline) break;
      lock.WaitUntil(changed_, deadline);
    }
    if (started_ && !lost_ && end_.Has(from.done) && end_.Has(wanted) && IsKept(from.done)) {
      ++shared_pages_;
      const auto transactions = KeptBehind(tables, from, limit);
      const bool few = !transactions.empty() && transactions.size() < kManyTransactions;
      if (few && transactions.front()->arrived + kCollect > Clock::now()) {
        return LogPage{.units = {}, .next = from, .at_end = false};
      }
      const bool all = transactions.empty() || transactions.back() == kept_.back();
      lock.Unlock();
      auto page = MakePage(tables, from, limit, visible, transactions);
      if (!page.ok()) return AtPlace(page.status());
      page->at_end = page->at_end && all;
      return page;
    }
  }
  ++own_pages_;
  auto page = ReadBehind(tables, from, limit, visible);
  if (!page.ok()) return AtPlace(page.status());
  return page;
}

bool HostLog::IsKept(const LogVector& place) const {
  if (!place.Has(base_)) return false;
  for (const auto& last : place.last()) {
    const LogGtid& gtid = last.second;
    if (base_.EndsWith(gtid)) continue;
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(), [&](const auto& transaction) {
      return transaction->gtid.domain == gtid.domain && transaction->gtid.sequence <= gtid.sequence;
    });
    if (found == kept_.rend() || (*found)->gtid != gtid) return false;
  }
  return true;
}

std::vector<std::shared_ptr<const HostLog::Kept>> HostLog::KeptBehind(const DatasetTables& tables,
                                                                      const LogPlace& from,
                                                                      size_t limit) const {
  std::vector<std::shared_ptr<const Kept>> some;
  // Rows of a column follow each other and are one unit; this many transactions have more rows than a page.
  size_t rows = 0;
  for (const auto& transaction : kept_) {
    if (from.done.Has(transaction->gtid)) continue;
    some.push_back(transaction);
    for (const Kept::Rows& one : transaction->rows) {
      if (tables.Has(*one.table)) rows += one.rows.size();
    }
    if (rows > limit + from.rows) break;
  }
  return some;
}

absl::StatusOr<LogPage> HostLog::MakePage(const DatasetTables& tables, const LogPlace& from, size_t limit,
                                          const FilePlace& visible,
                                          std::span<const std::shared_ptr<const Kept>> transactions) {
  PageBuilder page(tables, from, limit, /*in_middle=*/false);
  const auto made = [&](bool at_end) {
    return LogPage{.units = std::move(page.units()), .next = page.place(), .at_end = at_end};
  };
  for (const auto& transaction : transactions) {
    if (!transaction->end.IsAtOrBefore(visible)) return made(true);
    if (page.full()) return made(false);
    page.Begin(transaction->gtid, transaction->at_ms);
    for (const LoggedStatement& statement : transaction->statements) {
      if (auto status = page.Check(statement, transaction->standalone); !status.ok()) return status;
      if (page.Holds(statement.text)) return made(false);
    }
    for (const Kept::Rows& rows : transaction->rows) {
      const auto added = page.Add(*rows.table, rows.rows);
      if (!added.ok()) return added.status();
      if (*added < rows.rows.size()) return made(false);
    }
    page.Commit(transaction->gtid);
  }
  return made(true);
}

absl::StatusOr<std::unique_ptr<HostLog::Behind>> HostLog::BehindAt(const DatasetTables& tables,
                                                                   const LogPlace& from) {
  std::unique_ptr<Behind> behind;
  CloseParked();
  {
    const MutexLock lock(mutex_);
    const auto found = std::find_if(parked_.begin(), parked_.end(), [&](const auto& one) {
      return one->space == tables.space && one->name == tables.name && one->place == from;
    });
    if (found != parked_.end()) {
      behind = std::move(*found);
      parked_.erase(found);
    }
  }
  if (behind) return behind;
  auto session = LogSession::Open(host_, login_, from.done, LogSession::AtEnd::kEnds);
  if (!session.ok()) return session.status();
  behind = std::make_unique<Behind>();
  behind->session = *std::move(session);
  behind->space = tables.space;
  behind->name = tables.name;
  behind->reader = std::make_unique<LogReader>(
      NextOf(*behind->session), from.done,
      [space = tables.space, name = tables.name](const LoggedTable& table) {
        return table.name == name && table.Shard(space).has_value();
      },
      behind->session->checksums());
  return behind;
}

void HostLog::CloseParked() {
  const auto oldest = Clock::now() - kMaxParkedTime;
  std::vector<std::unique_ptr<Behind>> closed;
  const MutexLock lock(mutex_);
  while (!parked_.empty() && parked_.front()->parked < oldest) {
    closed.push_back(std::move(parked_.front()));
    parked_.pop_front();
  }
}

void HostLog::Park(std::unique_ptr<Behind> behind) {
  behind->parked = Clock::now();
  std::unique_ptr<Behind> dropped;
  const MutexLock lock(mutex_);
  if (parked_.size() >= kMaxParked) {
    dropped = std::move(parked_.front());
    parked_.pop_front();
  }
  parked_.push_back(std::move(behind));
}

absl::StatusOr<LogPage> HostLog::ReadBehind(const DatasetTables& tables, const LogPlace& from, size_t limit,
                                            const FilePlace& visible) {
  auto opened = BehindAt(tables, from);
  if (!opened.ok()) return opened.status();
  std::unique_ptr<Behind> behind = *std::move(opened);
  // The server has sent what there was when it came to the end of its log: of a session that was parked that
  // may have been before this call, and what was written since would be missing.
  const bool ends_now = behind->parked == Clock::time_point();
  PageBuilder page(tables, from, limit, behind->in_middle);
  if (behind->in_middle) page.Resume(behind->left.gtid);
  const auto deadline = Clock::now() + kMaxSearch;
  const auto parked = [&](bool in_middle) {
    LogPage read{.units = std::move(page.units()), .next = page.place(), .at_end = false};
    behind->in_middle = in_middle;
    behind->place = read.next;
    Park(std::move(behind));
    return read;
  };
  for (;;) {
    LogItem item;
    size_t done = 0;
    if (behind->in_middle) {
      item = std::move(behind->left);
      done = behind->left_at;
      behind->in_middle = false;
    } else {
      auto next = behind->reader->Next();
      if (!next.ok()) return next.status();
      item = *std::move(next);
    }
    switch (item.kind) {
      case LogItem::Kind::kIdle:
        break;
      case LogItem::Kind::kEnd:
        return LogPage{.units = std::move(page.units()), .next = page.place(), .at_end = ends_now};
      case LogItem::Kind::kBegin:
        // Transactions after `visible` are not committed yet, or were committed a moment ago.
        if (!item.end.IsAtOrBefore(visible)) {
          return LogPage{.units = std::move(page.units()), .next = page.place(), .at_end = true};
        }
        page.Begin(item.gtid, item.at_ms);
        break;
      case LogItem::Kind::kStatement:
        if (auto status = page.Check(item.statement, item.standalone); !status.ok()) return status;
        if (page.Holds(item.statement.text)) {
          return LogPage{.units = std::move(page.units()), .next = page.place(), .at_end = false};
        }
        break;
      case LogItem::Kind::kRows: {
        const std::span<const TouchedRow> rows(item.rows);
        const auto added = page.Add(*item.table, rows.subspan(std::min(done, rows.size())));
        if (!added.ok()) return added.status();
        if (done + *added < rows.size()) {
          behind->left_at = done + *added;
          behind->left = std::move(item);
          return parked(/*in_middle=*/true);
        }
        break;
      }
      case LogItem::Kind::kCommit:
        page.Commit(item.gtid);
        // Between two transactions a place says where the session is.
        if (page.full() || Clock::now() >= deadline) return parked(/*in_middle=*/false);
        break;
    }
  }
}

}  // namespace kvstore::mysql
