#include "shardops/move.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/driver/tables.h"
#include "base/fail_point.h"
#include "shardops/channel.h"
#include "shardops/copy.h"
#include "shardops/freeze.h"
#include "shardops/map_history.h"
#include "shardops/move_gone.h"
#include "shardops/mover.h"
#include "shardops/skipped_statements.h"

namespace kvstore::shardops {
namespace {

/// Returns the pair that has all shards of a range. FAILED_PRECONDITION if they are on several pairs, or not
/// all open.
absl::StatusOr<Pair> HomeOf(const Maps& maps, const MoveRange& range) {
  const StoredMap* const stored = maps.Find(range.space);
  if (range.space == ShardSpace::kMod && stored != nullptr && range.last >= stored->map.open_shards()) {
    return Refuse(fmt::format(
        "range: {} goes beyond {}, the last mod shard: there are {} of them, and their number never changes",
        range.ToString(), stored->map.open_shards() - 1, stored->map.open_shards()));
  }
  std::optional<Pair> home;
  for (uint32_t shard = range.first; shard <= range.last; ++shard) {
    const auto pair = maps.PairOf(range.space, shard);
    if (!pair)
      return Refuse(fmt::format(
          "range: shard {} of {} is not open: kv shards get shows which are, kv shards open opens more",
          shard, range.ToString()));
    if (home && *home != *pair) {
      return Refuse(fmt::format("range: {} is on {} and on {}: move each part by itself", range.ToString(),
                                home->master.ToString(), pair->master.ToString()));
    }
    home = pair;
  }
  return *home;
}

const MoveRecord* Find(const Moves& moves, const MoveRange& range) {
  const auto found = std::find_if(moves.known.begin(), moves.known.end(),
                                  [&](const MoveRecord& move) { return move.range == range; });
  return found == moves.known.end() ? nullptr : &*found;
}

bool Has(const Pair& pair, const Host& host) { return pair.master == host || pair.slave == host; }

/// Returns the host of a pair that is a master by the maps now, since a promotion may have swapped the roles.
Host MasterOf(const Maps& maps, const Pair& pair) {
  for (const Pair& now : maps.Pairs()) {
    if (Has(pair, now.master)) return now.master;
  }
  return pair.master;
}

/// Returns how many of a move's shards have moved; they are the first ones, since groups are switched in
/// order. In either pair, a promotion may have swapped the roles since the move began, or the slave was
/// replaced.
absl::StatusOr<uint32_t> CountMoved(const Maps& maps, const MoveRecord& move) {
  uint32_t moved = 0;
  for (uint32_t shard = move.range.first; shard <= move.range.last; ++shard) {
    const auto home = maps.PairOf(move.range.space, shard);
    const bool there = home && Has(move.to, home->master);
    if (!there && (!home || !Has(move.from, home->master))) {
      const char* const undo = move.range.space == ShardSpace::kMod
                                   ? "kv shards history --mod shows what the map was before it was "
                                     "edited, kv shards undo --mod puts that in force again"
                                   : "kv shards history shows what the map was before it was "
                                     "edited, kv shards undo puts that in force again";
      return Refuse(fmt::format(
          "shard {} of {} is on {} by the map, neither where it was nor where it was to go, and one of those "
          "has only a part of it: {}",
          shard, move.range.ToString(), home ? home->master.ToString() : "no host", undo));
    }
    if (there && shard != move.range.first + moved) {
      return Refuse(
          fmt::format("shard {} of {} has moved, and one before it has not: kv shards get shows the map, "
                      "which somebody has edited",
                      shard, move.range.ToString()));
    }
    if (there) ++moved;
  }
  return moved;
}

/// Ends the channel of a host if it answers now.
void EndChannelIfItAnswers(FleetOperator& fleet, const Host& target) {
  const auto admin = HostAdmin::Open(target, fleet.access);
  if (admin.ok()) Channel(**admin).End().IgnoreError();
}

/// Removes the operation of a move that is not under way (any more) from the ledger, where a process that
/// died may have left it.
absl::Status EndOperation(FleetOperator& fleet, const MoveRange& range) {
  return fleet.ledger->EndLasting(OperationName(range));
}

/// Loads the record of a move that is under way. NOT_FOUND if there is none; an operation that is left in the
/// ledger is removed then.
///
/// named  As of CancelMove.
absl::StatusOr<MoveRecord> LoadUnfinishedMove(FleetOperator& fleet, const MoveRange& range,
                                              const std::optional<MovePairs>& named) {
  const auto moves = LoadMoves(fleet);
  if (!moves.ok()) return moves.status();
  if (named) {
    const auto damaged = std::find_if(moves->damaged.begin(), moves->damaged.end(),
                                      [&](const DamagedMove& move) { return move.range == range; });
    if (damaged != moves->damaged.end()) return RebuildMove(fleet, *moves, *damaged, *named);
    if (Find(*moves, range) != nullptr) {
      return Refuse(
          fmt::format("from, to: the record of the move of shards {} can be read, and names the hosts: "
                      "leave out --from and --to",
                      range.ToString()));
    }
  }
  // Hosts and shards that are claimed for a move whose record is damaged stay claimed.
  if (auto status = moves->CheckRange(range); !status.ok()) return status;
  const MoveRecord* const found = Find(*moves, range);
  if (found != nullptr && found->state != MoveState::kMoved) return *found;
  if (auto status = EndOperation(fleet, range); !status.ok()) return status;
  return absl::NotFoundError(
      fmt::format("shards {}: no move of exactly these shards is under way; see kv shards move status",
                  range.ToString()));
}

/// Loads the record of a move whose shards have all moved, as FinishMove describes.
absl::StatusOr<MoveRecord> LoadFinishedMove(FleetOperator& fleet, const MoveRange& range) {
  const auto moves = LoadMoves(fleet);
  if (!moves.ok()) return moves.status();
  if (auto status = moves->CheckRange(range); !status.ok()) return status;
  const MoveRecord* const move = Find(*moves, range);
  if (move == nullptr) {
    return absl::NotFoundError(fmt::format(
        "shards {}: no move of exactly these shards is known; see kv shards move status", range.ToString()));
  }
  if (move->state != MoveState::kMoved) {
    return Refuse(
        fmt::format("shards {} have not all moved yet: the move is {}. Run kv shards move again, or kv "
                    "shards move cancel",
                    range.ToString(), Name(move->state)));
  }
  return *move;
}

/// Checks that a host has the databases of shards, before copies of them are removed elsewhere.
absl::Status CheckHasAll(HostAdmin& host, const MoveRange& shards) {
  const auto names = host.ReadDatabases();
  if (!names.ok()) return names.status();
  for (const std::string& database : shards.Databases()) {
    if (std::find(names->begin(), names->end(), database) != names->end()) continue;
    return Refuse(
        fmt::format("{}: has no {}, which it has by the map: the copy is not removed. kv shards check "
                    "says which hosts have that database",
                    host.host().ToString(), database));
  }
  return absl::OkStatus();
}

/// Checks that the masters that the maps have now have the databases of shards, before old tables of these
/// are removed elsewhere: without a master that has them, the old tables are all that is left.
absl::Status CheckHomesHaveAll(FleetOperator& fleet, const Maps& maps, const MoveRange& shards) {
  for (const StoredMap& stored : maps.all()) {
    if (stored.space != shards.space) continue;
    for (const ShardRange& range : stored.map.ranges()) {
      const MoveRange there{.space = shards.space,
                            .first = std::max(range.first, shards.first),
                            .last = std::min(range.last, shards.last)};
      if (there.first > there.last) continue;
      const auto master = HostAdmin::Open(range.master, fleet.access);
      if (!master.ok()) {
        return absl::Status(
            master.status().code(),
            fmt::format("{}\nThe old tables of shards {} stay as long as it does not answer: they may be all "
                        "that is left of these",
                        std::string(master.status().message()), there.ToString()));
      }
      if (auto status = CheckHasAll(**master, there); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

/// Returns the databases that the old tables of shards have at one of the pairs that they were on.
///
/// home  The pair that the maps have the shards on; nullopt if they are on several.
///
/// A slave that was promoted without what its master had done last may have these shards under their own
/// names still, as before the move. These count too if the maps have the shards elsewhere, where all of them
/// are (CheckHomesHaveAll).
absl::StatusOr<std::vector<std::string>> OldDatabases(FleetOperator& fleet, HostAdmin& admin,
                                                      const MoveRange& range, const Pair& pair,
                                                      const std::optional<Pair>& home) {
  std::vector<std::string> old;
  for (const std::string& database : range.Databases()) old.push_back(mysql::MovedName(database));
  const auto is_home = [&](const Host& host) { return host == home->master || host == home->slave; };
  if (!home || is_home(pair.master) || is_home(pair.slave) || is_home(admin.host())) return old;
  const auto names = admin.ReadDatabases();
  if (!names.ok()) return names.status();
  const size_t put_away = old.size();
  for (const std::string& database : range.Databases()) {
    if (std::find(names->begin(), names->end(), database) != names->end()) old.push_back(database);
  }
  if (old.size() == put_away) return old;
  fleet.report(
      fmt::format("{}: has databases of shards {} under their own names, since it was promoted without "
                  "what its master had done last; these shards are at {}",
                  admin.host().ToString(), range.ToString(), home->master.ToString()));
  return old;
}

/// Drops the old tables of shards at one of the pairs that they were on. Only a host that takes writes drops
/// them; its slave replicates that. UNAVAILABLE or FAILED_PRECONDITION if neither host could be told to: the
/// record of the move, by which the tables are found, must then stay.
absl::Status DropOldTables(FleetOperator& fleet, const MoveRange& range, const Pair& pair,
                           const std::optional<Pair>& home) {
  bool dropped = false;
  absl::Status away;
  for (const Host& host : {pair.master, pair.slave}) {
    const auto admin = HostAdmin::Open(host, WithLongReadTimeout(fleet.access));
    if (absl::IsUnavailable(admin.status())) {
      // It may have been replaced in its pair since, and be gone for good.
      away = admin.status();
      continue;
    }
    if (!admin.ok()) return admin.status();
    const auto state = (*admin)->Read();
    if (!state.ok()) return state.status();
    // An old master that came back, and follows nobody yet, is read-only: nothing may be written there.
    if (state->following || state->read_only) continue;
    const auto old = OldDatabases(fleet, **admin, range, pair, home);
    if (!old.ok()) return old.status();
    if (auto status = DropDatabases(**admin, *old, /*unlogged=*/false); !status.ok()) return status;
    dropped = true;
    fleet.report(fmt::format("{}: the old tables of shards {} are gone", host.ToString(), range.ToString()));
  }
  if (!dropped && !away.ok()) {
    return absl::Status(
        away.code(),
        fmt::format("{}\nIf {} and {} are gone for good: kv shards move finish {}--range {}-{} --gone {},{}",
                    std::string(away.message()), pair.master.ToString(), pair.slave.ToString(),
                    range.space == ShardSpace::kMod ? "--mod " : "", range.first, range.last,
                    pair.master.ToString(), pair.slave.ToString()));
  }
  if (!dropped) {
    return Refuse(
        fmt::format("neither {} nor {} takes writes, so that the old tables of shards {} stay there: kv "
                    "shards status says why; run the command again when one of them is a master",
                    pair.master.ToString(), pair.slave.ToString(), range.ToString()));
  }
  if (!away.ok()) {
    fleet.report(fmt::format("{}\nif it comes back without following, it has old tables of shards {} still",
                             std::string(away.message()), range.ToString()));
  }
  return absl::OkStatus();
}

/// Returns the record of a move that can begin, or why it cannot. ALREADY_EXISTS if the shards are on that
/// pair.
absl::StatusOr<MoveRecord> NewMove(const Maps& maps, const Moves& moves, const MoveRange& range,
                                   const Pair& to) {
  const auto from = HomeOf(maps, range);
  if (!from.ok()) return from.status();
  if (*from == to) return absl::AlreadyExistsError("they are there");
  for (const Host& host : {to.master, to.slave}) {
    if (host == from->master || host == from->slave || to.master == to.slave) {
      return absl::InvalidArgumentError(
          fmt::format("to: {} cannot be used: a move needs two different hosts, which are not {} or {}",
                      host.ToString(), from->master.ToString(), from->slave.ToString()));
    }
  }
  MoveRecord move{.range = range, .from = *from, .to = to};
  for (const MoveRecord& other : moves.known) {
    if (!other.range.Overlaps(range) || other.state != MoveState::kMoved) continue;
    if (other.range == range) {
      // These shards move back, or further on. Pairs that still have old tables of theirs are remembered.
      move.old_homes = other.old_homes;
      move.version = other.version;
    } else {
      return Refuse(fmt::format("range: {} has moved before: kv shards move finish --range {}-{}",
                                other.range.ToString(), other.range.first, other.range.last));
    }
  }
  for (const Pair& pair : {*from, to}) {
    if (auto status = moves.CheckPair(maps, pair); !status.ok()) return status;
    if (const MoveRecord* const other = FindMove(moves.known, pair); other != nullptr) {
      return Refuse(fmt::format(
          "{} is in the move of shards {}: one at a time; kv shards move status shows how far it is",
          pair.master.ToString(), other->range.ToString()));
    }
  }
  return move;
}

}  // namespace

absl::StatusOr<Moved> MoveShards(FleetOperator& fleet, const MoveRange& range, const Pair& to,
                                 const MoveOptions& options) {
  if (auto status = CheckRange(range); !status.ok()) return status;
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  const auto moves = LoadMoves(fleet);
  if (!moves.ok()) return moves.status();
  if (auto status = moves->CheckRange(range); !status.ok()) return status;
  const MoveRecord* const under_way = Find(*moves, range);
  if (under_way != nullptr && under_way->state != MoveState::kMoved) {
    if (under_way->to != to) {
      return Refuse(fmt::format("to: shards {} are on their way to {}: kv shards move cancel gives that up",
                                range.ToString(), under_way->to.master.ToString()));
    }
    return Mover(fleet, *under_way, /*begins=*/false, options).Run();
  }
  auto move = NewMove(*maps, *moves, range, to);
  if (absl::IsAlreadyExists(move.status())) {
    if (auto status = EndOperation(fleet, range); !status.ok()) return status;
    return Moved{};
  }
  if (!move.ok()) return move.status();
  if (!options.dry_run) PrepareHistory(fleet.zookeeper, fleet.root).IgnoreError();
  return Mover(fleet, *std::move(move), /*begins=*/true, options).Run();
}

absl::Status CancelMove(FleetOperator& fleet, const MoveRange& range, const std::optional<MovePairs>& named,
                        const std::optional<Pair>& gone) {
  const auto before = LoadUnfinishedMove(fleet, range, named);
  if (!before.ok()) return before.status();
  const auto homes = Maps::Load(fleet.zookeeper, fleet.root);
  if (!homes.ok()) return homes.status();
  if (gone) {
    if (auto status = CheckTargetGone(fleet, *homes, *before, *gone); !status.ok()) return status;
  }
  const auto source = HostAdmin::OpenClaimed(MasterOf(*homes, before->from), fleet.access);
  if (!source.ok()) return source.status();
  // From here on another process that works at this move cannot publish a map any more. A map that it
  // published before is in the maps and the record, which are loaded after this.
  auto held = fleet.ledger->Begin(AsOperation(*before));
  if (!held.ok()) return held.status();
  auto now = LoadUnfinishedMove(fleet, range, named);
  if (!now.ok()) return now.status();
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  if (named) now->old_homes = FindOldHomes(fleet, *maps, *now);
  MoveRecord& move = *now;
  if (MasterOf(*maps, move.from) != (*source)->host()) {
    return Refuse(fmt::format("{} has just become the master of its pair: run the command again",
                              MasterOf(*maps, move.from).ToString()));
  }
  const auto count = CountMoved(*maps, move);
  if (!count.ok()) return count.status();
  const bool none = *count == 0;
  const bool all = *count == range.last - range.first + 1;
  const MoveRange moved{range.space, range.first, range.first + *count - 1};
  const MoveRange rest{range.space, range.first + *count, range.last};

  if (!all) {
    // The shards are used again whether or not the target answers. On MySQL its channel is not told to skip
    // that. So it is ended if the target answers, and no move goes on by it, even if this process dies now.
    if ((*source)->engine() == Engine::kMySql) {
      if (auto status = ForgetChannel(fleet, move); !status.ok()) return status;
      if (!gone) EndChannelIfItAnswers(fleet, MasterOf(*maps, move.to));
    }
    SkippedStatements by_nobody(**source, nullptr);
    if (auto status = Thaw(**source, rest, by_nobody); !status.ok()) return status;
    if (auto status = CheckHasAll(**source, rest); !status.ok()) return status;
    fleet.report(fmt::format("shards {} are used at {}", rest.ToString(), (*source)->host().ToString()));
    Reached("move.thawed");
  }
  if (gone) {
    if (!none) return MovedToGoneError(move, moved, (*source)->host());
    if (auto status = LeaveTarget(fleet, *held, move); !status.ok()) return status;
    Reached("move.left");
  } else {
    const auto target = HostAdmin::OpenClaimed(MasterOf(*maps, move.to), fleet.access);
    if (!target.ok()) return TargetSilentError(move, target.status());
    const auto state = (*target)->Read();
    if (!state.ok()) return state.status();
    const auto pairs = maps->Pairs();
    const bool serves =
        std::any_of(pairs.begin(), pairs.end(), [&](const Pair& one) { return SameHosts(one, move.to); });
    // Nothing may be written on a host that may have lost, by a crash, what its slave has; unless nothing was
    // ever acknowledged there.
    if (state->read_only && serves) {
      return Refuse(fmt::format(
          "{0} takes no writes, so that the copies there cannot be removed: kv shards promote {0}, then run "
          "the command again. If that says that {1} has more: stop the server at {0}, then kv shards promote "
          "{1} --emergency",
          (*target)->host().ToString(),
          (*target)->host() == move.to.master ? move.to.slave.ToString() : move.to.master.ToString()));
    }
    if (auto status = Channel(**target).End(); !status.ok()) return status;
    if (!all) {
      if (auto status = DropCopies(fleet, **target, rest); !status.ok()) return status;
      Reached("move.dropped");
    }
  }
  if (!none) {
    if (auto status = DropEmptyDatabases(**source, moved); !status.ok()) return status;
  }
  // Old tables that are left, of this move and of one before, remain to be dropped by FinishMove.
  std::vector<MoveRecord> left;
  const auto keep_old = [&](const MoveRange& part, const Pair& from, const Pair& to,
                            std::vector<Pair> old_homes) {
    left.push_back({.range = part,
                    .from = from,
                    .to = to,
                    .state = MoveState::kMoved,
                    .old_homes = std::move(old_homes),
                    .began_ms = move.began_ms});
  };
  if (!all && !move.old_homes.empty()) keep_old(rest, move.to, move.from, move.old_homes);
  if (!none) {
    std::vector<Pair> old_homes = move.old_homes;
    old_homes.push_back(move.from);
    keep_old(moved, move.from, move.to, std::move(old_homes));
    fleet.report(fmt::format("shards {} have moved, and stay", moved.ToString()));
  }
  if (auto status = ReplaceMove(fleet, move, left); !status.ok()) return status;
  return held->End();
}

absl::Status FinishMove(FleetOperator& fleet, const MoveRange& range, const std::optional<Pair>& gone) {
  const auto before = LoadFinishedMove(fleet, range);
  if (!before.ok()) return before.status();
  if (gone) {
    if (auto status = CheckOldHomeGone(fleet, *before, *gone); !status.ok()) return status;
  }
  // A process that died may have left the move's own operation in the ledger.
  if (auto status = EndOperation(fleet, range); !status.ok()) return status;
  // Dropping tables may take long. Meanwhile the same shards must not begin to move again: their record would
  // be removed here, and with it what could put them back into use.
  const Claim homes = Claim::Homes(range.space, range.first, range.last, ClaimMode::kUpdate);
  auto held =
      fleet.ledger->Begin({.what = "finish the move of shards " + range.ToString(), .claims = {homes}});
  if (!held.ok()) return held.status();
  const auto move = LoadFinishedMove(fleet, range);
  if (!move.ok()) return move.status();
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  const auto home = HomeOf(*maps, range);
  if (!move->old_homes.empty()) {
    if (auto status = CheckHomesHaveAll(fleet, *maps, range); !status.ok()) return status;
  }
  for (const Pair& pair : move->old_homes) {
    if (gone && SameHosts(pair, *gone)) {
      fleet.report(
          fmt::format("{} and {} were not asked, and have old tables of shards {}: wipe them before they are "
                      "on the network again",
                      pair.master.ToString(), pair.slave.ToString(), range.ToString()));
      continue;
    }
    const auto known = home.ok() ? std::optional(*home) : std::nullopt;
    if (auto status = DropOldTables(fleet, range, pair, known); !status.ok()) return status;
  }
  if (auto status = ReplaceMove(fleet, *move, {}); !status.ok()) return status;
  return held->End();
}

}  // namespace kvstore::shardops
