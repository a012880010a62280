#include "shardops/remember.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <span>
#include <vector>

#include "backends/mysql/driver/tables.h"
#include "base/clock.h"
#include "shardops/move_record.h"
#include "shardops/notes.h"

namespace kvstore::shardops {
namespace {

using Json = nlohmann::json;

/// How long a slave may take to receive what its master had when it was asked.
constexpr std::chrono::milliseconds kReceive{1000};
/// How many missing databases a message names.
constexpr size_t kNamed = 20;

/// Whether a server has not been restarted since a record was made, which has when it was started in the
/// field `started`.
bool SameRun(const Json& before, const char* started, uint64_t started_s) {
  return IsSameRun(before.value(started, uint64_t{0}), started_s);
}

bool Waits(const HostState& master) {
  return master.semi_sync_active && master.semi_sync_wait_no_slave &&
         master.semi_sync_timeout_ms >= kForEverMs;
}

/// Returns what the slave is known to have, for the field at_slave of the note; null if that is not known.
Json AtSlave(const HostState& master, HostAdmin* slave, const Json& before) {
  // With several semi-synchronous slaves, a commit may have been acknowledged because another one had it.
  if (!Waits(master) || master.semi_sync_slaves > 1) return nullptr;
  if (slave != nullptr && slave->AwaitReceived(master.gtid, kReceive).ok()) {
    const auto state = slave->Read();
    if (state.ok() && state->semi_sync_slave_active && state->following &&
        state->following->master == master.host && state->following->thread != 0) {
      return {{"gtid", master.gtid},
              {"slave", slave->host().ToString()},
              {"thread", state->following->thread},
              {"slave_started_s", state->started_s},
              {"master_started_s", master.started_s},
              {"alone", master.semi_sync_alone}};
    }
  }
  // A MySQL server that is shut down while its slave is away acknowledges the commits that wait for it, and
  // nobody could tell afterwards (ER_SEMISYNC_FORCED_SHUTDOWN).
  if (master.engine == Engine::kMySql && slave == nullptr) return nullptr;
  const Json had = before.value("at_slave", Json());
  if (!had.is_object() || !before.value("semi_sync", false)) return nullptr;
  const bool none_alone = had.value("alone", UINT64_MAX) == master.semi_sync_alone &&
                          SameRun(had, "master_started_s", master.started_s);
  return none_alone ? had : Json();
}

}  // namespace

SemiSyncWait WantedSemiSync(const Json& note, const HostState& master) {
  const bool waits = master.semi_sync_wait_no_slave && master.semi_sync_timeout_ms >= kForEverMs;
  if (waits || !note.value("let_go", false)) {
    return {master.semi_sync_wait_no_slave, master.semi_sync_timeout_ms};
  }
  return {note.value("wait_no_slave", false), note.value("timeout_ms", uint64_t{0})};
}

absl::Status RecordMasterState(FleetOperator& fleet, const HostState& master, HostAdmin* slave,
                               const Note* before) {
  const Json was = before != nullptr ? before->json : NoteOrEmpty(fleet, master.host);
  const SemiSyncWait wanted = WantedSemiSync(was, master);
  const bool let_go =
      wanted.no_slave != master.semi_sync_wait_no_slave || wanted.timeout_ms != master.semi_sync_timeout_ms;
  Json json = {{"at_ms", WallClockMs()},
               {"gtid", master.gtid},
               // While waiting is suspended the master may have acknowledged commits without its slave.
               {"semi_sync", master.semi_sync_active && !let_go},
               {"wait_no_slave", wanted.no_slave},
               {"timeout_ms", wanted.timeout_ms},
               {"hides", master.semi_sync_hides},
               {"at_slave", AtSlave(master, slave, was)}};
  if (master.engine == Engine::kMySql && slave == nullptr) json["apart"] = true;
  if (let_go) json["let_go"] = true;
  return WriteNote(fleet, master.host, json, before);
}

absl::Status RecordCommitsWithoutSlave(FleetOperator& fleet, const Host& master, const std::string& gtid,
                                       const Note* before) {
  Json note = before != nullptr ? before->json : NoteOrEmpty(fleet, master);
  note["semi_sync"] = false;
  if (!gtid.empty()) {
    note["gtid"] = gtid;
    note["at_ms"] = WallClockMs();
  }
  return WriteNote(fleet, master, note, before);
}

absl::Status RecordSuspendedWait(FleetOperator& fleet, const Host& master, const SemiSyncWait& wanted) {
  Json note = NoteOrEmpty(fleet, master);
  note["semi_sync"] = false;
  note["let_go"] = true;
  note["wait_no_slave"] = wanted.no_slave;
  note["timeout_ms"] = wanted.timeout_ms;
  return WriteNote(fleet, master, note);
}

std::string MayLackAcknowledged(const Json& seen, const Host& master, const HostState& slave) {
  if (!slave.following) return "it follows nobody: what it lacks is not known";
  if (!slave.semi_sync_slave_active) {
    return "it was no semi-synchronous slave at the end: what it lacks is not known";
  }
  if (seen.empty())
    return master.ToString() + " was never seen by this program: how it answered is not known";
  if (!seen.value("semi_sync", false)) {
    return master.ToString() + " did not wait for its slave: what it lacks is not known";
  }
  if (!seen.value("wait_no_slave", false) || seen.value("timeout_ms", uint64_t{0}) < kForEverMs) {
    return fmt::format(
        "{} answered without a slave when that was away, or after {} ms: if it did so is not known "
        "({}, {})",
        master.ToString(), seen.value("timeout_ms", uint64_t{0}), WordsOf(slave.engine).wait_no_slave,
        WordsOf(slave.engine).wait_timeout);
  }
  // If the slave has what its master had at the last inspection, that says nothing about later commits,
  // unless this slave is known to be the only one that the master has waited for ever since.
  const Json has = seen.value("at_slave", Json());
  if (seen.value("apart", false)) {
    return fmt::format(
        "{0} was seen alive without it: a MySQL server that is shut down then acknowledges the commits that "
        "waited for its slave, and whether {0} was is not known",
        master.ToString());
  }
  if (!has.is_object() || has.value("slave", "") != slave.host.ToString()) {
    return fmt::format(
        "it was never seen to have all that {} had, with {} waiting for it and no other: what it "
        "lacks is not known",
        master.ToString(), master.ToString());
  }
  if (has.value("thread", uint64_t{0}) != slave.following->thread ||
      !SameRun(has, "slave_started_s", slave.started_s)) {
    return "it was started again since it was last seen to have all, and may have thrown away what it had "
           "not "
           "applied";
  }
  if (const uint64_t gone = CountNotReceived(has.value("gtid", ""), slave); gone > 0) {
    return fmt::format("it has lost {} transactions that it had", gone);
  }
  return "";
}

absl::StatusOr<Lacked> LackedDatabases(FleetOperator& fleet, const Host& master, HostAdmin& slave) {
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  const auto names = slave.ReadDatabases();
  if (!names.ok()) return names.status();
  const std::set<std::string> there(names->begin(), names->end());
  size_t all = 0;
  std::vector<std::string> missing;
  for (const StoredMap& stored : maps->all()) {
    for (const ShardRange& range : stored.map.ranges()) {
      if (range.master != master) continue;
      for (const std::string& database :
           MoveRange{.space = stored.space, .first = range.first, .last = range.last}.Databases()) {
        ++all;
        // While a shard is being moved away, its tables are in a database of another name.
        if (there.contains(database) || there.contains(mysql::MovedName(database))) continue;
        missing.push_back(database);
      }
    }
  }
  if (missing.empty()) return Lacked{};
  const size_t named = std::min(missing.size(), kNamed);
  return Lacked{
      .text = fmt::format("{}: lacks {} of the {} databases of its shards: {}{}", slave.host().ToString(),
                          missing.size(), all, fmt::join(std::span(missing).first(named), ", "),
                          named < missing.size() ? fmt::format(" and {} more", missing.size() - named) : ""),
      .most = missing.size() > all / 2};
}

}  // namespace kvstore::shardops
