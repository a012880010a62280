#include "shardops/mover.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "backends/mysql/driver/schema.h"
#include "backends/mysql/driver/statements.h"
#include "backends/mysql/driver/tables.h"
#include "backends/mysql/fleet/shard_tables.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "shardops/compare.h"
#include "shardops/copy.h"
#include "shardops/freeze.h"
#include "shardops/move_checks.h"
#include "shardops/move_gone.h"
#include "shardops/notes.h"
#include "shardops/skipped_statements.h"
#include "shardops/table_copy.h"

namespace kvstore::shardops {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How many tables are switched together. Clients wait meanwhile: renaming takes about 3 ms a table.
constexpr size_t kSwitchTables = 48;
/// How long the rest of the log may take to be applied while clients wait. After that the shards are put back
/// into use at the old home.
constexpr milliseconds kDrain{2000};

}  // namespace

absl::Status DropCopies(FleetOperator& fleet, HostAdmin& host, const MoveRange& shards) {
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  for (uint32_t shard = shards.first; shard <= shards.last; ++shard) {
    const auto home = maps->PairOf(shards.space, shard);
    if (!home || (home->master != host.host() && home->slave != host.host())) continue;
    return Refuse(fmt::format("{}: has shard {} of {} by the map: it is no copy, and stays",
                              host.host().ToString(), shard, shards.ToString()));
  }
  return DropDatabases(host, shards.Databases(), /*unlogged=*/false);
}

absl::Status ForgetChannel(FleetOperator& fleet, MoveRecord& move) {
  if (move.position.file.empty()) return absl::OkStatus();
  move.position = {};
  return SaveMove(fleet, move);
}

absl::StatusOr<Moved> Mover::Run() {
  // Only a new move is checked. A move that was stopped may have left shards that nobody can use, and must
  // not be refused for less than what it needs.
  if (begins_) {
    if (auto status = CheckMoveHosts(fleet_, move_.from, move_.to); !status.ok()) return status;
  }
  auto source = HostAdmin::OpenClaimed(move_.from.master, fleet_.access);
  if (!source.ok()) return source.status();
  source_ = *std::move(source);
  auto target = HostAdmin::OpenClaimed(move_.to.master, fleet_.access);
  if (!target.ok()) return begins_ ? target.status() : TargetSilentError(move_, target.status());
  target_ = *std::move(target);
  auto slave = HostAdmin::Open(move_.to.slave, fleet_.access);
  if (!slave.ok()) return slave.status();
  target_slave_ = *std::move(slave);
  if (begins_) {
    if (auto status = CheckTables(); !status.ok()) return status;
    if (auto status = CheckNothingAhead(*source_, *target_, move_.from, /*copied=*/false); !status.ok()) {
      return status;
    }
    if (options_.dry_run) {
      fleet_.report(Description() + ": can be moved");
      return moved_;
    }
    if (auto status = BeginOperation(); !status.ok()) return status;
    move_.began_ms = WallClockMs();
    if (auto status = SaveMove(fleet_, move_); !status.ok()) {
      // The record is that of another process, which has begun the same move. If this process has taken the
      // operation over from that one, it stays in the ledger.
      if (!held_.taken_over()) held_.End().IgnoreError();
      return status;
    }
    // CheckTables has found none of these shards there.
    for (const Host& host : {move_.to.master, move_.to.slave}) {
      ForgetLeftCopies(fleet_, held_, host, move_.range).IgnoreError();
    }
    Reached("move.begin");
  } else if (options_.dry_run) {
    fleet_.report(fmt::format("{}: would go on; it is {}", Description(), Name(move_.state)));
    return moved_;
  } else if (auto status = BeginOperation(); !status.ok()) {
    return status;
  }
  if (move_.state == MoveState::kCopying) {
    if (auto status = Copy(); !status.ok()) return status;
  }
  if (auto status = Follow(); !status.ok()) return status;
  if (move_.state == MoveState::kFollowing) {
    if (auto status = Verify(); !status.ok()) return status;
  }
  if (auto status = Switch(); !status.ok()) return status;
  if (auto status = Complete(); !status.ok()) return status;
  return moved_;
}

absl::Status Mover::ReportProgress(std::string_view step, uint64_t done, uint64_t total) const {
  if (!options_.progress || options_.progress(step, done, total)) return absl::OkStatus();
  return absl::CancelledError("was stopped: run the command again to go on");
}

std::string Mover::Description() const {
  return fmt::format("shards {} from {} to {}", move_.range.ToString(), move_.from.master.ToString(),
                     move_.to.master.ToString());
}

// ---- checks ----

absl::Status Mover::BeginOperation() {
  auto held = fleet_.ledger->Begin(AsOperation(move_));
  if (!held.ok()) return held.status();
  held_ = *std::move(held);
  return absl::OkStatus();
}

