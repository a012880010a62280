#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "backend_api/outcome.h"
#include "backends/cached/protocol/cache.h"
#include "base/clock.h"
#include "base/random_number.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/in_doubt.h"

/// Writes, their marks, and servers that cannot be reached to be marked.
namespace kvstore::cached {
namespace {

using std::chrono::milliseconds;

/// How often something is tried again that others come in between of, and the pause where a list of servers
/// comes into force.
constexpr int kMarkRounds = 20;
constexpr milliseconds kMarkPause{20};

/// How long a write may take. An unmarked one may begin a lease after its server is used again, and the
/// backend gets as long again for what a process has sent that has died: together that is less than the
/// quarantine.
std::chrono::nanoseconds LongestWrite(const View& view) {
  return (std::chrono::seconds(view.quarantine_s) - milliseconds(view.lease_ms)) / 3;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const KnownView>> Cache::ViewThatHolds() {
  auto view = view_.Load();
  for (int round = 0; view == nullptr || !view->Holds(); ++round) {
    if (auto status = CheckCall(); !status.ok()) return status;
    if (round == kMarkRounds) return absl::UnavailableError("ZooKeeper takes longer to answer than lease_ms");
    if (auto status = view_.Refresh(); !status.ok()) return status;
    view = view_.Load();
  }
  return view;
}

absl::StatusOr<bool> Cache::AwaitSuspension(const std::string& server) {
  for (;;) {
    const auto view = ViewThatHolds();
    if (!view.ok()) return view.status();
    const auto since = (*view)->suspended_since.find(server);
    if (since == (*view)->suspended_since.end()) return false;
    const auto left = since->second + milliseconds((*view)->view.lease_ms) - BootClock::now();
    if (left <= left.zero()) return true;
    if (auto status = CheckCall(); !status.ok()) return status;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, milliseconds(20)));
  }
}

absl::Status Cache::Suspend(const std::string& server) {
  bool first = false;
  auto status = view_.Change([&](View& view) {
    first = view.suspended.emplace(server, WallClockMs()).second;
    return first;
  });
  if (!status.ok()) return status;
  if (first) spdlog::warn("caches: {} cannot be reached by this process; nobody uses it for a while", server);
  return AwaitSuspension(server).status();
}

absl::StatusOr<Cache::MarkedKey> Cache::MarkKey(const Key& key) {
  const auto refuse = [](const absl::Status& why) -> absl::Status {
    if (auto late = CheckCall(); !late.ok()) return late;
    return absl::UnavailableError(
        fmt::format("caches: nothing was written, because no cache may be left with what is there now: {}",
                    std::string(why.message())));
  };
  absl::Status failed;
  for (int round = 0; round < kMarkRounds; ++round) {
    if (auto status = CheckCall(); !status.ok()) return status;
    auto view = view_.Load();
    // A process that knows of no servers would not notice that there are some by now.
    if (view == nullptr || (RingOf(*view).empty() && !view->Holds())) {
      auto holds = ViewThatHolds();
      if (!holds.ok()) return refuse(holds.status());
      view = *std::move(holds);
    }
    MarkedKey marked{.longest = LongestWrite(view->view), .since = BootClock::now(), .mark = {}};
    if (RingOf(*view).empty()) return marked;
    const auto server = ServerOf(*view, key);
    if (view->view.suspended.contains(server->name())) {
      const auto suspended = AwaitSuspension(server->name());
      marked.since = BootClock::now();
      if (suspended.ok() && *suspended) return marked;
      if (suspended.ok()) continue;
      if (auto status = CheckCall(); !status.ok()) return status;
      // ZooKeeper cannot be reached, so the server may be in use by now. If it can be reached, it is marked.
    }
    auto known = server->known();
    failed = absl::OkStatus();
    if (known == nullptr || known->guard.list < view->view.list) {
      // A guard is made for the list in force only.
      const auto holds = ViewThatHolds();
      if (!holds.ok()) return refuse(holds.status());
      if ((*holds)->view.list != view->view.list) continue;
      auto read = server->Read(view->view.list);
      failed = read.status();
      if (read.ok()) known = *std::move(read);
    }
    if (absl::IsAborted(failed) || (failed.ok() && known->guard.list > view->view.list)) {
      if (auto status = view_.Refresh(); !status.ok()) return refuse(status);
      failed =
          absl::UnavailableError(fmt::format("{} has been told of a later list of servers than ZooKeeper "
                                             "has. If that was restored: kv cache use",
                                             server->name()));
      if (round > 0) std::this_thread::sleep_for(kMarkPause);
      continue;
    }
    if (failed.ok()) {
      const std::string text = KeyName(known->guard, key.incarnation, key.id);
      marked.since = BootClock::now();
      // A number for each attempt, so that what is left of one has nothing to do with the next.
      const uint64_t mark = RandomNumber();
      const auto answer = server->server().Mark(text, mark);
      if (answer.ok()) {
        Mark made{.server = server, .key = text, .number = mark, .version = answer->version};
        server->Note(answer->guard);
        const auto now = server->known();
        // The guard may have changed in a way that does not concern this key.
        if (now != nullptr && now->text == answer->guard && now->guard.list == known->guard.list &&
            KeyName(now->guard, key.incarnation, key.id) == text) {
          server->Succeeded();
          marked.mark = std::move(made);
          return marked;
        }
        // The mark is where nobody looks any more.
        Unmark(std::move(made));
        failed = absl::UnavailableError(server->name() + ": others change its guard without end");
        continue;
      }
      failed = answer.status();
    }
    ++stats_.failures;
    // If all connections are in use it is not the server that fails.
    if (absl::IsResourceExhausted(failed)) continue;
    server->Failed(failed);
    if (auto status = Suspend(server->name()); !status.ok()) {
      return refuse(absl::UnavailableError(
          fmt::format("{}; {}", std::string(failed.message()), std::string(status.message()))));
    }
  }
  return refuse(failed);
}

void Cache::Unmark(Mark mark) {
  const auto status = mark.server->server().Unmark(mark.key, mark.number, mark.version);
  if (status.ok()) return;
  ++stats_.failures;
  mark.server->Failed(status);
  const MutexLock lock(mutex_);
  if (unmarks_.size() < kMaxMarks) unmarks_.push_back(std::move(mark));
}

void Cache::Doubt(const Key& key, std::optional<Mark> mark) {
  ++stats_.in_doubt;
  const MutexLock lock(mutex_);
  if (doubts_.size() >= kMaxMarks) {
    spdlog::error(
        "caches: more than {} writes are in doubt: what was there before ID {} was written may be cached",
        kMaxMarks, key.id);
    return;
  }
  const auto now = BootClock::now();
  doubts_.push_back(
      {.key = key,
       .mark = mark ? *std::move(mark) : Mark{.server = nullptr, .key = {}, .number = RandomNumber()},
       .due = now,
       .until = now + std::chrono::seconds(kMarkSeconds)});
}

absl::Status Cache::Write(const Key& key, const std::function<absl::Status()>& write) {
  for (;;) {
    auto marked = MarkKey(key);
    if (!marked.ok()) return marked.status();
    const auto left = marked->since + marked->longest - BootClock::now();
    if (left < marked->longest / 2) {
      // This process was stopped for a while.
      if (marked->mark) Unmark(*std::move(marked->mark));
      continue;
    }
    ++(marked->mark ? stats_.marks : stats_.unmarked);
    absl::Status status;
    {
      // A write that takes longer may still be in flight when a quarantine ends.
      const CallScope scope(left);
      status = write();
    }
    if (!status.ok() && IsInDoubt(status)) {
      // It may happen at any time yet. The mark stays until it cannot any more.
      Doubt(key, std::move(marked->mark));
      return status;
    }
    if (marked->mark) Unmark(*std::move(marked->mark));
    if (!status.ok() || BootClock::now() < marked->since + marked->longest) return status;
    // It has taken longer than it may, so what was there before may be cached by now, under another guard.
    auto again = MarkKey(key);
    if (!again.ok()) {
      Doubt(key, std::nullopt);
      return MarkInDoubt(absl::UnavailableError(
          "caches: it was written, but took so long that what was there before may be cached for a moment"));
    }
    if (again->mark) Unmark(*std::move(again->mark));
    return status;
  }
}

}  // namespace kvstore::cached
