#include "shardops/status.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "backends/mysql/driver/errors.h"
#include "backends/mysql/driver/schema.h"
#include "kvstore_api/limits.h"
#include "shardops/map_check.h"
#include "shardops/notes.h"
#include "shardops/remember.h"

namespace kvstore::shardops {
namespace {

/// How far a host's clock may be from this machine's: rows get their timestamps from the hosts' clocks.
constexpr int64_t kMaxSkewMs = 1000;
/// Above this lag a slave is reported.
constexpr uint64_t kMaxLagS = 10;
/// From this many slow statements on a host is reported: one or two may be a dump, or a table that is
/// altered.
constexpr uint64_t kManySlow = 4;

/// Returns the message of an error about a host, without the host's name in front.
std::string About(const std::string& host, const absl::Status& status) {
  std::string text(status.message());
  if (text.starts_with(host + ": ")) text.erase(0, host.size() + 2);
  return text;
}

/// Adds the problems of a host that did not answer.
void FindUnansweredProblems(HostReport& report) {
  const auto say = [&](std::string text) { report.problems.push_back(std::move(text)); };
  const std::string name = report.host.ToString();
  say(About(name, report.status));
  if (!report.master || !absl::IsUnavailable(report.status)) return;
  if (report.slave_copy.ok()) {
    say(fmt::format("its slave can take its place: kv shards promote {} --emergency",
                    report.pair.slave.ToString()));
  } else {
    say(fmt::format("bring it back, kv shards promote {} opens it again. Its slave cannot take its place: {}",
                    name, std::string(report.slave_copy.message())));
  }
}

/// Adds the problems that a host may have in either role.
void FindServerProblems(HostReport& report) {
  const auto say = [&](std::string text) { report.problems.push_back(std::move(text)); };
  const HostState& state = *report.state;
  if (!state.binlog || !state.gtid_strict) say("log_bin and gtid_strict_mode are not both on");
  if (state.max_packet < 2 * kMaxPutBytes) {
    say(fmt::format("max_allowed_packet is {}, at least {} is needed", state.max_packet, 2 * kMaxPutBytes));
  }
  if (std::abs(state.clock_ahead_ms) > kMaxSkewMs) {
    say(fmt::format("its clock is {} ms {} this machine's", std::abs(state.clock_ahead_ms),
                    state.clock_ahead_ms > 0 ? "ahead of" : "behind"));
  }
  if (const SlowStatements& slow = report.slow; slow.count >= kManySlow) {
    say(
        fmt::format("{} statements run for {} s or longer, the longest for {} s{} ({}): SHOW FULL "
                    "PROCESSLIST there names them, KILL {} ends that one",
                    slow.count, kSlowStatementS, slow.seconds, slow.table.empty() ? "" : ", in " + slow.table,
                    slow.state, slow.thread));
  }
}

/// Adds the problems of a host that the maps have as a master.
///
/// slave_report  The report about its slave; null if there is none.
void FindMasterProblems(HostReport& report, const HostReport* slave_report) {
  const auto say = [&](std::string text) { report.problems.push_back(std::move(text)); };
  const std::string name = report.host.ToString();
  const std::string slave = report.pair.slave.ToString();
  const HostState& state = *report.state;
  if (!report.copy.ok()) {
    say(About(name, report.copy) + ". The map names it the master: kv shards promote " + slave +
        " makes that the master first");
  }
  if (state.following) say("is a master by the map, and follows " + state.following->master.ToString());
  if (state.read_only) say("is a master by the map, and read-only: kv shards promote " + name + " opens it");
  if (!state.semi_sync_master) {
    say("acknowledges commits without its slave: SET GLOBAL rpl_semi_sync_master_enabled = ON");
  } else if (state.semi_sync_slaves == 0) {
    const bool broken = slave_report != nullptr && slave_report->state && slave_report->state->following &&
                        IsBroken(*slave_report->state->following);
    say(report.slave_copy.ok() && !broken ? "has no semi-synchronous slave: kv shards promote " + name +
                                                " has " + slave + " follow it again"
                                          : "has no semi-synchronous slave: see " + slave);
  } else if (state.semi_sync_slaves > 1) {
    say(fmt::format(
        "has {} semi-synchronous slaves, and answers a commit when any of them has it: STOP SLAVE "
        "on all but {}",
        state.semi_sync_slaves, slave));
  } else if (!state.semi_sync_active) {
    say("does not wait for its slave at present");
  } else if (!state.semi_sync_wait_no_slave || state.semi_sync_timeout_ms < kForEverMs) {
    say(fmt::format(
        "acknowledges commits without its slave when that is away: should it die, what is lost is not "
        "known. SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON, rpl_semi_sync_master_timeout = {}, there "
        "and in its configuration",
        kForEverMs));
  }
}

/// Adds the problems of a host that the maps have as a slave.
void FindSlaveProblems(HostReport& report) {
  const auto say = [&](std::string text) { report.problems.push_back(std::move(text)); };
  const std::string name = report.host.ToString();
  const HostState& state = *report.state;
  if (!state.read_only) say("is a slave by the map, and takes writes: kv shards fence " + name);
  if (!report.slave_copy.ok()) {
    say(About(name, report.slave_copy));
    return;
  }
  if (!state.following) {
    say("follows nobody: kv shards promote " + report.pair.master.ToString() + " has it follow again");
    return;
  }
  const Following& following = *state.following;
  if (following.master != report.pair.master) {
    say(fmt::format("follows {}, its master by the map is {}", following.master.ToString(),
                    report.pair.master.ToString()));
  }
  if (!following.error.empty()) say(following.error);
  if (IsBroken(following)) {
    say("unless that can be mended, it is made new: kv shards replace-slave " + name + " --discard");
  }
  if (!following.receives) say("is not connected to its master");
  if (!following.applies) say("does not apply what comes from its master");
  if (following.lag_s.value_or(0) > kMaxLagS) say(fmt::format("is {} s behind", *following.lag_s));
}

/// Adds to a report all that is wrong with its host.
///
/// slave_report  The report about a master's slave; null if there is none.
void FindProblems(HostReport& report, const HostReport* slave_report) {
  if (!report.state) {
    FindUnansweredProblems(report);
    return;
  }
  FindServerProblems(report);
  if (report.master) {
    FindMasterProblems(report, slave_report);
  } else {
    FindSlaveProblems(report);
  }
}

/// Calls `work(i)` for each i < count, each in a thread of its own, and waits for all.
template <typename Work>
void InParallel(size_t count, const Work& work) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

std::vector<HostReport> HostsOf(const Maps& maps) {
  std::vector<HostReport> reports;
  for (const Pair& pair : maps.Pairs()) {
    for (const bool master : {true, false}) {
      reports.push_back({.host = master ? pair.master : pair.slave,
                         .master = master,
                         .pair = pair,
                         .shards = maps.ShardsOf(pair)});
    }
  }
  return reports;
}

void AskHost(const Access& access, HostReport& report, bool load) {
  const auto admin = HostAdmin::Open(report.host, access);
  if (!admin.ok()) {
    report.status = admin.status();
    return;
  }
  auto state = (*admin)->Read();
  report.status = state.status();
  if (state.ok()) report.state = *std::move(state);
  if (!load) return;
  report.bytes = (*admin)->ReadSize().value_or(0);
  report.slow = (*admin)->ReadSlow().value_or(SlowStatements());
}

/// load  Whether the sizes and the slow statements are read, too.
void Ask(FleetOperator& fleet, HostReport& report, bool load) {
  report.slave_copy = CheckCopyEnded(fleet, report.pair.slave);
  report.copy = report.master ? CheckCopyEnded(fleet, report.host) : report.slave_copy;
  AskHost(fleet.access, report, load);
}

/// Whether the maps have a host of this pair in another pair too, so that the host's role is not known.
bool IsDisagreed(const std::map<Host, std::string>& disagreements, const Pair& pair) {
  return disagreements.contains(pair.master) || disagreements.contains(pair.slave);
}

/// Returns the report about the slave of a master; null if there is none.
const HostReport* SlaveOf(const std::vector<HostReport>& reports, const HostReport& master) {
  const auto found = std::find_if(reports.begin(), reports.end(), [&](const HostReport& one) {
    return !one.master && one.pair == master.pair;
  });
  return found == reports.end() ? nullptr : &*found;
}

/// Adds to the first report about each host what is wrong with it in the maps, and moves hosts with problems
/// to the front.
void Arrange(std::vector<HostReport>& reports, const std::map<Host, std::string>& disagreements) {
  for (const auto& wrong : disagreements) {
    std::find_if(reports.begin(), reports.end(), [&](const HostReport& report) {
      return report.host == wrong.first;
    })->problems.push_back(wrong.second);
  }
  std::stable_sort(reports.begin(), reports.end(), [](const HostReport& a, const HostReport& b) {
    return !a.problems.empty() && b.problems.empty();
  });
}

/// Records a master's state in its note (remember.h).
///
/// before  The note from before the master was asked: if another command has changed it since, that one's
/// stays.
void SaveMasterNote(FleetOperator& fleet, const std::vector<HostReport>& all, const HostReport& master,
                    const Note& before) {
  if (!master.state->semi_sync_active) {
    if (!master.state->read_only)
      RecordCommitsWithoutSlave(fleet, master.host, master.state->gtid, &before).IgnoreError();
    return;
  }
  const bool slave_answers = std::any_of(all.begin(), all.end(), [&](const HostReport& other) {
    return other.host == master.pair.slave && other.state && other.state->following &&
           other.state->following->receives;
  });
  std::unique_ptr<HostAdmin> slave;
  if (slave_answers) {
    if (auto admin = HostAdmin::Open(master.pair.slave, fleet.access); admin.ok()) slave = *std::move(admin);
  }
  RecordMasterState(fleet, *master.state, slave.get(), &before).IgnoreError();
}

/// Returns 17 for "db00017" of the ID shards; nullopt for databases of other names or of the other space.
std::optional<uint32_t> ShardOf(const std::string& database, mysql::Space space) {
  const std::string prefix = space == mysql::Space::kId ? "db" : "mod";
  if (database.size() != prefix.size() + 5 || !database.starts_with(prefix)) return std::nullopt;
  const std::string digits = database.substr(prefix.size());
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return static_cast<uint32_t>(std::stoul(digits));
}

using Shards = std::set<std::pair<mysql::Space, uint32_t>>;

/// The shards that a host has by the maps.
struct Home {
  Shards shards;
  Shards led;  ///< Those of them of which it is the master.
  /// The pair that it is in; none for a host that is in no map any more.
  std::optional<Pair> pair;

