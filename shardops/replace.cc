#include "shardops/replace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/driver/statements.h"
#include "backends/mysql/driver/tables.h"
#include "base/fail_point.h"
#include "shardops/channel_settings.h"
#include "shardops/clone.h"
#include "shardops/copy.h"
#include "shardops/gtid.h"
#include "shardops/map_history.h"
#include "shardops/move_record.h"
#include "shardops/notes.h"
#include "shardops/promote.h"
#include "shardops/remember.h"

namespace kvstore::shardops {
namespace {

/// How often CopyAll begins a copy, at most.
constexpr int kCopies = 3;

/// Returns the pair that the slave is in. If an earlier replacement has put `next` into the maps already,
/// that is the pair of `next`.
absl::StatusOr<Pair> FindPair(const Maps& maps, const Host& slave, const Host& next) {
  std::optional<Pair> found;
  for (const Pair& pair : maps.Pairs()) {
    if (pair.master == slave) {
      return Refuse(fmt::format("host: {} is a master; kv shards promote {} makes it a slave",
                                slave.ToString(), pair.slave.ToString()));
    }
    if (pair.slave == slave || (pair.slave == next && !found)) {
      found = pair;
    } else if (pair.slave == next || pair.master == next) {
      return Refuse(fmt::format("by: {} is in the pair of {}: name a host that is in none", next.ToString(),
                                pair.master.ToString()));
    }
  }
  if (!found)
    return Refuse(fmt::format("host: {} is the slave of no shard: kv shards status lists those that are",
                              slave.ToString()));
  return *found;
}

absl::Status CheckEmpty(HostAdmin& host, bool discard) {
  const auto names = host.ReadDatabases();
  if (!names.ok()) return names.status();
  if (names->empty() || discard) return absl::OkStatus();
  return Refuse(fmt::format("{0}: has {1} databases: kv shards replace-slave with --discard removes them",
                            host.host().ToString(), names->size()));
}

/// Makes a host follow nobody, and drops all its databases but the server's own.
absl::Status EraseHost(HostAdmin& host) {
  const auto names = host.ReadDatabases();
  if (!names.ok()) return names.status();
  absl::Status alone = host.WithConnection([&](mysql::Connection& connection) {
    connection.Run("STOP ALL SLAVES");
    for (const std::string& name : ReadChannels(connection)) {
      connection.Run(fmt::format("RESET SLAVE {} ALL", Quoted(name)));
    }
    connection.Run("RESET SLAVE ALL");
    return absl::OkStatus();
  });
  if (!alone.ok()) return alone;
  return DropDatabases(host, *names, /*unlogged=*/true);
}

/// Whether the pair's slave receives what its master sends. The slave itself is asked: the master still
/// counts a slave that hangs, or whose lost connection it has not noticed.
bool Receives(FleetOperator& fleet, const Pair& pair) {
  const auto slave = HostAdmin::Open(pair.slave, fleet.access);
  if (!slave.ok()) return false;
  const auto state = (*slave)->Read();
  return state.ok() && state->following && state->following->receives &&
         state->following->master == pair.master;
}

/// Makes a master acknowledge commits without a slave as long as it has none, and records how its commits are
/// to wait once it has one again (Promote).
absl::Status SuspendWait(FleetOperator& fleet, const Held& held, HostAdmin& master, const Pair& pair,
                         const Host& next) {
  const auto state = master.Read();
  if (!state.ok()) return state.status();
  if (state->read_only || state->following) {
    return Refuse(fmt::format("{0}: is a master by the map, and {1}: kv shards promote {0} says what to do",
                              master.host().ToString(), state->read_only ? "read-only" : "follows another"));
  }
  // A slave that is rebuilt has just been stopped. If another host replaces it, the master goes on waiting
  // for it as long as it receives.
  if (next != pair.slave && Receives(fleet, pair)) return absl::OkStatus();
  // If the master dies from here on, an emergency promotion must not assume that its slave has everything.
  const SemiSyncWait wanted = WantedSemiSync(NoteOrEmpty(fleet, pair.master), *state);
  if (auto status = RecordSuspendedWait(fleet, pair.master, wanted); !status.ok()) return status;
  if (state->semi_sync_slaves == 0 && !state->semi_sync_wait_no_slave) return absl::OkStatus();
  if (auto status = held.Check(); !status.ok()) return status;
  auto status = master.StopWaitingForSlaves();
  if (status.ok())
    fleet.report(
        fmt::format("{} acknowledges commits without a slave until it has one", master.host().ToString()));
  return status;
}

/// Makes a slave that was replaced follow nobody. Otherwise the master would count its acknowledgements too,
/// and the new slave might lack what clients were told of.
void Detach(FleetOperator& fleet, const Pair& pair, Engine engine) {
  const auto slave = HostAdmin::Open(pair.slave, fleet.access);
  absl::Status status = slave.status();
  if (slave.ok()) status = (*slave)->ForgetMaster();
  if (status.ok()) return;
  fleet.report(fmt::format(
      "{}: should it come back, {} there: the answers of {} to clients must not depend on what it has",
      pair.slave.ToString(), WordsOf(engine).forget_master, pair.master.ToString()));
}

/// Sets the slave's GTID position to that of its copy: `position`, of the master's log.
absl::Status SetPosition(HostAdmin& master, HostAdmin& slave, const Position& position) {
  std::string from;
  absl::Status asked = master.WithConnection([&](mysql::Connection& connection) {
    mysql::Rows rows = connection.Ask(fmt::format("SELECT BINLOG_GTID_POS({}, {}), @@GLOBAL.gtid_slave_pos",
                                                  Quoted(position.file), position.offset));
    // Transactions that the master received as a slave, before its own log begins, count too.
    if (rows.Next()) from = LatestOfEachDomain(rows.Bytes(1), rows.Bytes(2));
    return absl::OkStatus();
  });
  if (!asked.ok()) return asked;
  return slave.WithConnection([&](mysql::Connection& connection) {
    connection.Run("RESET MASTER");
    connection.Run(fmt::format("SET GLOBAL gtid_slave_pos = {}", Quoted(from)));
    return absl::OkStatus();
  });
}

/// Copies all databases of the master. The copy fails if a dataset is dropped, or a migration ends, while its
/// tables are read; it is then begun again, from nothing.
absl::StatusOr<Position> CopyAll(FleetOperator& fleet, const Host& master, HostAdmin& next,
                                 const ReplaceOptions& options) {
  for (int attempt = 1;; ++attempt) {
    const auto claim = next.ClaimConnectionId();
    if (!claim.ok()) return claim.status();
    auto position = CopyDatabases(master, next.host(), fleet.access,
                                  {.claim = *claim, .unlogged = true, .progress = options.progress});
    if (!absl::IsInternal(position.status()) || attempt == kCopies) return position;
    fleet.report(
        fmt::format("the copy failed, and begins again: {}", std::string(position.status().message())));
    if (auto status = EraseHost(next); !status.ok()) return status;
  }
}

/// Claims both hosts of the pair and the new slave in the ledger.
absl::StatusOr<Held> BeginOperation(FleetOperator& fleet, const Pair& pair, const Host& slave,
                                    const Host& next) {
  Operation operation{.what = fmt::format("replace slave {} by {}", slave.ToString(), next.ToString())};
  for (const Host& one : std::set<Host>{pair.master, pair.slave, next}) {
    operation.claims.push_back(Claim::Host(one.ToString(), ClaimMode::kExclusive));
  }
  return fleet.ledger->Begin(std::move(operation));
}

/// Checks that a host takes no writes, and is configured as a slave that can become a master.
absl::Status CheckNewSlave(HostAdmin& next) {
  const auto state = next.Read();
  if (!state.ok()) return state.status();
  const std::string name = next.host().ToString();
  if (!state->read_only) return Refuse(fmt::format("{}: takes writes: kv shards fence {}", name, name));
  if (state->binlog && state->gtid_strict && state->log_slave_updates) return absl::OkStatus();
  return Refuse(
      fmt::format("{}: needs {}: set them in its configuration, start it again, then run the command again",
                  name, next.words().slave_settings));
}

/// Whether there is a table of a dataset in a database.
bool HasTables(const HostTables& tables, const std::string& database) {
  const auto found = tables.find(database);
  return found != tables.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [](const std::string& table) { return table != mysql::kClockTable; });
}

/// Checks that the master has all of the pair's shards of which the new slave has something. Otherwise the
/// map is wrong, or the master has lost them, and what would be discarded may be the only copy.
absl::Status CheckMasterHasAll(const Maps& maps, const Pair& pair, HostAdmin& master, HostAdmin& next) {
  const auto here = master.ReadTables();
  if (!here.ok()) return here.status();
  const auto there = next.ReadTables();
  if (!there.ok()) return there.status();
  for (const StoredMap& stored : maps.all()) {
    for (const ShardRange& range : stored.map.ranges()) {
      if (range.master != pair.master) continue;
      for (uint32_t shard = range.first; shard <= range.last; ++shard) {
        const std::string database = mysql::DatabaseName(stored.space, shard);
        // A master whose datasets were dropped has the databases still.
        if (here->contains(database) || !HasTables(*there, database)) continue;
        return Refuse(fmt::format(
            "{0}: has tables in {1}, and its master {2} has no such database: the map is wrong, or {2} has "
            "lost "
            "what it had, and {0} may have the only copy. Nothing was discarded. kv shards check names all "
            "such shards, kv shards history shows what the map was",
            next.host().ToString(), database, master.host().ToString()));
      }
    }
  }
  return absl::OkStatus();
}

/// Erases the new slave and copies the master's users and databases to it. If this is stopped in between, the
/// mark of an unfinished copy in its note keeps every promotion from that host (BeginCopy).
absl::Status Rebuild(FleetOperator& fleet, const Held& held, const Pair& pair, HostAdmin& master,
                     HostAdmin& next, const ReplaceOptions& options) {
  if (auto status = CheckEmpty(next, options.discard); !status.ok()) return status;
  if (auto status = BeginCopy(fleet, held, next.host(), pair.master); !status.ok()) return status;
  Reached("replace.begun");
  if (auto status = EraseHost(next); !status.ok()) return status;
  if (auto status = SuspendWait(fleet, held, master, pair, next.host()); !status.ok()) return status;
  if (auto status = CopyUsers(master, next); !status.ok()) return status;
  Reached("replace.empty");
  const auto position = CopyAll(fleet, pair.master, next, options);
  if (!position.ok()) return position.status();
  Reached("replace.copied");
  if (auto status = SetPosition(master, next, *position); !status.ok()) return status;
  return EndCopy(fleet, held, next.host());
}

/// Does the same on MySQL, where the copy has the users too.
///
/// next  Is another connection afterwards, since the host restarts.
absl::Status RebuildByClone(FleetOperator& fleet, const Held& held, const Pair& pair, HostAdmin& master,
                            std::unique_ptr<HostAdmin>& next, const ReplaceOptions& options) {
  const Host host = next->host();
  if (auto status = CheckEmpty(*next, options.discard); !status.ok()) return status;
  if (auto status = BeginCopy(fleet, held, host, pair.master); !status.ok()) return status;
  Reached("replace.begun");
  if (auto status = next->ForgetMaster(); !status.ok()) return status;
  if (auto status = SuspendWait(fleet, held, master, pair, host); !status.ok()) return status;
  Reached("replace.empty");
  if (auto status = CloneHost(fleet, pair.master, next, options.progress); !status.ok()) return status;
  Reached("replace.copied");
  return EndCopy(fleet, held, host);
}

/// Names another host the slave of the pair in the maps. The copy may have taken hours, so that the maps may
/// have changed meanwhile, for other pairs.
absl::Status NameSlave(FleetOperator& fleet, const Held& held, const Pair& pair, const Host& next) {
  for (int conflicts = 0;; ++conflicts) {
    const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
    if (!maps.ok()) return maps.status();
    const auto now = FindPair(*maps, pair.slave, next);
    if (!now.ok()) return now.status();
    if (*now != pair) {
      return Refuse(fmt::format(
          "the shard map has changed meanwhile: {} is the master of {} now: run the command again if that is "
          "still to be replaced",
          now->master.ToString(), now->slave.ToString()));
    }
    absl::Status status = maps->Replace(*fleet.ledger, held, pair, {pair.master, next});
    if (!absl::IsFailedPrecondition(status) || conflicts == kMaxMapConflicts) return status;
  }
}

/// Names another host the slave of the pair in the maps, and detaches the one before.
absl::Status PublishSlave(FleetOperator& fleet, const Held& held, const Pair& pair, const Host& next,
                          Engine engine) {
  PrepareHistory(fleet.zookeeper, fleet.root).IgnoreError();
  // A record of what the old slave had says nothing about the new one, which still lacks what was written
  // since the copy.
  if (auto status = RecordCommitsWithoutSlave(fleet, pair.master); !status.ok()) return status;
  if (auto status = NameSlave(fleet, held, pair, next); !status.ok()) return status;
  fleet.report(fmt::format("{} is the slave of {} by the maps", next.ToString(), pair.master.ToString()));
  Detach(fleet, pair, engine);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplaceSlave(FleetOperator& fleet, const Host& slave, const ReplaceOptions& options) {
  const Host next = options.by.value_or(slave);
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  const auto pair = FindPair(*maps, slave, next);
  if (!pair.ok()) return pair.status();
  const auto moves = LoadMoves(fleet);
  if (!moves.ok()) return moves.status();
  if (auto status = moves->CheckPair(*maps, *pair); !status.ok()) return status;
  if (const MoveRecord* const move = FindMove(moves->known, *pair); move != nullptr) {
    return Refuse(
        fmt::format("{} is in the move of shards {}: let that end, or cancel it (kv shards move cancel)",
                    pair->master.ToString(), move->range.ToString()));
  }
  Held held;
  if (!options.dry_run) {
    auto begun = BeginOperation(fleet, *pair, slave, next);
    if (!begun.ok()) return begun.status();
    held = *std::move(begun);
  }
  const auto master = HostAdmin::Open(pair->master, fleet.access);
  if (!master.ok()) return master.status();
  auto host = HostAdmin::OpenClaimed(next, fleet.access);
  if (!host.ok()) return host.status();
  if (auto status = CheckSameEngine(**master, **host); !status.ok()) return status;
  const bool by_clone = (*host)->engine() == Engine::kMySql;
  if (by_clone) {
    if (auto status = CheckClone(**master, **host); !status.ok()) return status;
  }
  if (auto status = CheckNewSlave(**host); !status.ok()) return status;
  if (auto status = CheckMasterHasAll(*maps, *pair, **master, **host); !status.ok()) return status;
  if (options.dry_run) {
    fleet.report(fmt::format("{} would become the slave of {}, with a copy of all that it has",
                             next.ToString(), pair->master.ToString()));
    return absl::OkStatus();
  }
  absl::Status rebuilt = by_clone ? RebuildByClone(fleet, held, *pair, **master, *host, options)
                                  : Rebuild(fleet, held, *pair, **master, **host, options);
  if (!rebuilt.ok()) return rebuilt;
  if (pair->slave != next) {
    if (auto status = PublishSlave(fleet, held, *pair, next, (*host)->engine()); !status.ok()) return status;
  }
  Reached("replace.published");
  // The promotion of the master, which makes the new slave follow, claims both hosts for itself.
  host->reset();
  if (auto status = held.End(); !status.ok()) return status;
  const auto promotion = Promote(fleet, pair->master, {.catch_up = std::chrono::minutes(10)});
  if (!promotion.ok()) return promotion.status();
  if (promotion->follows) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("{}: has the copy, and does not follow {}: see kv shards status",
                                            next.ToString(), pair->master.ToString()));
}

}  // namespace kvstore::shardops
