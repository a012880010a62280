#include "backends/cached/protocol/guarded_server.h"

#include <algorithm>
#include <utility>

namespace kvstore::cached {
namespace {

/// How often a guard is tried to be changed that others change, too.
constexpr int kGuardRounds = 100;
constexpr std::chrono::milliseconds kShortestRest{50};
constexpr std::chrono::milliseconds kLongestRest{2'000};

}  // namespace

bool IsFailure(const absl::Status& status) {
  return !status.ok() && !absl::IsResourceExhausted(status) && !absl::IsAborted(status);
}

void GuardedServer::Note(const std::optional<std::string>& text) {
  const auto before = known_.Load();
  if (before != nullptr && text && before->text == *text) return;
  std::shared_ptr<Known> known;
  if (text) {
    if (auto guard = ParseGuard(*text)) known = std::make_shared<Known>(Known{*text, *std::move(guard)});
  }
  known_.Store(known);
}

absl::Status GuardedServer::Change(uint64_t list, const std::function<bool(Guard&)>& change) {
  for (int round = 0; round < kGuardRounds; ++round) {
    std::optional<std::string> text;
    bool later = false;
    const auto changed = server_->ChangeGuard([&](const std::optional<std::string>& read) {
      std::optional<Guard> stored;
      if (read) stored = ParseGuard(*read);
      later = stored && stored->list > list;
      text = read;
      if (later) return std::optional<std::string>();
      Guard guard;
      if (stored) guard = *stored;
      // A guard of an earlier list knows nothing of writers that mark other servers by that list.
      const bool anew = !stored || stored->list < list;
      if (anew) Renew(guard, list);
      if (!change(guard) && !anew) return std::optional<std::string>();
      text = ToText(guard);
      return text;
    });
    if (!changed.ok()) return changed.status();
    if (!*changed) continue;
    Note(text);
    if (!later) return absl::OkStatus();
    return absl::AbortedError(name() + ": another list of cache servers is in force by now");
  }
  return absl::UnavailableError(name() + ": others change its guard without end");
}

absl::StatusOr<std::shared_ptr<const GuardedServer::Known>> GuardedServer::Read(uint64_t list) {
  if (auto status = Change(list, [](Guard&) { return false; }); !status.ok()) return status;
  auto known = known_.Load();
  if (known == nullptr) return absl::UnavailableError(name() + ": its guard was lost while it was read");
  return known;
}

void GuardedServer::Failed(const absl::Status& why) {
  if (!IsFailure(why)) return;
  const uint32_t failures = std::min(failures_.fetch_add(1), 6U);
  const auto rest = std::min(kShortestRest * (1U << failures), kLongestRest);
  rests_until_ = (BootClock::now() + rest).time_since_epoch().count();
}

}  // namespace kvstore::cached