absl::Status Mover::CheckTables() {
  const auto here = source_->ReadTables();
  if (!here.ok()) return here.status();
  const auto there = target_->ReadTables();
  if (!there.ok()) return there.status();
  for (const std::string& database : move_.range.Databases()) {
    if (!here->contains(database)) {
      return Refuse(
          fmt::format("{}: database {} is missing: kv shards check says whether another host has it, else "
                      "kv shards init makes it",
                      source_->host().ToString(), database));
    }
    if (here->contains(mysql::MovedName(database))) {
      return Refuse(fmt::format("{}: has {} of an earlier move: kv shards move finish",
                                source_->host().ToString(), mysql::MovedName(database)));
    }
    if (here->at(database).empty() && there->contains(mysql::MovedName(database))) {
      // Without tables the shard would seem not to have come back.
      return Refuse(
          fmt::format("{}: has {} of an earlier move, and the shard has no table now: kv shards move finish",
                      target_->host().ToString(), mysql::MovedName(database)));
    }
    if (there->contains(database)) {
      return Refuse(fmt::format(
          "{0}: has a database {1} already, which is no copy of this move's: see which of {0} and "
          "{2} has the rows, and whether the map is right (kv shards history), before one is dropped",
          target_->host().ToString(), database, source_->host().ToString()));
    }
  }
  return CheckMigrations();
}

absl::Status Mover::CheckMigrations() {
  const auto tables = source_->ReadTables();
  if (!tables.ok()) return tables.status();
  for (const std::string& database : move_.range.Databases()) {
    const auto found = tables->find(database);
    if (found == tables->end()) continue;
    for (const std::string& table : found->second) {
      // A table that is being made on first use moves like others, whoever makes it.
      const bool is_new = table.ends_with(mysql::kNewSuffix);
      if (table == mysql::kClockTable || table.find('$') == std::string::npos || is_new) continue;
      return Refuse(fmt::format("dataset {} is being migrated: {}.{} is there; see kv migrate status",
                                table.substr(0, table.find_first_of("$@")), database, table));
    }
  }
  return absl::OkStatus();
}

// ---- the copy ----

absl::Status Mover::MakeDatabases() {
  uint64_t domain = 0;  // MySQL has none
  if (source_->engine() == Engine::kMariaDb) {
    const auto read = source_->WithConnection([](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
      mysql::Rows rows = connection.Ask("SELECT @@gtid_domain_id");
      return rows.Next() ? rows.Uint(1) : 0;
    });
    if (!read.ok()) return read.status();
    domain = *read;
  }
  return target_->WithConnection([&](mysql::Connection& connection) {
    for (const std::string& database : move_.range.Databases()) {
      mysql::CreateDatabaseOfCopy(connection, database, domain);
    }
    return absl::OkStatus();
  });
}

absl::Status Mover::MakeMissingTables() {
  ZooKeeperTableRecords records = fleet_.Tables();
  const auto any = records.HasAny();
  if (!any.ok()) return any.status();
  if (!*any || !options_.datasets) return absl::OkStatus();
  const auto datasets = options_.datasets();
  if (!datasets.ok()) return datasets.status();
  for (const DatasetSpec& spec : *datasets) {
    if (mysql::SpaceOf(spec.shape) != move_.range.space) continue;
    const auto record = records.Find(spec, move_.range.first);
    if (!record.ok()) return record.status();
    if (!record->has_value()) continue;
    absl::Status made = source_->WithConnection([&](mysql::Connection& connection) -> absl::Status {
      for (uint32_t shard = move_.range.first; shard <= move_.range.last; ++shard) {
        if (auto status = mysql::MakeUnlessMade(connection, spec, shard, records); !status.ok())
          return status;
      }
      return absl::OkStatus();
    });
    if (!made.ok()) return made;
  }
  return absl::OkStatus();
}

absl::Status Mover::TransitionTo(MoveState state) {
  move_.state = state;
  return SaveMove(fleet_, move_);
}

