#include "migration/shadow_reads.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "migration/verifier.h"

namespace kvstore::migration {
namespace {

/// About how many units are taken from the queue together.
constexpr size_t kBatch = 100;
/// How many units are read together at most. While units that differ are read again nothing is copied, so
/// that this must not take long: with large units, fewer are read together.
constexpr size_t kMostGroup = 50;
constexpr uint64_t kGroupBytes = 1 << 20;
/// How many units that differ are known, so that they are counted once. More are not counted.
constexpr size_t kMostKnown = 10'000;

}  // namespace

void ShadowQueue::Offer(std::vector<std::string> units) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || closed_ || reads_.size() >= kMost) {
    ++dropped_;
    return;
  }
  reads_.push_back(std::move(units));
  if (reads_.size() == 1) offered_.notify_one();
}

std::vector<std::string> ShadowQueue::Take(size_t most) {
  std::set<std::string> units;
  std::unique_lock lock(mutex_);
  offered_.wait(lock, [this] { return closed_ || !reads_.empty(); });
  if (closed_) return {};
  while (!reads_.empty() && units.size() < most) {
    units.insert(std::make_move_iterator(reads_.back().begin()),
                 std::make_move_iterator(reads_.back().end()));
    reads_.pop_back();
  }
  return {units.begin(), units.end()};
}

void ShadowQueue::Close() {
  const std::unique_lock lock(mutex_);
  closed_ = true;
  offered_.notify_all();
}

ShadowReads::ShadowReads(ReadTaps& taps, std::string dataset, uint32_t share, Copier& copier)
    : taps_(taps), dataset_(std::move(dataset)), copier_(copier) {
  thread_ = std::thread([this, limits = CallScope::Current()] {
    const CallScope scope(limits);
    Run();
  });
  taps_.Open(dataset_, share, queue_);
}

ShadowReads::~ShadowReads() { Stop(); }

void ShadowReads::Stop() {
  if (!thread_.joinable()) return;
  taps_.Close(dataset_);
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    stopped_.notify_all();
  }
  queue_->Close();
  thread_.join();
}

ShadowReads::Counts ShadowReads::Take() {
  const MutexLock lock(mutex_);
  Counts counts = std::exchange(counts_, {});
  counts.dropped += queue_->TakeDropped();
  return counts;
}

absl::Status ShadowReads::Compare(const std::vector<std::string>& units) {
  Verifier verifier(copier_, Verifier::Mode::kWatch);
  if (auto status = verifier.CompareUnits(units, [this] { return stop_.load(); }); !status.ok())
    return status;
  if (verifier.bytes() > kGroupBytes) {
    group_ = std::max<size_t>(1, group_ / 4);
  } else if (verifier.bytes() < kGroupBytes / 4) {
    group_ = std::min(kMostGroup, group_ * 2);
  }
  {
    const MutexLock lock(mutex_);
    counts_.compared += units.size();
    for (const std::string& key : verifier.examples()) {
      if (known_.size() < kMostKnown && known_.insert(key).second) counts_.different.push_back(key);
    }
  }
  Reached("shadow.compared");
  return absl::OkStatus();
}

void ShadowReads::Run() {
  while (!stop_) {
    const std::vector<std::string> units = queue_->Take(kBatch);
    if (units.empty()) continue;
    const auto begun = std::chrono::steady_clock::now();
    // A side that fails is for the drainer to report. A read that cannot be compared says nothing.
    for (size_t at = 0; at < units.size();) {
      const auto begin = units.begin() + static_cast<ptrdiff_t>(at);
      const size_t count = std::min(group_, units.size() - at);
      const std::vector<std::string> group(begin, begin + static_cast<ptrdiff_t>(count));
      if (stop_ || !Compare(group).ok()) queue_->CountDropped(count);
      at += count;
    }
    const auto now = std::chrono::steady_clock::now();
    const auto until = now + (now - begun);
    MutexLock lock(mutex_);
    while (!stop_) {
      if (lock.WaitUntil(stopped_, until)) break;
    }
  }
}

}  // namespace kvstore::migration
