#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/fail_point.h"
#include "shardops/notes.h"
#include "shardops/promoter.h"
#include "shardops/remember.h"
#include "shardops/status.h"

/// The last step of a promotion: the other host follows the one that takes writes.
namespace kvstore::shardops {
namespace {

/// How often TryAttach asks the hosts.
constexpr std::chrono::milliseconds kAttachPoll{20};
/// How long a master may count a slave whose connection has ended.
constexpr std::chrono::seconds kNoticed{1};
/// How often a wait for the slave checks that nobody has taken the operation over.
constexpr std::chrono::seconds kCheckHeldInterval{1};

}  // namespace

bool Promoter::Attach(HostAdmin& master, HostAdmin& slave, bool follows) {
  if (auto status = TryAttach(master, slave, follows); !status.ok()) {
    fleet_.report(fmt::format("{} does not follow {} yet: {}", other().ToString(), host().ToString(),
                              std::string(status.message())));
    return false;
  }
  fleet_.report(fmt::format("{} follows {}", other().ToString(), host().ToString()));
  return true;
}

absl::Status Promoter::TryAttach(HostAdmin& master, HostAdmin& slave, bool follows) {
  if (!follows) {
    // This process may have slept since it looked. Whoever goes on in its place takes the claims away, in the
    // ledger and on the host.
    Reached("promote.following");
    if (auto status = held_.Check(); absl::IsAborted(status)) return status;
    const auto leads = master.Read();
    if (!leads.ok()) return leads.status();
    const auto was = slave.Read();
    if (!was.ok()) return was.status();
    if (const std::string lost = LostTransactions(*was, *leads); !lost.empty()) {
      return Refuse(fmt::format("{} {}", other().ToString(), lost));
    }
    if (auto status = slave.Follow(host(), fleet_.access); !status.ok()) return status;
    // Clients that connected meanwhile have the old map.
    if (const auto ended = slave.EndClients(); !ended.ok()) return ended.status();
  }
  const auto deadline = Clock::now() + options_.catch_up;
  auto checked = Clock::now();
  std::optional<Clock::time_point> active_since;
  for (;;) {
    if (Clock::now() - checked >= kCheckHeldInterval) {
      checked = Clock::now();
      // In an emergency another promotion may have taken this pair over.
      if (auto status = held_.Check(); absl::IsAborted(status)) return status;
    }
    const auto state = master.Read();
    if (!state.ok()) return state.status();
    const auto there = slave.Read();
    if (!there.ok()) return there.status();
    // A slave that has lost its master for a moment reconnects by itself.
    const bool tries = there->following && there->following->applies && there->following->reconnects;
    if (there->following && !there->following->error.empty() && (!tries || Clock::now() >= deadline)) {
      // Running the command again would end the same way.
      if (IsBroken(*there->following)) {
        return Refuse(
            fmt::format("{}\nUnless that can be mended, it is made new: kv shards replace-slave {} "
                        "--discard",
                        there->following->error, other().ToString()));
      }
      return Refuse(there->following->error);
    }
    if (!state->semi_sync_master) {
      return Refuse(fmt::format(
          "{} acknowledges commits without its slave: SET GLOBAL {} = ON there, then run the command again",
          host().ToString(), WordsOf(state->engine).semi_sync));
    }
    // Commits are made to wait only once the slave has received everything: earlier they would wait for all
    // of that.
    if (state->semi_sync_slaves > 0 && CountNotReceived(state->gtid, *there) == 0) {
      const SemiSyncWait wanted = WantedSemiSync(NoteOrEmpty(fleet_, host()), *state);
      absl::Status status = master.SetSemiSync(wanted.no_slave, wanted.timeout_ms);
      if (!status.ok()) return status;
      const auto now = master.Read();
      if (!now.ok()) return now.status();
      // If the master counts several slaves, it may not have noticed yet that an earlier connection has
      // ended; or there is another slave.
      if (now->semi_sync_active && !active_since) active_since = Clock::now();
      const bool sure =
          active_since && (now->semi_sync_slaves == 1 || Clock::now() >= *active_since + kNoticed);
      if (now->semi_sync_active && sure) return RecordMasterState(fleet_, *now, &slave);
    }
    if (Clock::now() >= deadline) return absl::DeadlineExceededError("it does not connect to its new master");
    std::this_thread::sleep_for(kAttachPoll);
  }
}

}  // namespace kvstore::shardops
