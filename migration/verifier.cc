#include "migration/verifier.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "backend_api/unit_key.h"
#include "base/clock.h"
#include "base/fail_point.h"

namespace kvstore::migration {
namespace {

/// How many units that differ are collected before they are read again.
constexpr size_t kSuspects = 500;
/// How many entries of each log are searched for writes to those units.
constexpr size_t kEntries = 20'000;
/// The same for a verifier that does not repair: the log may not be drained meanwhile, and then grows. A unit
/// whose entry lies beyond counts as different: better an operator decides too often than too rarely.
constexpr size_t kAllEntries = 100'000;
/// How long to wait between two rechecks.
constexpr std::chrono::milliseconds kPause{10};
/// How often a unit is read again that always has a write in flight.
constexpr int kMaxRechecks = 30;
/// The same for a verifier that watches, which must not hold up the copying.
constexpr int kMaxWatchRechecks = 3;

/// The units of one side in order. The next page is read in the background while this one is compared.
class Side {
 public:
  Side(UnitReader& units, const UnitRange& range, uint64_t as_of) : scan_(units.Scan(range, as_of)) {
    if (scan_.ok()) ReadAhead();
  }
  ~Side() { reader_.join(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  /// The current unit; null at the end.
  absl::StatusOr<const Unit*> Current() {
    if (!scan_.ok()) return scan_.status();
    if (at_ < page_.size()) return &page_[at_];
    if (done_) return nullptr;
    auto page = next_.get();
    if (!page.ok()) return page.status();
    page_ = *std::move(page);
    at_ = 0;
    done_ = page_.empty();
    if (done_) return nullptr;
    ReadAhead();
    return &page_[at_];
  }
  void Advance() { ++at_; }

 private:
  void ReadAhead() {
    next_ = boost::asio::post(reader_, boost::asio::use_future([this] { return (*scan_)->Next(); }));
  }

  absl::StatusOr<std::unique_ptr<UnitScan>> scan_;
  std::future<absl::StatusOr<std::vector<Unit>>> next_;
  std::vector<Unit> page_;
  size_t at_ = 0;
  bool done_ = false;
  boost::asio::thread_pool reader_{1};  // the last member, so that it is destroyed first
};

/// Whether one of the logs may have more entries than were read.
bool IsCut(const std::vector<DirtyEntry>& entries) {
  std::map<uint32_t, size_t> counts;
  for (const DirtyEntry& entry : entries) {
    if (++counts[entry.log] >= kEntries) return true;
  }
  return false;
}

/// Whether a unit is newer than the other side's. If it only lacked a write of the other side that is in
/// flight, it would be the older one.
bool IsNewer(const Unit& unit, const Unit& other) {
  return !unit.cells.empty() && !other.cells.empty() &&
         unit.cells.front().timestamp > other.cells.front().timestamp;
}

/// The units and whole rows that log entries name: writes to them are in flight.
class Pending {
 public:
  explicit Pending(const std::vector<DirtyEntry>& entries) {
    for (const DirtyEntry& entry : entries) keys_.insert(entry.key);
  }
  bool Has(const std::string& unit) const {
    if (keys_.contains(unit)) return true;
    const auto row = EncodedSize(unit);
    return row && *row < unit.size() && keys_.contains(unit.substr(0, *row));
  }

 private:
  std::set<std::string> keys_;
};

}  // namespace

absl::Status Verifier::CompareUnits(std::vector<std::string> units, const std::function<bool()>& stop) {
  const uint64_t as_of = WallClockMs();
  const auto truth = copier_.from().units.Read(units, as_of);
  if (!truth.ok()) return truth.status();
  const auto copy = copier_.to().units.Read(units, as_of);
  if (!copy.ok()) return copy.status();
  std::vector<std::string> suspects;
  for (size_t i = 0; i < units.size(); ++i) {
    for (const Cell& cell : (*truth)[i].cells) bytes_ += cell.value.size();
    if ((*truth)[i].cells != (*copy)[i].cells) suspects.push_back(std::move(units[i]));
  }
  compared_ += units.size();
  return Recheck(std::move(suspects), stop);
}

absl::Status Verifier::Compare(const UnitRange& range, const std::function<bool()>& stop) {
  const uint64_t as_of = WallClockMs();
  Side truth(copier_.from().units, range, as_of);
  Side copy(copier_.to().units, range, as_of);
  std::vector<std::string> suspects;
  for (;;) {
    const auto a = truth.Current();
    if (!a.ok()) return a.status();
    const auto b = copy.Current();
    if (!b.ok()) return b.status();
    if (*a == nullptr && *b == nullptr) break;
    const bool from_truth = *b == nullptr || (*a != nullptr && (*a)->key <= (*b)->key);
    const bool from_copy = *a == nullptr || (*b != nullptr && (*b)->key <= (*a)->key);
    if (from_truth != from_copy || (*a)->cells != (*b)->cells) {
      suspects.push_back(from_truth ? (*a)->key : (*b)->key);
    }
    if (from_truth) truth.Advance();
    if (from_copy) copy.Advance();
    const uint64_t compared = compared_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (suspects.size() >= kSuspects) {
      if (auto status = Recheck(std::exchange(suspects, {}), stop); !status.ok()) return status;
    }
    if (compared % 1000 == 0 && stop()) return absl::CancelledError("verification was stopped");
  }
  return Recheck(std::move(suspects), stop);
}

void Verifier::RecordDifference(const Unit& truth, const Unit& copy) {
  if (truth.cells.empty()) ++only_in_copy_;
  const MutexLock lock(examples_mutex_);
  if (watches_ || examples_.size() < kExamples) examples_.push_back(copy.key);
}

absl::Status Verifier::Recheck(std::vector<std::string> suspects, const std::function<bool()>& stop) {
  for (int recheck = 1; !suspects.empty(); ++recheck) {
    if (stop()) return absl::CancelledError("verification was stopped");
    {
      const auto alone = copier_.lock().Exclude();
      const uint64_t as_of = WallClockMs();
      const auto truth = copier_.from().units.Read(suspects, as_of);
      if (!truth.ok()) return truth.status();
      const auto copy = copier_.to().units.Read(suspects, as_of);
      if (!copy.ok()) return copy.status();
      // The log is read after the truth: a write from before that read has an entry here, or was copied.
      const auto entries = copier_.from().changes.ReadDirty(repairs_ || watches_ ? kEntries : kAllEntries);
      if (!entries.ok()) return entries.status();
      const Pending pending(*entries);
      // A log that was not read to its end may have an entry of any unit.
      const bool cut = (repairs_ || watches_) && IsCut(*entries);
      if (cut && watches_) return absl::ResourceExhaustedError("the dirty log is long");
      std::vector<std::string> later;
      std::vector<std::string> different;
      for (size_t i = 0; i < suspects.size(); ++i) {
        if ((*truth)[i].cells == (*copy)[i].cells) continue;
        const bool in_flight = cut || pending.Has(suspects[i]);
        if (in_flight && (repairs_ || watches_ || !IsNewer((*copy)[i], (*truth)[i]))) {
          later.push_back(suspects[i]);
        } else {
          different.push_back(suspects[i]);
          RecordDifference((*truth)[i], (*copy)[i]);
        }
      }
      if (!repairs_) {
        differences_ += different.size();
        // A unit that is written all the time says nothing.
        if (!watches_ || recheck == kMaxWatchRechecks) return absl::OkStatus();
        different.clear();
      }
      if (!different.empty()) {
        differences_ += different.size();
        Reached("verify.repair");
        if (auto status = copier_.Copy(different); !status.ok()) return status;
        repaired_ += different.size();
      }
      suspects = std::move(later);
      if (recheck == kMaxRechecks) {
        // These units had a write in flight at every recheck. Copying them once makes both sides equal as of
        // now, and each later write copies them as a whole again.
        return copier_.Copy(suspects);
      }
    }
    if (!suspects.empty()) std::this_thread::sleep_for(kPause);
  }
  return absl::OkStatus();
}

}  // namespace kvstore::migration
