#include "shardops/move_gone.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/mysql/driver/tables.h"
#include "shardops/notes.h"

namespace kvstore::shardops {
namespace {

/// Returns the pair as the maps have it now; null if none of its hosts is in a map.
const Pair* FindPair(const std::vector<Pair>& pairs, const Pair& pair) {
  for (const Pair& one : pairs) {
    if (one.SharesHost(pair)) return &one;
  }
  return nullptr;
}

/// Whether a host can be reached, also if it refuses the operator's login.
bool IsThere(const FleetOperator& fleet, const Host& host) {
  return !absl::IsUnavailable(HostAdmin::Open(host, fleet.access).status());
}

}  // namespace

bool SameHosts(const Pair& a, const Pair& b) { return a.Has(b.master) && a.Has(b.slave); }

absl::Status TargetSilentError(const MoveRecord& move, const absl::Status& why) {
  if (!absl::IsUnavailable(why)) return why;
  return absl::UnavailableError(fmt::format(
      "{}\nThe move of shards {} is not ended. When that host is back, run the command again. If {} and {} "
      "are gone for good: kv shards move cancel {}--range {}-{} --gone {},{}",
      std::string(why.message()), move.range.ToString(), move.to.master.ToString(), move.to.slave.ToString(),
      move.range.space == ShardSpace::kMod ? "--mod " : "", move.range.first, move.range.last,
      move.to.master.ToString(), move.to.slave.ToString()));
}

absl::Status CheckTargetGone(FleetOperator& fleet, const Maps& maps, const MoveRecord& move,
                             const Pair& gone) {
  if (!SameHosts(gone, move.to)) {
    return Refuse(fmt::format("gone: the move of shards {} goes to {},{}, not to {},{}; nothing was changed",
                              move.range.ToString(), move.to.master.ToString(), move.to.slave.ToString(),
                              gone.master.ToString(), gone.slave.ToString()));
  }
  const std::vector<Pair> pairs = maps.Pairs();
  const Pair* const in_maps = FindPair(pairs, move.to);
  const Pair& now = in_maps != nullptr ? *in_maps : move.to;
  if (IsThere(fleet, now.master)) {
    return Refuse(fmt::format(
        "gone: {} answers: leave out --gone, so that the copies are removed there; nothing was changed",
        now.master.ToString()));
  }
  if (!IsThere(fleet, now.slave)) return absl::OkStatus();
  if (in_maps != nullptr) {
    return Refuse(
        fmt::format("gone: {} answers, and can take the place of {}: kv shards promote {} --emergency, then "
                    "kv shards move cancel {}--range {}-{}, without --gone; nothing was changed",
                    now.slave.ToString(), now.master.ToString(), now.slave.ToString(),
                    move.range.space == ShardSpace::kMod ? "--mod " : "", move.range.first, move.range.last));
  }
  fleet.report(
      fmt::format("{}: answers, but it was only to be the slave of {}: what it has of shards {} is a copy "
                  "that nobody uses, and stays there",
                  now.slave.ToString(), now.master.ToString(), move.range.ToString()));
  return absl::OkStatus();
}

absl::Status MovedToGoneError(const MoveRecord& move, const MoveRange& moved, const Host& home) {
  return Refuse(fmt::format(
      "shards {} have moved to {},{}: what was written to them since is only there, so the move is not "
      "ended. Save a disk of these hosts and bring that host back if you can. Else {} has their old tables, "
      "as they were when they moved, in databases such as {}: docs/runbook.md, 'The new hosts of a move are "
      "gone for good', says how to go back to these",
      moved.ToString(), move.to.master.ToString(), move.to.slave.ToString(), home.ToString(),
      mysql::MovedName(moved.Databases().front())));
}

absl::Status LeaveTarget(FleetOperator& fleet, const Held& held, MoveRecord& move) {
  for (const Host& host : {move.to.master, move.to.slave}) {
    if (auto status = RecordLeftCopies(fleet, held, host, move.range); !status.ok()) return status;
  }
  std::erase_if(move.old_homes, [&](const Pair& pair) { return SameHosts(pair, move.to); });
  fleet.report(fmt::format(
      "{0} and {1} were not asked, and may have copies of shards {2}. Wipe them before they are on the "
      "network again: a server that is started with its old data may go on to replicate from {3}, and "
      "acknowledge commits in the place of that one's slave. If they come back, kv shards status names what "
      "they have",
      move.to.master.ToString(), move.to.slave.ToString(), move.range.ToString(),
      move.from.master.ToString()));
  return absl::OkStatus();
}

absl::Status CheckOldHomeGone(FleetOperator& fleet, const MoveRecord& move, const Pair& gone) {
  const auto is_named = [&](const Pair& pair) { return SameHosts(pair, gone); };
  if (std::none_of(move.old_homes.begin(), move.old_homes.end(), is_named)) {
    std::vector<std::string> names;
    for (const Pair& pair : move.old_homes) {
      names.push_back(pair.master.ToString() + "," + pair.slave.ToString());
    }
    return Refuse(fmt::format(
        "gone: the old tables of shards {} are at {}, not at {},{}; nothing was changed",
        move.range.ToString(), fmt::join(names, " and "), gone.master.ToString(), gone.slave.ToString()));
  }
  for (const Host& host : {gone.master, gone.slave}) {
    if (!IsThere(fleet, host)) continue;
    return Refuse(fmt::format("gone: {} answers: leave out --gone; nothing was changed", host.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace kvstore::shardops
