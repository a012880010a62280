#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "backends/cached/protocol/cache.h"
#include "kvstore_api/call_scope.h"

/// The work of a cache's thread: it looks after the servers and after marks, and compares samples of what was
/// written.
namespace kvstore::cached {
namespace {

using std::chrono::milliseconds;

/// How often.
constexpr milliseconds kPause{500};
/// A suspended server is used again after so many leases at the earliest, so that one that only some can
/// reach costs those little.
constexpr int kLeasesSuspended = 3;
/// How many marks are looked after at once, and how often one in doubt is set again.
constexpr ptrdiff_t kMarksAtOnce = 100;
constexpr std::chrono::seconds kDoubtPause{60};
/// How many samples wait to be compared at most, and when they are.
constexpr size_t kMaxSamples = 256;
constexpr int kChecksAtOnce = 16;
constexpr std::chrono::seconds kCheckTime{1};
constexpr std::chrono::seconds kFirstCheck{1};
constexpr std::chrono::seconds kSecondCheck{60};

}  // namespace

bool Cache::SetAgain(const KnownView& view, Doubted& doubt) {
  if (RingOf(view).empty()) return false;
  const auto server = ServerOf(view, doubt.key);
  const auto known = server->known();
  if (known == nullptr || server->resting()) return false;
  const std::string name = KeyName(known->guard, doubt.key.incarnation, doubt.key.id);
  const auto now = BootClock::now();
  // At once under another guard, whose server has lost the mark and is in quarantine; and now and then, since
  // a server that makes room may have forgotten it.
  if (name == doubt.mark.key && now < doubt.due) return false;
  const auto marked = server->server().Mark(name, doubt.mark.number);
  server->Failed(marked.status());
  if (!marked.ok()) return true;
  server->Note(marked->guard);
  if (marked->guard != known->text) return true;  // it is where nobody may look any more
  doubt.mark.server = server;
  doubt.mark.key = name;
  doubt.due = now + kDoubtPause;
  return true;
}

void Cache::LookAfterMarks(const KnownView& view) {
  // Some at a time, since servers are to be looked after, too, and this may be about to end. First those that
  // are needed.
  std::vector<Doubted> doubts;
  std::vector<Mark> unmarks;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    doubts.swap(doubts_);
    const auto some = std::min<ptrdiff_t>(kMarksAtOnce, std::ssize(unmarks_));
    std::move(unmarks_.end() - some, unmarks_.end(), std::back_inserter(unmarks));
    unmarks_.erase(unmarks_.end() - some, unmarks_.end());
  }
  std::erase_if(doubts, [now = BootClock::now()](const Doubted& one) { return one.until < now; });
  auto next = doubts.begin();
  for (ptrdiff_t asked = 0; next != doubts.end() && asked < kMarksAtOnce; ++next) {
    if (SetAgain(view, *next)) ++asked;
  }
  // Those that were not looked at come first the next time.
  std::rotate(doubts.begin(), next, doubts.end());
  {
    const MutexLock lock(mutex_);
    doubts_.insert(doubts_.end(), std::make_move_iterator(doubts.begin()),
                   std::make_move_iterator(doubts.end()));
  }
  const auto servers = Servers(view);
  for (Mark& mark : unmarks) {
    const auto known = mark.server->known();
    const bool there = std::find(servers.begin(), servers.end(), mark.server) != servers.end();
    // Nobody looks where a server is not used any more, or has another guard.
    if (!there || (known != nullptr && !mark.key.starts_with(KeyPrefix(known->guard)))) continue;
    if (mark.server->resting()) {
      const MutexLock lock(mutex_);
      unmarks_.insert(unmarks_.begin(), std::move(mark));
    } else {
      Unmark(std::move(mark));
    }
  }
}

