#include "shardops/replace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fail_point.h"
#include "shardops/copy.h"
#include "shardops/gtid.h"
#include "shardops/map_history.h"
#include "shardops/move_record.h"
#include "shardops/notes.h"
#include "shardops/remember.h"

namespace kvstore::shardops {
namespace {

/// How often a copy is begun, at most.
constexpr int kCopies = 3;

/// The pair that the slave is in, or is to be in.
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

/// Follows nobody, and has no databases but the server's own.
absl::Status Empty(HostAdmin& host) {
  const auto names = host.ReadDatabases();
  if (!names.ok()) return names.status();
  absl::Status alone = host.Do([&](mysql::Connection& connection) {
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

/// A slave that is there and takes what its master sends. One that hangs, or whose connection the master has
/// not yet noticed to be lost, is still counted there: the slave itself is asked.
bool Receives(Fleet& fleet, const Pair& pair) {
  const auto slave = HostAdmin::Open(pair.slave, fleet.access);
  if (!slave.ok()) return false;
  const auto state = (*slave)->Read();
  return state.ok() && state->following && state->following->receives &&
         state->following->master == pair.master;
}

/// A master does not wait for a slave that is not there. How it waits when it has one again (Promote) is
/// written down.
absl::Status LetGo(Fleet& fleet, const Held& held, HostAdmin& master, const Pair& pair, const Host& next) {
  const auto state = master.Read();
  if (!state.ok()) return state.status();
  if (state->read_only || state->following) {
    return Refuse(fmt::format("{0}: is a master by the map, and {1}: kv shards promote {0} says what to do",
                              master.host().ToString(), state->read_only ? "read-only" : "follows another"));
  }
  // One that is made new has just been stopped.
  if (next != pair.slave && Receives(fleet, pair)) return absl::OkStatus();
  // Should it die from here on, nobody may think that its slave had all.
  const Waiting wanted = WantedOf(ReadNote(fleet, pair.master), *state);
  if (auto status = RememberLetGo(fleet, pair.master, wanted); !status.ok()) return status;
  if (state->semi_sync_slaves == 0 && !state->semi_sync_wait_no_slave) return absl::OkStatus();
  if (auto status = held.Check(); !status.ok()) return status;
  auto status = master.AnswerAlone();
  if (status.ok())
    fleet.tell(
        fmt::format("{} acknowledges commits without a slave until it has one", master.host().ToString()));
  return status;
}

/// Ends following at a slave whose place another one has: the master would count its answers too, and the new
/// one might lack what clients were told of.
void Detach(Fleet& fleet, const Pair& pair) {
  const auto slave = HostAdmin::Open(pair.slave, fleet.access);
  absl::Status status = slave.status();
  if (slave.ok()) {
    status = (*slave)->Do([](mysql::Connection& connection) {
      connection.Run("STOP SLAVE");
      connection.Run("RESET SLAVE ALL");
      return absl::OkStatus();
    });
  }
  if (status.ok()) return;
  fleet.tell(
      fmt::format("{}: should it come back, STOP SLAVE; RESET SLAVE ALL there: the answers of {} to clients "
                  "must not depend on what it has",
                  pair.slave.ToString(), pair.master.ToString()));
}

/// As the host is to follow from that place of its master's log.
absl::Status SetPosition(HostAdmin& master, HostAdmin& slave, const Position& position) {
  std::string from;
  absl::Status asked = master.Do([&](mysql::Connection& connection) {
    mysql::Rows rows = connection.Ask(fmt::format("SELECT BINLOG_GTID_POS({}, {}), @@GLOBAL.gtid_slave_pos",
                                                  Quoted(position.file), position.offset));
    // What it got as a slave, before its log begins, counts too.
    if (rows.Next()) from = Union(rows.Bytes(1), rows.Bytes(2));
    return absl::OkStatus();
  });
  if (!asked.ok()) return asked;
  return slave.Do([&](mysql::Connection& connection) {
    connection.Run("RESET MASTER");
    connection.Run(fmt::format("SET GLOBAL gtid_slave_pos = {}", Quoted(from)));
    return absl::OkStatus();
  });
}

/// Copies all that the master has. A dataset that is dropped, or a migration that ends, while its tables are
/// read makes the copy fail: then it begins again, from nothing.
absl::StatusOr<Position> CopyAll(Fleet& fleet, const Host& master, HostAdmin& next,
                                 const ReplaceOptions& options) {
  for (int attempt = 1;; ++attempt) {
    const auto claim = next.ClaimNumber();
    if (!claim.ok()) return claim.status();
    auto position = CopyDatabases(master, next.host(), fleet.access,
                                  {.claim = *claim, .unlogged = true, .progress = options.progress});
    if (!absl::IsInternal(position.status()) || attempt == kCopies) return position;
    fleet.tell(
        fmt::format("the copy failed, and begins again: {}", std::string(position.status().message())));
    if (auto status = Empty(next); !status.ok()) return status;
  }
}

}  // namespace

absl::Status ReplaceSlave(Fleet& fleet, const Host& slave, const ReplaceOptions& options) {
  const Host next = options.by.value_or(slave);
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  const auto pair = FindPair(*maps, slave, next);
  if (!pair.ok()) return pair.status();
  const auto moves = LoadMoves(fleet);
  if (!moves.ok()) return moves.status();
  if (const MoveRecord* const move = FindMove(*moves, *pair); move != nullptr) {
    return Refuse(
        fmt::format("{} is in the move of shards {}: let that end, or cancel it (kv shards move cancel)",
                    pair->master.ToString(), move->range.ToString()));
  }
  Held held;
  if (!options.dry_run) {
    Operation operation{.what = fmt::format("replace slave {} by {}", slave.ToString(), next.ToString())};
    for (const Host& one : std::set<Host>{pair->master, pair->slave, next}) {
      operation.claims.push_back(Claim::Host(one.ToString(), ClaimMode::kExclusive));
    }
    auto begun = fleet.ledger->Begin(std::move(operation));
    if (!begun.ok()) return begun.status();
    held = *std::move(begun);
  }
  const auto master = HostAdmin::Open(pair->master, fleet.access);
  if (!master.ok()) return master.status();
  auto host = HostAdmin::OpenClaimed(next, fleet.access);
  if (!host.ok()) return host.status();
  const auto there = (*host)->Read();
  if (!there.ok()) return there.status();
  if (!there->read_only) {
    return Refuse(fmt::format("{}: takes writes: kv shards fence {}", next.ToString(), next.ToString()));
  }
  if (!there->binlog || !there->gtid_strict || !there->log_slave_updates) {
    return Refuse(next.ToString() +
                  ": needs log_bin, log_slave_updates and gtid_strict_mode: set them in its configuration, "
                  "start it again, then run the command again");
  }
  if (options.dry_run) {
    fleet.tell(fmt::format("{} would become the slave of {}, with a copy of all that it has", next.ToString(),
                           pair->master.ToString()));
    return absl::OkStatus();
  }
  // Whatever stops this from here on, nobody promotes what was copied until then.
  if (auto status = CheckEmpty(**host, options.discard); !status.ok()) return status;
  if (auto status = BeginCopy(fleet, held, next, pair->master); !status.ok()) return status;
  Reached("replace.begun");
  if (auto status = Empty(**host); !status.ok()) return status;
  if (auto status = LetGo(fleet, held, **master, *pair, next); !status.ok()) return status;
  if (auto status = CopyUsers(**master, **host); !status.ok()) return status;
  Reached("replace.empty");
  const auto position = CopyAll(fleet, pair->master, **host, options);
  if (!position.ok()) return position.status();
  Reached("replace.copied");
  if (auto status = SetPosition(**master, **host, *position); !status.ok()) return status;
  if (auto status = EndCopy(fleet, held, next); !status.ok()) return status;
  if (pair->slave != next) {
    PrepareHistory(fleet.zookeeper, fleet.root).IgnoreError();
    // What the old slave had tells nothing of the new one, which still has to get what came since the copy.
    if (auto status = RememberAlone(fleet, pair->master); !status.ok()) return status;
    if (auto status = maps->Replace(*fleet.ledger, held, *pair, {pair->master, next}); !status.ok())
      return status;
    fleet.tell(fmt::format("{} is the slave of {} by the maps", next.ToString(), pair->master.ToString()));
    Detach(fleet, *pair);
  }
  Reached("replace.published");
  // The promotion claims it for itself.
  host->reset();
  if (auto status = held.End(); !status.ok()) return status;
  const auto promotion = Promote(fleet, pair->master, {.catch_up = std::chrono::minutes(10)});
  if (!promotion.ok()) return promotion.status();
  if (promotion->follows) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("{}: has the copy, and does not follow {}: see kv shards status",
                                            next.ToString(), pair->master.ToString()));
}

}  // namespace kvstore::shardops
