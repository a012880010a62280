#include "cli/fleet_commands.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "assembly/backend_config.h"
#include "assembly/fleet_init.h"
#include "base/clock.h"
#include "cli/amounts.h"
#include "cli/escape.h"
#include "cli/operated.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "kvstore_api/open.h"
#include "shardops/fleet_check.h"
#include "shardops/open.h"
#include "shardops/status.h"

/// kv shards status, check, open, promote, fence: the hosts behind the shard maps.
namespace kvstore::cli {
namespace {

using shardops::FleetCheck;
using shardops::HostReport;
using shardops::HostState;

Json ToJson(const HostReport& report) {
  Json json = {{"host", report.host.ToString()},
               {"role", report.master ? "master" : "slave"},
               {"pair", {report.pair.master.ToString(), report.pair.slave.ToString()}},
               {"shards", report.shards},
               {"problems", report.problems}};
  if (!report.state) return json;
  const HostState& state = *report.state;
  json["version"] = state.version;
  json["read_only"] = state.read_only;
  json["gtid"] = state.gtid;
  json["connections"] = state.connections;
  json["bytes"] = report.bytes;
  json["clock_ahead_ms"] = state.clock_ahead_ms;
  json["semi_sync"] = report.master ? state.semi_sync_active : state.semi_sync_slave_active;
  if (state.following) {
    json["follows"] = state.following->master.ToString();
    if (state.following->lag_s) json["lag_s"] = *state.following->lag_s;
  }
  return json;
}

std::string HostsText(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.ToString());
  return fmt::format("{}", fmt::join(names, ", "));
}

Json ToJson(const FleetCheck& check) {
  Json not_asked = Json::array();
  for (const Host& host : check.not_asked) not_asked.push_back(host.ToString());
  return {{"problems", check.problems}, {"lines", check.lines}, {"not_asked", std::move(not_asked)}};
}

/// Prints what `kv shards status` found.
///
/// databases  An error if the databases were not compared with the maps.
void PrintReports(const std::vector<HostReport>& reports, const absl::StatusOr<FleetCheck>& databases,
                  const Globals& globals) {
  if (globals.json) {
    Json hosts = Json::array();
    for (const HostReport& report : reports) hosts.push_back(ToJson(report));
    PrintJson({{"ok", true},
               {"hosts", std::move(hosts)},
               {"databases", databases.ok() ? ToJson(*databases) : Json()}});
    return;
  }
  for (const HostReport& report : reports) {
    for (const std::string& problem : report.problems) Print("{}: {}\n", report.host.ToString(), problem);
  }
  if (databases.ok()) {
    for (const std::string& line : databases->lines) Print("{}\n", line);
  }
  Table table({"HOST", "ROLE", "SHARDS", "WRITES", "SEMI-SYNC", "LAG S", "GTID", "CONNECTIONS", "MIB"});
  for (const HostReport& report : reports) {
    if (!report.state) {
      table.Add({report.host.ToString(), report.master ? "master" : "slave", report.shards, "?", "?", "?",
                 "?", "?", "?"});
      continue;
    }
    const HostState& state = *report.state;
    const bool semi_sync = report.master ? state.semi_sync_active : state.semi_sync_slave_active;
    std::string lag = "-";
    if (state.following) lag = state.following->lag_s ? std::to_string(*state.following->lag_s) : "?";
    table.Add({report.host.ToString(), report.master ? "master" : "slave", report.shards,
               state.read_only ? "no" : "yes", semi_sync ? "yes" : "no", lag, state.gtid,
               std::to_string(state.connections), std::to_string(report.bytes >> 20)});
  }
  table.Print();
  if (!databases.ok()) {
    Print("the hosts were not asked which databases they have: {}\n",
          std::string(databases.status().message()));
    return;
  }
  if (!databases->not_asked.empty()) {
    Print("not asked which databases they have, because they do not answer: {}\n",
          HostsText(databases->not_asked));
  }
  Print("the databases were compared with the maps; kv shards check compares the tables, too\n");
}

/// Returns the time of day in UTC: "14:03:07".
std::string TimeOfDay() {
  const auto seconds = WallClockMs() / 1000 % 86'400;
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

/// Inspects all hosts. While ZooKeeper is down it uses the copies of the maps, and says so.
///
/// databases  Becomes the comparison of the hosts' databases with the maps, which needs ZooKeeper.
std::vector<HostReport> InspectHosts(Operated& fleet, absl::StatusOr<FleetCheck>& databases) {
  auto reports = shardops::InspectFleet(*fleet);
  if (!absl::IsUnavailable(reports.status()) || fleet.options().data.empty()) {
    OrFail(reports.status());
    databases = shardops::CheckDatabases(*fleet);
    return *std::move(reports);
  }
  databases = reports.status();
  auto by_copies = shardops::InspectFleetByCopies((*fleet).access, fleet.options().data);
  if (!by_copies.ok()) OrFail(reports.status());
  PrintErr(
      "ZooKeeper does not answer ({}). The maps are those of the copy in {}; nothing that is proposed "
      "here can be done before ZooKeeper is back\n",
      std::string(reports.status().message()), fleet.options().data.string());
  return *std::move(by_copies);
}

void AddStatus(CLI::App& group, Globals& globals) {
  CLI::App* status = group.add_subcommand(
      "status",
      "Show all hosts of the maps: problems first, then role, replication, load. Among the problems are "
      "databases that are missing, or are of shards that the maps have elsewhere, except where an operation "
      "under way has the shard or the host for itself (kv shards operations); kv shards check compares the "
      "tables, too. While ZooKeeper is down it uses the copy of the maps in the data directory, and compares "
      "no databases. Exit code 1 if there are problems");
  status->footer("Example: kv --config /etc/kvstore/kv.json shards status");
  status->callback([&globals] {
    Operated fleet(globals);
    absl::StatusOr<FleetCheck> databases = absl::UnknownError("");
    const auto reports = InspectHosts(fleet, databases);
    PrintReports(reports, databases, globals);
    // A host may be in several pairs if the maps are wrong or a move is in progress.
    std::set<Host> hosts;
    std::set<Host> troubled;
    for (const HostReport& report : reports) {
      hosts.insert(report.host);
      if (!report.problems.empty()) troubled.insert(report.host);
    }
    if (!troubled.empty()) {
      throw Failure{absl::FailedPreconditionError(
          fmt::format("{} of {} hosts have problems", troubled.size(), hosts.size()))};
    }
    if (databases.ok() && !databases->problems.empty()) {
      throw Failure{absl::FailedPreconditionError(
          fmt::format("{} databases are not as the maps say; kv shards check compares the tables, too",
                      databases->problems.size()))};
    }
  });
}

void AddCheck(CLI::App& group, Globals& globals) {
  CLI::App* check = group.add_subcommand(
      "check",
      "Compare the maps and the catalog with the hosts: finds missing databases and tables, databases of "
      "shards that are elsewhere, wrong roles, writable slaves. Exit code 1 if anything is found");
  check->footer(
      R"(Shards of a host of which the same is to be said are on one line: HOST: shards db 3-40, 42: ...
With --json, "problems" has an entry for each database and table, "lines" has those lines, "not_asked" the
hosts that do not answer.

Example: kv --config /etc/kvstore/kv.json shards check)");
  check->callback([&globals] {
    Operated fleet(globals);
    const auto datasets = OrFail(MySqlDatasets(fleet.options()));
    const auto found = OrFail(shardops::CheckFleet(*fleet, datasets));
    if (globals.json) {
      Json json = ToJson(found);
      json["ok"] = found.problems.empty();
      PrintJson(json);
    } else {
      for (const std::string& line : found.lines) Print("{}\n", line);
      if (!found.not_asked.empty()) {
        Print("not compared, because they do not answer: {}\n", HostsText(found.not_asked));
      }
      if (found.problems.empty()) Print("the hosts are as the maps and the catalog say\n");
    }
    if (!found.problems.empty()) {
      throw Failure{absl::FailedPreconditionError(fmt::format("{} problems", found.problems.size()))};
    }
  });
}

void AddPromote(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string host;
    shardops::PromoteOptions options;
    uint64_t catch_up_ms = 5'000;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* promote = group.add_subcommand(
      "promote",
      "Make a slave the master of its shards: the master stops accepting writes, the slave applies the rest, "
      "the maps name it, and the old master replicates from it; clients wait meanwhile. If the command was "
      "interrupted, run it again for the slave to continue, or for the old master to go back. For a host "
      "that is the master by the maps already, and replicates from nobody, it restores what the maps say: "
      "the host accepts writes, and its slave replicates from it");
  promote->add_option("host", args->host, "The slave, as it is written in the maps")->required();
  promote->add_flag("--emergency", args->options.emergency,
                    "The master is gone. Refused while it answers, or if acknowledged writes may be lost");
  promote->add_option("--accept-loss", args->options.accept_loss,
                      "With --emergency: continue although up to this number of acknowledged transactions "
                      "may be lost, or the number is not known");
  TakeDuration(promote
                   ->add_option("--catch-up", args->catch_up_ms,
                                "How long the slave may take to apply what it lacks, in ms")
                   ->check(CLI::Range(1, 3'600'000))
                   ->capture_default_str());
  promote->add_flag("--dry-run", args->options.dry_run,
                    "Only inspect both hosts, and say what would be done");
  promote->footer(R"(Examples:
  kv shards promote MySQL001B --dry-run
  kv shards promote MySQL001B
  kv shards promote MySQL001B --emergency      the master is gone; docs/runbook.md)");
  promote->callback([args, &globals] {
    Operated fleet(globals);
    args->options.catch_up = std::chrono::milliseconds(args->catch_up_ms);
    const auto promotion = OrFail(shardops::Promote(*fleet, ParseHost(args->host), args->options));
    if (globals.json) {
      PrintJson({{"ok", true},
                 {"master", promotion.after.master.ToString()},
                 {"slave", promotion.after.slave.ToString()},
                 {"follows", promotion.follows},
                 {"write_pause_ms", promotion.write_pause_ms}});
    } else if (!args->options.dry_run) {
      Print("{} is the master, {} {}\n", promotion.after.master.ToString(), promotion.after.slave.ToString(),
            promotion.follows ? "follows it" : "does not follow it");
    }
  });
}

void AddOpen(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string range;
    std::string master;
    std::string slave;
    bool dry_run = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* open =
      group.add_subcommand("open",
                           "Open more ID shards: inspects both hosts, makes databases and tables, then adds "
                           "the shards to the map. If it was interrupted, run it again");
  open->add_option("--range", args->range, "First and last shard")->required()->type_name("A-B");
  open->add_option("--master", args->master, "Host that accepts the writes")->required()->type_name("HOST");
  open->add_option("--slave", args->slave, "Host that replicates from it")->required()->type_name("HOST");
  open->add_flag("--dry-run", args->dry_run, "Only inspect the hosts");
  open->footer("Example: kv shards open --range 3440-3455 --master MySQL001A --slave MySQL001B --dry-run");
  open->callback([args, &globals] {
    Operated fleet(globals);
    const shardops::MoveRange range = ParseRange(args->range, /*mod=*/false);
    const shardops::NewShards shards{
        range.first, range.last, {ParseHost(args->master), ParseHost(args->slave)}};
    if (args->dry_run) {
      const auto problems = shardops::FindPairProblems(*fleet, shards.pair);
      for (const std::string& problem : problems) Print("{}\n", problem);
      if (!problems.empty()) throw Failure{absl::FailedPreconditionError("the hosts cannot take the shards")};
      Print("both hosts can take the shards\n");
      return;
    }
    shardops::Opened opened;
    {
      ProgressBar bar("open", "shards");
      opened = OrFail(shardops::OpenShards(*fleet, shards, MySqlDatasetsReader(fleet.options()),
                                           [&](uint64_t done, uint64_t total) {
                                             bar.Show(done, total);
                                             return true;
                                           }));
    }
    if (globals.json) {
      PrintJson(
          {{"ok", true}, {"first", shards.first}, {"last", shards.last}, {"open_already", opened.already}});
    } else if (opened.already) {
      Print(
          "shards {}-{} are open on {} already: nothing was done, except for databases and tables that were "
          "missing there\n",
          shards.first, shards.last, shards.pair.master.ToString());
    }
  });
}

void AddFence(CLI::App& group, Globals& globals) {
  auto host = std::make_shared<std::string>();
  CLI::App* fence = group.add_subcommand("fence",
                                         "Make a host read-only and end the connections of clients to it. "
                                         "`kv shards promote` makes a master accept writes again");
  fence->add_option("host", *host, "The host, as it is written in the maps")->required();
  fence->footer("Example: kv shards fence MySQL001A");
  fence->callback([host, &globals] {
    Operated fleet(globals);
    const uint64_t ended = OrFail(shardops::Fence(*fleet, ParseHost(*host)));
    if (globals.json) {
      PrintJson({{"ok", true}, {"ended", ended}});
    } else {
      Print("{} takes no writes; {} connections were ended\n", *host, ended);
    }
  });
}

/// Returns the current problems of all hosts.
std::set<std::string> Problems(shardops::FleetOperator& fleet) {
  const auto reports = shardops::InspectFleet(fleet);
  if (!reports.ok()) return {std::string(reports.status().message())};
  std::set<std::string> problems;
  for (const HostReport& report : *reports) {
    for (const std::string& problem : report.problems)
      problems.insert(report.host.ToString() + ": " + problem);
  }
  return problems;
}

}  // namespace