void Cache::LookAfter(const KnownView& view, GuardedServer& server) {
  const uint64_t list = view.view.list;
  if (const auto suspended = view.suspended_since.find(server.name());
      suspended != view.suspended_since.end()) {
    quarantines_.erase(&server);
    const auto lease = milliseconds(view.view.lease_ms);
    if (!view.Holds() || BootClock::now() < suspended->second + lease * kLeasesSuspended) return;
    // First it is worth nothing, then it is in use.
    const auto renewed = server.Change(list, [&](Guard& guard) {
      Renew(guard, list);
      return true;
    });
    if (!renewed.ok()) return;
    const uint64_t when = view.view.suspended.at(server.name());
    const auto status = view_.Change([&](View& now) {
      const auto still = now.suspended.find(server.name());
      if (still == now.suspended.end() || still->second != when) return false;
      now.suspended.erase(still);
      return true;
    });
    if (status.ok()) spdlog::info("caches: {} answers and is used again", server.name());
    return;
  }
  // A guard is made for the list in force only.
  const auto known = view.Holds() ? server.Read(list) : absl::CancelledError();
  if (!known.ok()) {
    if (!absl::IsCancelled(known.status())) server.Failed(known.status());
    quarantines_.erase(&server);
    return;
  }
  server.Succeeded();
  const Guard& guard = (*known)->guard;
  const bool trusted = guard.trusted && std::all_of(guard.left.begin(), guard.left.end(),
                                                    [](const auto& left) { return left.second.trusted; });
  if (trusted || view.view.changing != 0 || !view.Holds() || guard.list != list) {
    quarantines_.erase(&server);
    return;
  }
  // It is counted from when this process has seen this guard, and the server in use, without a break.
  const auto [quarantine, begins] = quarantines_.try_emplace(&server);
  if (begins || quarantine->second.guard != (*known)->text) {
    quarantine->second = {.guard = (*known)->text, .since = BootClock::now()};
    return;
  }
  if (BootClock::now() < quarantine->second.since + std::chrono::seconds(view.view.quarantine_s)) return;
  const auto status = server.Change(list, [&](Guard& now) {
    if (now != guard) return false;
    now.trusted = true;
    for (auto& [incarnation, dataset] : now.left) dataset.trusted = true;
    return true;
  });
  if (status.ok()) spdlog::info("caches: the quarantine of {} is over", server.name());
}

void Cache::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    lock.Unlock();
    if (const auto view = view_.Load(); view != nullptr) {
      for (const auto& server : Servers(*view)) LookAfter(*view, *server);
      LookAfterMarks(*view);
    }
    CheckSamples();
    lock.Lock();
    const auto next = std::chrono::steady_clock::now() + kPause;
    while (!stopping_) {
      if (lock.WaitUntil(changed_, next)) break;
    }
  }
}

void Cache::Check(const Key& key, char part, Peek peek) {
  const MutexLock lock(mutex_);
  // The room limits how many writes are sampled: each has its place for a minute.
  if (samples_.size() >= kMaxSamples) return;
  samples_.push_back({.key = key,
                      .part = part,
                      .peek = std::move(peek),
                      .due = std::chrono::steady_clock::now() + kFirstCheck,
                      .again = true});
}

void Cache::CheckSamples() {
  // A few at a time: the servers are to be looked after, too, and this may be about to end.
  for (int i = 0; i < kChecksAtOnce; ++i) {
    Sample sample;
    {
      const MutexLock lock(mutex_);
      const auto now = std::chrono::steady_clock::now();
      const auto due =
          std::find_if(samples_.begin(), samples_.end(), [&](const Sample& one) { return one.due <= now; });
      if (stopping_ || due == samples_.end()) return;
      sample = std::move(*due);
      samples_.erase(due);
    }
    {
      const CallScope scope(kCheckTime);
      Compare(sample);
    }
    if (!std::exchange(sample.again, false)) continue;
    sample.due += kSecondCheck - kFirstCheck;
    const MutexLock lock(mutex_);
    samples_.push_back(std::move(sample));
  }
}

void Cache::Compare(const Sample& sample) {
  const auto view = view_.Load();
  if (view == nullptr || view->view.changing != 0 || RingOf(*view).empty() || !view->Holds()) return;
  const auto server = ServerOf(*view, sample.key);
  const auto look = [&]() -> std::optional<std::string> {
    std::vector<Found> found(1);
    FindOn(*view, server, {&sample.key, 1}, {0}, sample.part, /*lease=*/false, found);
    return found.front().value;
  };
  const auto cached = look();
  if (!cached) return;
  const auto stored = sample.peek();
  if (!stored.ok()) return;
  ++stats_.checked;
  if (*stored == cached) return;
  // It may have been written to since. If so, the cache has another value by now, or none.
  if (look() != cached) return;
  const auto later = sample.peek();
  if (!later.ok() || *later != *stored) return;
  ++stats_.inconsistent;
  spdlog::error("caches: {} has for ID {} what the backend does not have any more; it is removed",
                server->name(), sample.key.id);
  if (const auto known = server->known()) {
    server->server().Forget(KeyName(known->guard, sample.key.incarnation, sample.key.id)).IgnoreError();
  }
}

}  // namespace kvstore::cached