  bool IsOfPair(const Host& host) const { return pair && (host == pair->master || host == pair->slave); }
};

/// Adds a sentence for the databases of ID shards that a master has and no map. Whoever opens shards makes
/// their databases first, and may be gone before the map has them.
void ProposeOpening(const Pair& pair, const std::vector<uint32_t>& shards, std::vector<std::string>& found) {
  for (size_t i = 0; i < shards.size();) {
    size_t end = i + 1;
    while (end < shards.size() && shards[end] == shards[end - 1] + 1) ++end;
    found.push_back(fmt::format(
        "{0}: has databases of shards {1}-{2}, which the map has nowhere: an opening of them was cut short, "
        "or a wrong map has lost them (kv shards history): kv shards open --range {1}-{2} --master {0} "
        "--slave "
        "{3} opens them with what is there",
        pair.master.ToString(), shards[i], shards[end - 1], pair.slave.ToString()));
    i = end;
  }
}

/// Adds a sentence for each database and table that a host lacks, and each database of a shard that it should
/// not have.
///
/// open  the shards that the maps have.
void Compare(const Host& host, const Home& home, const Shards& open, const std::map<Host, HostTables>& all,
             std::span<const DatasetSpec> datasets, std::vector<std::string>& found) {
  const std::string name = host.ToString();
  const HostTables& there = all.at(host);
  const auto at_another = [&](const std::string& database, bool of_other_pair) {
    for (const auto& [other, tables] : all) {
      if (other == host || (of_other_pair && home.IsOfPair(other))) continue;
      if (tables.contains(database)) return other.ToString();
    }
    return std::string();
  };
  for (const auto& [space, shard] : home.shards) {
    const std::string database = mysql::DatabaseName(space, shard);
    const auto tables = there.find(database);
    if (tables == there.end()) {
      const std::string other = at_another(database, /*of_other_pair=*/false);
      found.push_back(fmt::format(
          "{}: database {} is missing{}", name, database,
          other.empty() ? ": kv shards init makes it"
          : home.led.contains({space, shard})
              ? fmt::format(", and {} has it: is the map right? kv shards history shows what it was", other)
              : ", which its master has: kv shards status says whether it follows"));
      continue;
    }
    const bool moves = there.contains(mysql::MovedName(database));
    for (const DatasetSpec& spec : datasets) {
      const std::string& table = TableName(spec);
      if (mysql::SpaceOf(spec.shape) != space || tables->second.contains(table)) continue;
      const bool migrates =
          tables->second.contains(table + "$state") || tables->second.contains(table + "$r$state");
      found.push_back(fmt::format("{}: table {}.{} is missing: {}", name, database, table,
                                  migrates ? "the dataset migrates, see kv migrate status"
                                  : moves  ? "the shard is being moved, see kv shards move status"
                                           : "kv shards init makes it"));
    }
  }
  std::vector<uint32_t> unopened;
  for (const auto& [database, unused] : there) {
    for (const mysql::Space space : {mysql::Space::kId, mysql::Space::kMod}) {
      const auto shard = ShardOf(database, space);
      if (!shard || home.shards.contains({space, *shard})) continue;
      const std::string other = at_another(database, /*of_other_pair=*/true);
      const bool nowhere = space == mysql::Space::kId && !open.contains({space, *shard});
      if (nowhere && other.empty() && home.pair) {
        const auto master = all.find(home.pair->master);
        if (master != all.end() && master->second.contains(database)) {
          // The slave has it from its master.
          if (host == home.pair->master) unopened.push_back(*shard);
          continue;
        }
      }
      found.push_back(fmt::format(
          "{}: database {} is of a shard that the map has {}{}", name, database,
          nowhere ? "nowhere" : "elsewhere",
          other.empty() ? ", and no host of another pair has that database: is the map right? kv shards "
                          "history shows what it was before"
                        : fmt::format("; {} has it too: see which of them has the rows, and whether the map "
                                      "is right (kv shards history), before one is dropped",
                                      other)));
    }
  }
  if (home.pair) ProposeOpening(*home.pair, unopened, found);
}

}  // namespace

HostReport InspectHost(FleetOperator& fleet, const Pair& pair, bool master) {
  HostReport report{.host = master ? pair.master : pair.slave, .master = master, .pair = pair};
  Ask(fleet, report, /*load=*/false);
  FindProblems(report, nullptr);
  return report;
}

absl::StatusOr<std::vector<HostReport>> InspectFleet(FleetOperator& fleet) {
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  std::vector<HostReport> reports = HostsOf(*maps);
  const std::map<Host, std::string> disagreements = maps->Disagreements();
  std::map<Host, Note> notes;
  for (const HostReport& report : reports) {
    if (!report.master) continue;
    if (auto note = LoadNote(fleet, report.host); note.ok()) notes.emplace(report.host, *std::move(note));
  }
  InParallel(reports.size(), [&](size_t i) { Ask(fleet, reports[i], /*load=*/true); });
  for (HostReport& report : reports) {
    // While the maps disagree about a host, its role is not known, and a proposal could make it worse.
    const bool disagreed = IsDisagreed(disagreements, report.pair);
    if (!disagreed) FindProblems(report, SlaveOf(reports, report));
    // An emergency promotion needs this when the master does not answer any more.
    const auto note = notes.find(report.host);
    if (report.master && report.state && !disagreed && note != notes.end()) {
      SaveMasterNote(fleet, reports, report, note->second);
    }
  }
  Arrange(reports, disagreements);
  return reports;
}

absl::StatusOr<std::vector<HostReport>> InspectFleetByCopies(const Access& access,
                                                             const std::filesystem::path& folder) {
  const auto maps = Maps::LoadCopies(folder);
  if (!maps.ok()) return maps.status();
  std::vector<HostReport> reports = HostsOf(*maps);
  const std::map<Host, std::string> disagreements = maps->Disagreements();
  InParallel(reports.size(), [&](size_t i) { AskHost(access, reports[i], /*load=*/true); });
  for (HostReport& report : reports) {
    if (report.master) report.slave_copy = absl::UnavailableError("nothing is promoted without ZooKeeper");
    if (!IsDisagreed(disagreements, report.pair)) FindProblems(report, SlaveOf(reports, report));
  }
  Arrange(reports, disagreements);
  return reports;
}

absl::StatusOr<std::vector<std::string>> CheckFleet(FleetOperator& fleet,
                                                    std::span<const DatasetSpec> datasets) {
  const auto reports = InspectFleet(fleet);
  if (!reports.ok()) return reports.status();
  std::vector<std::string> found;
  for (const HostReport& report : *reports) {
    for (const std::string& problem : report.problems)
      found.push_back(report.host.ToString() + ": " + problem);
  }
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  std::map<Host, Home> homes;
  Shards open;
  for (const StoredMap& stored : maps->all()) {
    const mysql::Space space = stored.mod ? mysql::Space::kMod : mysql::Space::kId;
    for (const ShardRange& range : stored.map.ranges()) {
      for (uint32_t shard = range.first; shard <= range.last; ++shard) {
        open.insert({space, shard});
        homes[range.master].led.insert({space, shard});
        homes[range.master].shards.insert({space, shard});
        homes[range.slave].shards.insert({space, shard});
      }
    }
  }
  for (const Pair& pair : maps->Pairs()) {
    homes[pair.master].pair = pair;
    homes[pair.slave].pair = pair;
  }
  // A host that is in no map any more may still have shards that a wrong map took from it.
  for (const Host& host : KnownHosts(fleet, *maps)) homes.try_emplace(host);
  std::map<Host, HostTables> all;
  for (const auto& [host, unused] : homes) {
    const auto admin = HostAdmin::Open(host, fleet.access);
    if (!admin.ok()) continue;  // InspectFleet has reported it, if the host is in a map.
    auto tables = (*admin)->ReadTables();
    if (!tables.ok()) return tables.status();
    all.emplace(host, *std::move(tables));
  }
  for (const auto& [host, unused] : all) Compare(host, homes.at(host), open, all, datasets, found);
  return found;
}

}  // namespace kvstore::shardops
