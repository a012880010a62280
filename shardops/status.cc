#include "shardops/status.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "backends/mysql/driver/errors.h"
#include "kvstore_api/limits.h"
#include "shardmap/nodes.h"
#include "shardops/gtid_set.h"
#include "shardops/notes.h"
#include "shardops/parallel.h"
#include "shardops/remember.h"
#include "shardops/skipped_statements.h"

namespace kvstore::shardops {
namespace {

/// How far a host's clock may be from this machine's: rows get their timestamps from the hosts' clocks.
constexpr int64_t kMaxSkewMs = 1000;
/// Above this lag a slave is reported.
constexpr uint64_t kMaxLagS = 10;
/// A slave that tries to reach a master that is gone for less than this is reported.
constexpr uint64_t kPatienceS = 86'400;
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
///
/// slave_report  The report about its slave; null if there is none.
void FindUnansweredProblems(HostReport& report, const HostReport* slave_report) {
  const auto say = [&](std::string text) { report.problems.push_back(std::move(text)); };
  const std::string name = report.host.ToString();
  say(About(name, report.status));
  if (!report.master || !absl::IsUnavailable(report.status)) return;
  const auto* const followed =
      slave_report != nullptr && slave_report->state && slave_report->state->following
          ? &slave_report->state->following->master
          : nullptr;
  if (followed != nullptr && *followed != report.host) {
    // Then the map is likely to be wrong, and the host that it should name is well.
    say(fmt::format(
        "its slave by the map, {}, follows {}: is the map right? kv shards history, with --mod for "
        "the other map, shows what it was, kv shards undo puts the one before in force again",
        report.pair.slave.ToString(), followed->ToString()));
  } else if (report.slave_copy.ok()) {
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
  if (!state.binlog || !state.gtid_strict) {
    say(fmt::format("{} are not all on", WordsOf(state.engine).master_settings));
  }
  if (state.max_packet < 2 * kMaxPutBytes) {
    say(fmt::format("max_allowed_packet is {}, at least {} is needed", state.max_packet, 2 * kMaxPutBytes));
  }
  if (std::abs(state.clock_ahead_ms) > kMaxSkewMs) {
    say(fmt::format("its clock is {} ms {} this machine's", std::abs(state.clock_ahead_ms),
                    state.clock_ahead_ms > 0 ? "ahead of" : "behind"));
  }
  if (state.closed) {
    say(fmt::format(
        "lets only administrators connect (offline_mode), as a fence leaves it that was cut short: kv shards "
        "fence {} completes it",
        report.host.ToString()));
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
  const Words& words = WordsOf(state.engine);
  if (slave_report != nullptr && slave_report->state && slave_report->state->engine != state.engine) {
    say(fmt::format(
        "is a {} server, and its slave by the map, {}, a {} server: neither can replicate from the "
        "other; the pair needs two servers of the same engine",
        words.engine, slave, WordsOf(slave_report->state->engine).engine));
  }
  if (!report.copy.ok()) {
    say(About(name, report.copy) + ". The map names it the master: kv shards promote " + slave +
        " makes that the master first");
  }
  if (slave_report != nullptr && slave_report->state) {
    for (const auto& find : {StrayTransactions, LostTransactions}) {
      const std::string found = find(*slave_report->state, state);
      if (!found.empty()) say(fmt::format("its slave {} {}", slave, found));
    }
  }
  if (state.following) say("is a master by the map, and follows " + state.following->master.ToString());
  if (state.read_only) say("is a master by the map, and read-only: kv shards promote " + name + " opens it");
  if (!state.semi_sync_master) {
    say(fmt::format("acknowledges commits without its slave: SET GLOBAL {} = ON", words.semi_sync));
  } else if (state.semi_sync_slaves == 0) {
    const bool broken = slave_report != nullptr && slave_report->state && slave_report->state->following &&
                        IsBroken(*slave_report->state->following);
    say(report.slave_copy.ok() && !broken ? "has no semi-synchronous slave: kv shards promote " + name +
                                                " has " + slave + " follow it again"
                                          : "has no semi-synchronous slave: see " + slave);
  } else if (state.semi_sync_slaves > 1) {
    say(fmt::format(
        "has {} semi-synchronous slaves, and answers a commit when any of them has it: SHOW FULL PROCESSLIST "
        "there names them ({}), {} on all but {}",
        state.semi_sync_slaves, words.dump_command, words.stop_slave, slave));
  } else if (!state.semi_sync_active) {
    say("does not wait for its slave at present");
  } else if (!state.semi_sync_wait_no_slave || state.semi_sync_timeout_ms < kForEverMs) {
    say(fmt::format(
        "acknowledges commits without its slave when that is away: should it die, what is lost is not "
        "known. SET GLOBAL {} = ON, {} = {}, there and in its configuration",
        words.wait_no_slave, words.wait_timeout, kForEverMs));
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
  if (!following.applies) {
    say(fmt::format(
        "does not apply what comes from its master{}",
        following.error.empty() ? fmt::format(": {} there", WordsOf(state.engine).start_applying) : ""));
  }
  // Not while the master is away: what was received and is not applied would be thrown away.
  if (following.gives_up_s && *following.gives_up_s < kPatienceS && following.receives && following.applies) {
    say(fmt::format(
        "ends its replication when its master has been away for {} s, and can take its place no longer then: "
        "STOP REPLICA IO_THREAD FOR CHANNEL ''; CHANGE REPLICATION SOURCE TO SOURCE_RETRY_COUNT = 4294967295 "
        "FOR CHANNEL ''; START REPLICA IO_THREAD FOR CHANNEL '' there",
        *following.gives_up_s));
  }
  if (following.lag_s.value_or(0) > kMaxLagS) say(fmt::format("is {} s behind", *following.lag_s));
}

/// Adds to a report all that is wrong with its host.
///
/// slave_report  The report about a master's slave; null if there is none.
void FindProblems(HostReport& report, const HostReport* slave_report) {
  if (!report.state) {
    FindUnansweredProblems(report, slave_report);
    return;
  }
  FindServerProblems(report);
  if (report.master) {
    FindMasterProblems(report, slave_report);
  } else {
    FindSlaveProblems(report);
  }
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

void AskHost(const Access& access, HostReport& report, bool load) try {
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
} catch (const std::logic_error& error) {
  // A number that is none, from something that is no server of MariaDB.
  report.status = absl::InternalError(
      fmt::format("{}: answers what cannot be understood: {}", report.host.ToString(), error.what()));
}

/// load  Whether the sizes and the slow statements are read, too.
void Ask(FleetOperator& fleet, HostReport& report, bool load) {
  report.slave_copy = CheckCopyEnded(fleet, report.pair.slave);
  report.copy = report.master ? CheckCopyEnded(fleet, report.host) : report.slave_copy;
  AskHost(fleet.access, report, load);
}

/// A sentence about a note that has a field of another type than this version writes.
std::string UnreadableNote(const Host& host, const std::exception& error) {
  return fmt::format(
      "the note about it in ZooKeeper ({}) has a field of another type than this version writes: "
      "{}. Its slave is not put in its place before that is corrected",
      HostPath("ROOT", host), error.what());
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
    std::find_if(reports.begin(), reports.end(),
                 [&](const HostReport& report) { return report.host == wrong.first; })
        ->problems.push_back(wrong.second +
                             ". One of them is wrong: kv shards history, with --mod for the other map, shows "
                             "what it was, kv shards undo puts the one before in force again");
  }
  std::stable_sort(reports.begin(), reports.end(), [](const HostReport& a, const HostReport& b) {
    return !a.problems.empty() && b.problems.empty();
  });
}

/// Records a master's state in its note (remember.h).
///
/// loaded  The note from before the master was asked: if another command has changed it since, that one's
/// stays.
void SaveMasterNote(FleetOperator& fleet, const std::vector<HostReport>& all, const HostReport& master,
                    const Note& loaded) {
  // Whoever has fenced it, somebody has opened it since.
  const Note before = master.state->read_only ? loaded : WithoutFenced(loaded);
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
  // A master that has died since it was asked was not seen without its slave, which counts on MySQL
  // (AtSlave).
  const bool counts = slave == nullptr && master.state->engine == Engine::kMySql;
  if (counts && !HostAdmin::Open(master.host, fleet.access).ok()) return;
  RecordMasterState(fleet, *master.state, slave.get(), &before).IgnoreError();
}

}  // namespace

std::string StrayTransactions(const HostState& slave, const HostState& master) {
  if (slave.server_uuid.empty() || master.server_uuid.empty()) return "";
  // A master that was replaced, and does not follow yet, may have a last transaction that nobody was told of.
  if (!slave.following) return "";
  const uint64_t stray =
      GtidSet(slave.gtid).OfServer(slave.server_uuid, kSkippedTag).CountMissingIn(GtidSet(master.gtid));
  if (stray == 0) return "";
  return fmt::format(
      "has {0} transactions of its own, which its master lacks: kv shards replace-slave {1} --discard makes "
      "it new; "
      "or, to keep them, kv shards promote {1}",
      stray, slave.host.ToString());
}

std::string LostTransactions(const HostState& slave, const HostState& master) {
  if (slave.server_uuid.empty() || master.server_uuid.empty()) return "";
  const uint64_t lost =
      GtidSet(master.gtid).OfServer(slave.server_uuid, kSkippedTag).CountMissingIn(GtidSet(slave.gtid));
  if (lost == 0) return "";
  return fmt::format(
      "has lost {} transactions of its own, which its master has, and takes none of these from it: kv shards "
      "replace-slave {} --discard makes it new",
      lost, slave.host.ToString());
}

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
  // The notes of masters, loaded before the masters are asked.
  std::vector<absl::StatusOr<Note>> notes(reports.size(), absl::NotFoundError("not loaded"));
  InParallel(reports.size(), [&](size_t i) {
    if (reports[i].master) notes[i] = LoadNote(fleet, reports[i].host);
    Ask(fleet, reports[i], /*load=*/true);
  });
  // While the maps disagree about a host, its role is not known, and a proposal could make it worse.
  const auto disagreed = [&](const HostReport& report) { return IsDisagreed(disagreements, report.pair); };
  for (HostReport& report : reports) {
    if (!disagreed(report)) FindProblems(report, SlaveOf(reports, report));
  }
  InParallel(reports.size(), [&](size_t i) {
    HostReport& report = reports[i];
    // An emergency promotion needs this when the master does not answer any more.
    if (!report.master || !report.state || disagreed(report) || !notes[i].ok()) return;
    try {
      SaveMasterNote(fleet, reports, report, *notes[i]);
    } catch (const nlohmann::json::exception& error) {
      report.problems.push_back(UnreadableNote(report.host, error));
    }
  });
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

}  // namespace kvstore::shardops