bool HasOperator(const Globals& globals) {
  if (globals.config.empty()) return false;
  const OpenOptions options = globals.StoreOptions();
  const MySqlFleetOptions* fleet = FindFleet(options);
  return fleet != nullptr && !fleet->admin.user.empty() && !fleet->zookeeper.servers.empty();
}

void WatchHosts(const Globals& globals, std::chrono::seconds interval, const absl::Notification& end) {
  Operated fleet(globals);
  const auto say = [&](const std::string& text, bool over) {
    if (globals.json) {
      PrintJson({{"at_ms", WallClockMs()}, {"problem", text}, {"over", over}});
    } else {
      Print("{} {}{}\n", TimeOfDay(), over ? "over: " : "", text);
    }
  };
  std::set<std::string> before;
  for (bool first = true; !end.HasBeenNotified(); first = false) {
    std::set<std::string> now = Problems(*fleet);
    for (const std::string& problem : now) {
      if (!before.contains(problem)) say(problem, false);
    }
    for (const std::string& problem : before) {
      if (!now.contains(problem)) say(problem, true);
    }
    if (first && now.empty() && !globals.json) Print("{} no host has a problem\n", TimeOfDay());
    FlushOut();
    before = std::move(now);
    end.WaitForNotificationWithTimeout(absl::FromChrono(interval));
  }
}

void AddFleetCommands(CLI::App& group, Globals& globals) {
  AddStatus(group, globals);
  AddCheck(group, globals);
  AddOpen(group, globals);
  AddPromote(group, globals);
  AddFence(group, globals);
}

}  // namespace kvstore::cli