absl::Status Mover::Copy() {
  // Removes what an attempt that was stopped has left. The record proves that it belongs to this move.
  Channel channel(*target_);
  if (auto status = channel.End(); !status.ok()) return status;
  if (auto status = DropCopies(fleet_, *target_, move_.range); !status.ok()) return status;
  // From here on no channel brings the target anything until the copy is complete.
  if (auto status = CheckNothingAhead(*source_, *target_, move_.from, /*copied=*/false); !status.ok()) {
    return status;
  }
  if (auto status = MakeMissingTables(); !status.ok()) return status;
  if (auto status = MakeDatabases(); !status.ok()) return status;
  const auto size = source_->WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
    mysql::Rows rows =
        connection.Ask(fmt::format("SELECT COALESCE(SUM(data_length), 0) FROM information_schema.tables "
                                   "WHERE table_schema IN ('{}')",
                                   fmt::join(move_.range.Databases(), "','")));
    return rows.Next() ? rows.Uint(1) : 0;
  });
  if (!size.ok()) return size.status();
  fleet_.report(fmt::format("{}: copying about {} MiB", Description(), *size >> 20));
  const auto claim = target_->ClaimConnectionId();
  if (!claim.ok()) return claim.status();
  const CopyOptions copy{
      .databases = move_.range.Databases(), .claim = *claim, .progress = [&](uint64_t bytes) {
        moved_.copied_bytes = bytes;
        return ReportProgress("copy", bytes, std::max(bytes, *size)).ok();
      }};
  const auto position = source_->engine() == Engine::kMySql
                            ? CopyTables(move_.from.master, move_.to.master, fleet_.access, copy)
                            : CopyDatabases(move_.from.master, move_.to.master, fleet_.access, copy);
  if (!position.ok()) return position.status();
  move_.position = *position;
  Reached("move.copied");
  return TransitionTo(MoveState::kFollowing);
}

absl::Status Mover::Verify() {
  const auto differ = CompareCopies(
      *source_, *target_, fleet_.access, move_.position, move_.range.Databases(),
      [&](uint64_t done, uint64_t total) { return ReportProgress("compare", done, total).ok(); });
  if (!differ.ok()) return differ.status();
  if (!differ->empty()) {
    return absl::DataLossError(fmt::format(
        "{}: the copy is not the same: {}{}. kv shards move cancel removes it", move_.to.master.ToString(),
        fmt::join(std::span(*differ).first(std::min<size_t>(differ->size(), 5)), ", "),
        differ->size() > 5 ? fmt::format(" and {} more", differ->size() - 5) : ""));
  }
  fleet_.report(fmt::format("{}: the copy is the same", Description()));
  Reached("move.verified");
  return TransitionTo(MoveState::kSwitching);
}

// ---- the switch ----

absl::StatusOr<std::optional<MoveRange>> Mover::NextPart() {
  const auto maps = Maps::Load(fleet_.zookeeper, fleet_.root);
  if (!maps.ok()) return maps.status();
  const auto tables = target_->ReadTables();
  if (!tables.ok()) return tables.status();
  std::optional<MoveRange> part;
  size_t count = 0;
  for (uint32_t shard = move_.range.first; shard <= move_.range.last; ++shard) {
    const auto pair = maps->PairOf(move_.range.space, shard);
    if (pair != move_.to && pair != move_.from) {
      return Refuse(fmt::format(
          "the map has shard {} of {} on {} now: kv shards move cancel {}--range {}-{} gives up "
          "what has not moved",
          shard, move_.range.ToString(), pair ? pair->master.ToString() : "no host",
          move_.range.space == ShardSpace::kMod ? "--mod " : "", move_.range.first, move_.range.last));
    }
    if (pair == move_.to) {
      if (part) break;
      continue;
    }
    const std::string database = MoveRange{move_.range.space, shard, shard}.Databases().front();
    const auto found = tables->find(database);
    const size_t more = found == tables->end() ? 0 : found->second.size();
    if (part && count + more > kSwitchTables) break;
    count += more;
    if (!part) part = MoveRange{move_.range.space, shard, shard};
    part->last = shard;
  }
  return part;
}

absl::Status Mover::Switch() {
  for (;;) {
    const auto part = NextPart();
    if (!part.ok()) return part.status();
    if (!*part) return absl::OkStatus();
    if (auto status = CheckMigrations(); !status.ok()) return status;
    if (auto status = CatchUp(); !status.ok()) return status;
    if (auto status = SwitchPart(**part); !status.ok()) return status;
    if (auto status = ReportProgress("switch", (*part)->last - move_.range.first + 1,
                                     move_.range.last - move_.range.first + 1);
        !status.ok()) {
      return status;
    }
  }
}

