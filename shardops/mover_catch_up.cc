#include <fmt/format.h>

#include <chrono>
#include <string>

#include "base/fail_point.h"
#include "shardops/blocked_commits.h"
#include "shardops/channel.h"
#include "shardops/move_checks.h"
#include "shardops/mover.h"
#include "shardops/replication_gap.h"

/// The part of a move between the copy and the switch: the copy follows its source until it is close behind.
namespace kvstore::shardops {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A copy has caught up when it reaches the source's present position within this time.
constexpr milliseconds kClose{200};
/// With hold_writes: how long a copy may be behind before commits of its source are blocked, and for how long
/// at a time.
constexpr std::chrono::seconds kPatience{10};
constexpr milliseconds kBlockCommitsFor{400};
/// How often a copy that has not caught up checks whether it still can.
constexpr std::chrono::seconds kCheckRolesInterval{1};

/// Whether a channel has applied nothing, and does nothing, whatever its filter is. So Start leaves it if the
/// process dies before it sets the filter: with none, or, on MariaDB, with that of an earlier move.
bool IsUnused(const ChannelState& state, const MoveRecord& move) {
  return state.source == move.from.master && !state.receives && !state.applies &&
         state.applied.file == move.position.file && state.applied.offset == move.position.offset;
}

}  // namespace

absl::Status Mover::Follow() {
  Channel channel(*target_, move_.position);
  const std::string patterns = ReplicationPatterns(move_.range.space, move_.range.first, move_.range.last);
  const auto state = channel.Read();
  if (!state.ok()) return state.status();
  if (!*state && move_.state == MoveState::kSwitching) {
    // The channel has ended because all shards have moved, or because somebody has removed it.
    const auto part = NextPart();
    if (!part.ok()) return part.status();
    if (!*part) return absl::OkStatus();
  }
  if (move_.position.file.empty()) {
    return Refuse(fmt::format(
        "{0}: the channel from {1} has not been told to skip what put shards back into use there, since {0} "
        "did not answer then, or a cancel was stopped. kv shards move cancel, and begin again",
        move_.to.master.ToString(), move_.from.master.ToString()));
  }
  if (*state && (*state)->source == move_.from.master && (*state)->patterns == patterns) {
    // The source may have lost since what it had sent.
    if (auto status = CheckNothingAhead(*source_, *target_, move_.from, /*copied=*/true); !status.ok()) {
      return status;
    }
    if (!(*state)->applies || !(*state)->receives) {
      if (auto status = channel.Resume(fleet_.access); !status.ok()) return status;
    }
  } else if ((!*state || IsUnused(**state, move_)) && move_.state == MoveState::kFollowing) {
    if (auto status = channel.End(); !status.ok()) return status;
    if (auto status = channel.Start(move_.from.master, fleet_.access, patterns); !status.ok()) return status;
  } else {
    return Refuse(
        fmt::format("{}: the channel from {} is not as it was: the server was started again, or "
                    "somebody has changed it. kv shards move cancel, and begin again",
                    move_.to.master.ToString(), move_.from.master.ToString()));
  }
  Reached("move.following");
  return CatchUp();
}

absl::Status Mover::CatchUp() {
  auto reader = HostAdmin::Open(move_.to.master, fleet_.access);
  if (!reader.ok()) return reader.status();
  target_reader_ = *std::move(reader);
  const auto begin = Clock::now();
  auto checked = begin;
  ReplicationGap gap;
  bool slow = false;
  for (;;) {
    absl::Status status = CatchUpWithin(kClose);
    if (!absl::IsDeadlineExceeded(status)) return status;
    if (Clock::now() - checked >= kCheckRolesInterval) {
      checked = Clock::now();
      if (auto roles = CheckRoles(); !roles.ok()) return roles;
      const auto slave = target_slave_->Read();
      if (!slave.ok()) return slave.status();
      const absl::Status replicates = CheckReplicates(move_.to.slave, *slave, move_.to.master);
      if (gap.IsTooLong(replicates, Clock::now())) {
        return absl::UnavailableError(fmt::format(
            "{}\nkv shards status says how to mend that; then run the command again to go on, or give "
            "up by kv shards move cancel",
            std::string(replicates.message())));
      }
    }
    if (auto shown = ReportProgress("catch up", 0, 0); !shown.ok()) return shown;
    if (Clock::now() - begin < kPatience) continue;
    if (!slow) {
      fleet_.report(fmt::format("{}: has not caught up in {} s: {}", Description(), kPatience.count(),
                                options_.hold_writes
                                    ? "commits at the old master wait now and then"
                                    : "if it goes on like that, stop this and run it with --hold-writes"));
      slow = true;
    }
    if (!options_.hold_writes) continue;
    const auto held = BlockedCommits::Block(move_.from.master, fleet_.access);
    if (!held.ok()) continue;
    status = CatchUpWithin(kBlockCommitsFor);
    if (!absl::IsDeadlineExceeded(status)) return status;
  }
}

absl::Status Mover::CheckRoles() const {
  if (auto status = held_.Check(); absl::IsAborted(status)) return status;
  const auto maps = Maps::Load(fleet_.zookeeper, fleet_.root);
  // The copy goes on while ZooKeeper is away; only the switch needs it.
  if (!maps.ok()) return absl::OkStatus();
  // Shards move in their order, so those that have not moved yet are the last ones.
  uint32_t first = move_.range.first;
  while (first <= move_.range.last && maps->PairOf(move_.range.space, first) == move_.to) ++first;
  if (first > move_.range.last) return absl::OkStatus();
  return CheckHomes(*maps, {move_.range.space, first, move_.range.last});
}

absl::Status Mover::CatchUpWithin(milliseconds wait) {
  const auto end = ReadPosition(*source_);
  if (!end.ok()) return end.status();
  if (auto status = Channel(*target_reader_, move_.position).AwaitCaughtUp(*end, wait); !status.ok()) {
    return status;
  }
  // The target's slave must have received the same, so that it can replace the target from the first moment.
  // It may apply that later: under load it may lag for long.
  const auto there = target_reader_->Read();
  if (!there.ok()) return there.status();
  return target_slave_->AwaitReceived(there->gtid, wait);
}

}  // namespace kvstore::shardops
