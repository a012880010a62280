#include "cli/fleet_commands.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/amounts.h"
#include "cli/escape.h"
#include "cli/shard_arguments.h"
#include "cli/shard_operator.h"
#include "cli/table.h"
#include "shardops/fleet_session.h"
#include "shardops/status.h"

/// kv shards status, check, open, promote, fence: the hosts behind the shard maps.
namespace kvstore::cli {
namespace {

using Texts = std::vector<std::string>;

/// Prints what `kv shards status` found.
void PrintStatus(const Json& answer) {
  const Json& hosts = answer.at("hosts");
  const Json& databases = answer.at("databases");
  for (const Json& host : hosts) {
    for (const auto& problem : host.at("problems").get<Texts>())
      Print("{}: {}\n", host.value("host", ""), problem);
  }
  if (!databases.is_null()) {
    for (const auto& line : databases.at("lines").get<Texts>()) Print("{}\n", line);
  }
  Table table({"HOST", "ROLE", "SHARDS", "WRITES", "SEMI-SYNC", "LAG S", "GTID", "CONNECTIONS", "MIB"});
  for (const Json& host : hosts) {
    Texts row = {host.value("host", ""), host.value("role", ""), host.value("shards", "")};
    if (!host.contains("version")) {
      row.insert(row.end(), 6, "?");
      table.Add(std::move(row));
      continue;
    }
    std::string lag = "-";
    if (host.contains("follows")) {
      lag = host.contains("lag_s") ? std::to_string(host.at("lag_s").get<uint64_t>()) : "?";
    }
    row.insert(row.end(),
               {host.value("read_only", false) ? "no" : "yes", host.value("semi_sync", false) ? "yes" : "no",
                lag, host.value("gtid", ""), std::to_string(host.value("connections", uint64_t{0})),
                std::to_string(host.value("bytes", uint64_t{0}) >> 20)});
    table.Add(std::move(row));
  }
  table.Print();
  if (databases.is_null()) {
    Print("the hosts were not asked which databases they have: {}\n", answer.value("databases_error", ""));
    return;
  }
  if (const auto not_asked = databases.at("not_asked").get<Texts>(); !not_asked.empty()) {
    Print("not asked which databases they have, because they do not answer: {}\n",
          fmt::format("{}", fmt::join(not_asked, ", ")));
  }
  Print("the databases were compared with the maps; kv shards check compares the tables, too\n");
}

/// Throws Failure if `kv shards status` found problems.
void FailForProblems(const Json& answer) {
  // A host may be in several pairs if the maps are wrong or a move is in progress.
  std::set<std::string> hosts;
  std::set<std::string> troubled;
  for (const Json& host : answer.at("hosts")) {
    hosts.insert(host.value("host", ""));
    if (!host.at("problems").empty()) troubled.insert(host.value("host", ""));
  }
  if (!troubled.empty()) {
    throw Failure{absl::FailedPreconditionError(
        fmt::format("{} of {} hosts have problems", troubled.size(), hosts.size()))};
  }
  const Json& databases = answer.at("databases");
  if (!databases.is_null() && !databases.at("problems").empty()) {
    throw Failure{absl::FailedPreconditionError(
        fmt::format("{} databases are not as the maps say; kv shards check compares the tables, too",
                    databases.at("problems").size()))};
  }
}

/// Returns the time of day in UTC: "14:03:07".
std::string TimeOfDay() {
  const auto seconds = WallClockMs() / 1000 % 86'400;
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
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
  status->callback([status, &globals] {
    Json answer = Operate(*OpenFleet(*status, globals), {{"command", "status"}}, globals);
    if (answer.contains("by_copies")) PrintErr("{}\n", answer.at("by_copies").get<std::string>());
    if (globals.json) {
      PrintAnswer({{"hosts", answer.at("hosts")}, {"databases", answer.at("databases")}});
    } else {
      PrintStatus(answer);
    }
    FailForProblems(answer);
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
  check->callback([check, &globals] {
    Json found = Operate(*OpenFleet(*check, globals), {{"command", "check"}}, globals);
    const size_t problems = found.at("problems").size();
    if (globals.json) {
      found["ok"] = problems == 0;
      PrintJson(found);
    } else {
      for (const auto& line : found.at("lines").get<Texts>()) Print("{}\n", line);
      if (const auto not_asked = found.at("not_asked").get<Texts>(); !not_asked.empty()) {
        Print("not compared, because they do not answer: {}\n",
              fmt::format("{}", fmt::join(not_asked, ", ")));
      }
      if (problems == 0) Print("the hosts are as the maps and the catalog say\n");
    }
    if (problems != 0) {
      throw Failure{absl::FailedPreconditionError(fmt::format("{} problems", problems))};
    }
  });
}

void AddPromote(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string host;
    bool emergency = false;
    std::optional<uint64_t> accept_loss;
    uint64_t catch_up_ms = 5'000;
    bool dry_run = false;
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
  promote->add_flag("--emergency", args->emergency,
                    "The master is gone. Refused while it answers, or if acknowledged writes may be lost");
  promote->add_option("--accept-loss", args->accept_loss,
                      "With --emergency: continue although up to this number of acknowledged transactions "
                      "may be lost, or the number is not known");
  TakeDuration(promote
                   ->add_option("--catch-up", args->catch_up_ms,
                                "How long the slave may take to apply what it lacks, in ms")
                   ->check(CLI::Range(1, 3'600'000))
                   ->capture_default_str());
  promote->add_flag("--dry-run", args->dry_run, "Only inspect both hosts, and say what would be done");
  promote->footer(R"(Examples:
  kv shards promote MySQL001B --dry-run
  kv shards promote MySQL001B
  kv shards promote MySQL001B --emergency      the master is gone; docs/runbook.md)");
  promote->callback([args, promote, &globals] {
    Json command = {{"command", "promote"}, {"catch_up_ms", args->catch_up_ms}};
    command["host"] = ParseHost(args->host).ToString();
    if (args->emergency) command["emergency"] = true;
    if (args->accept_loss) command["accept_loss"] = *args->accept_loss;
    if (args->dry_run) command["dry_run"] = true;
    const Json promotion = Operate(*OpenFleet(*promote, globals), command, globals);
    if (globals.json) {
      PrintAnswer(promotion);
    } else if (!args->dry_run) {
      Print("{} is the master, {} {}\n", promotion.value("master", ""), promotion.value("slave", ""),
            promotion.value("follows", false) ? "follows it" : "does not follow it");
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
  open->callback([args, open, &globals] {
    const shardops::MoveRange range = ParseRange(args->range, ShardSpace::kId);
    Json command = {{"command", "open"}};
    AddRangeTo(command, range);
    command["master"] = ParseHost(args->master).ToString();
    command["slave"] = ParseHost(args->slave).ToString();
    if (args->dry_run) command["dry_run"] = true;
    const Json answer = Operate(*OpenFleet(*open, globals), command, globals);
    if (args->dry_run) {
      const auto problems = answer.at("problems").get<Texts>();
      for (const std::string& problem : problems) Print("{}\n", problem);
      if (!problems.empty()) throw Failure{absl::FailedPreconditionError("the hosts cannot take the shards")};
      Print("both hosts can take the shards\n");
    } else if (globals.json) {
      PrintAnswer(answer);
    } else if (answer.value("open_already", false)) {
      Print(
          "shards {}-{} are open on {} already: nothing was done, except for databases and tables that were "
          "missing there\n",
          range.first, range.last, command.value("master", ""));
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
  fence->callback([host, fence, &globals] {
    Json command = {{"command", "fence"}};
    command["host"] = ParseHost(*host).ToString();
    const Json answer = Operate(*OpenFleet(*fence, globals), command, globals);
    if (globals.json) {
      PrintAnswer(answer);
    } else {
      Print("{} takes no writes; {} connections were ended\n", *host, answer.value("ended", uint64_t{0}));
    }
  });
}

/// Returns the current problems of all hosts.
std::set<std::string> Problems(shardops::FleetOperator& fleet) {
  const auto reports = shardops::InspectFleet(fleet);
  if (!reports.ok()) return {std::string(reports.status().message())};
  std::set<std::string> problems;
  for (const shardops::HostReport& report : *reports) {
    for (const std::string& problem : report.problems)
      problems.insert(report.host.ToString() + ": " + problem);
  }
  return problems;
}

}  // namespace

bool HasOperator(const Globals& globals) {
  return !globals.config.empty() && FleetOptionsOf(globals.StoreOptions()).has_operator;
}

void WatchHosts(const Globals& globals, std::chrono::seconds interval, const absl::Notification& end) {
  const shardops::FleetOptions options = FleetOptionsOf(globals.StoreOptions());
  OrFail(options.access.status());
  shardops::FleetSession fleet(options, "", nullptr);
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