absl::Status Mover::SwitchPart(const MoveRange& part) {
  // If another process has taken this move over or cancelled it, this one must not take shards out of use.
  if (auto status = held_.Check(); !status.ok()) return status;
  SkippedStatements skipped(*source_, target_.get());
  if (auto status = CreateMovedDatabases(*source_, part, skipped); !status.ok()) return status;
  if (auto status = skipped.Reserve(CountSkipped(part)); !status.ok()) return status;
  const auto begin = Clock::now();
  const auto prepared = [&]() -> absl::Status {
    if (auto status = Freeze(*source_, part, skipped); !status.ok()) return status;
    Reached("move.frozen");
    const auto end = ReadPosition(*source_);
    if (!end.ok()) return end.status();
    Channel channel(*target_reader_, move_.position);
    if (auto status = channel.AwaitApplied(*end, kDrain); !status.ok()) return status;
    const auto there = target_reader_->Read();
    if (!there.ok()) return there.status();
    if (auto status = target_slave_->AwaitReceived(there->gtid, kDrain); !status.ok()) return status;
    Reached("move.applied");
    return absl::OkStatus();
  };
  if (auto status = prepared(); !status.ok()) {
    const absl::Status back = PutBack(part, skipped);
    if (back.ok()) return status;
    return absl::Status(
        status.code(),
        fmt::format("{}\nNobody can use shards {} now ({}): run the command again, or kv "
                    "shards move cancel",
                    std::string(status.message()), part.ToString(), std::string(back.message())));
  }
  if (auto status = Publish(part); !status.ok()) {
    // CheckHomes says in its message what to do.
    if (absl::IsFailedPrecondition(status)) return status;
    return absl::Status(status.code(),
                        fmt::format("{}\nNobody may be able to use shards {} now: run the command again, "
                                    "or kv shards move cancel",
                                    std::string(status.message()), part.ToString()));
  }
  const auto pause =
      static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count());
  ++moved_.switches;
  moved_.max_pause_ms = std::max(moved_.max_pause_ms, pause);
  fleet_.report(
      fmt::format("shards {} are at {}, {} ms later", part.ToString(), move_.to.master.ToString(), pause));
  Reached("move.published");
  return absl::OkStatus();
}

absl::Status Mover::PutBack(const MoveRange& part, SkippedStatements& skipped) {
  absl::Status back = Thaw(*source_, part, skipped);
  // A failure of the source would come again without the target, and the move could not go on after it. But
  // if the target does not answer, clients must not wait for it.
  if (back.ok() || !skipped.target_failed()) return back;
  if (auto status = ForgetChannel(fleet_, move_); !status.ok()) return back;
  SkippedStatements by_nobody(*source_, nullptr);
  return Thaw(*source_, part, by_nobody);
}

absl::Status Mover::CheckHomes(const Maps& maps, const MoveRange& part) const {
  const auto give_up = [&](const std::string& what) {
    return Refuse(fmt::format(
        "{}. The shards have not moved: kv shards move cancel {}--range {}-{} has them used at "
        "their home again, whichever of its hosts leads now, and removes their copies",
        what, move_.range.space == ShardSpace::kMod ? "--mod " : "", move_.range.first, move_.range.last));
  };
  for (uint32_t shard = part.first; shard <= part.last; ++shard) {
    const auto pair = maps.PairOf(part.space, shard);
    // The tables were renamed on move_.from.master, and the copy is equal to what was there. If another host
    // is the master by now, it may have taken writes that the copy lacks.
    if (pair == move_.from) continue;
    return give_up(fmt::format(
        "{} was the master of shard {} of {} when that was copied, and {} is by the map now: another may "
        "have been promoted meanwhile, and have taken writes",
        move_.from.master.ToString(), shard, part.ToString(), pair ? pair->master.ToString() : "no host"));
  }
  for (const Pair& pair : maps.Pairs()) {
    const bool shared = pair.master == move_.to.master || pair.slave == move_.to.master ||
                        pair.master == move_.to.slave || pair.slave == move_.to.slave;
    if (!shared || pair == move_.to) continue;
    return give_up(
        fmt::format("the shards are to be at {} with the slave {}, and by the map {} is a master with the "
                    "slave {} now",
                    move_.to.master.ToString(), move_.to.slave.ToString(), pair.master.ToString(),
                    pair.slave.ToString()));
  }
  return absl::OkStatus();
}

absl::Status Mover::Publish(const MoveRange& part) {
  for (int conflicts = 0;; ++conflicts) {
    const auto maps = Maps::Load(fleet_.zookeeper, fleet_.root);
    if (!maps.ok()) return maps.status();
    if (auto status = CheckHomes(*maps, part); !status.ok()) return status;
    absl::Status status = maps->Assign(*fleet_.ledger, held_, part.space, part.first, part.last, move_.to);
    if (!absl::IsFailedPrecondition(status)) return status;
    if (conflicts == kMaxMapConflicts) return absl::UnavailableError(status.message());
  }
}

absl::Status Mover::Complete() {
  Channel channel(*target_);
  if (auto status = channel.End(); !status.ok()) return status;
  // A process that still has the old map must not find a database in which it would create a dataset's table.
  if (auto status = DropEmptyDatabases(*source_, move_.range); !status.ok()) return status;
  move_.old_homes.push_back(move_.from);
  if (auto status = TransitionTo(MoveState::kMoved); !status.ok()) return status;
  // If this fails, the next command about this range ends the operation (EndOperation).
  held_.End().IgnoreError();
  Reached("move.released");
  fleet_.report(fmt::format("shards {} have moved; {} keeps their old tables until kv shards move finish",
                            move_.range.ToString(), move_.from.master.ToString()));
  return absl::OkStatus();
}

}  // namespace kvstore::shardops
