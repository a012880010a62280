#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/end_in_time.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/operate_checks.h"
#include "cli/shard_arguments.h"
#include "cli/shard_operator.h"
#include "cli/stop_signals.h"
#include "cli/table.h"
#include "operate/orchestrator.h"
#include "operate/switch.h"
#include "server/call/metrics.h"
#include "server/call/process_metrics.h"
#include "server/http/http.h"

/// kv operate: looks after a fleet of MySQL servers; and what people say to the processes that do, and hear
/// from them.
namespace kvstore::cli {
namespace {

using operate::Event;
using operate::Orchestrator;
using operate::PairRecords;

/// The time that a statement to a host that hangs, and a few calls of ZooKeeper, may take.
constexpr std::chrono::seconds kToStop{20};

/// The configuration of a fleet with an operator's login. Throws Failure, and as WrongUsage.
Config FleetConfig(const Globals& globals) {
  if (globals.config.empty()) {
    WrongUsage(
        "--config is missing: name the configuration of the fleet with --config FILE, or in KV_CONFIG");
  }
  Config config = globals.ReadConfiguration();
  OrFail(FleetOptionsOf(config.store).access.status());
  return config;
}

void Run(const Config& config, bool dry_run, bool verbose) {
  spdlog::set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  EndInTime end;
  StopSignals signals([&end](int) {
    end.Begin(kToStop, [](const std::string& left) {
      spdlog::error("{} s are over, and this has not ended: {}; the process ends without it", kToStop.count(),
                    left);
      spdlog::default_logger()->flush();
    });
  });
  end.SetWaitingFor([] { return std::string("a look at the fleet, or what it led to"); });
  Orchestrator orchestrator({.fleet = FleetOptionsOf(config.store),
                             .options = config.operate,
                             .dry_run = dry_run,
                             .who = ProcessName(),
                             .checks = [&] {
                               auto checks = operate::FleetChecks(FleetOptionsOf(config.store));
                               for (auto& check : StoreChecks(config, dry_run))
                                 checks.push_back(std::move(check));
                               return checks;
                             }()});
  const server::Metrics metrics({}, [&orchestrator](MetricsSink& sink) {
    orchestrator.Describe(sink);
    server::DescribeProcess(sink);
  });
  std::unique_ptr<server::HttpServer> http;
  std::string where;
  if (!config.operate.http.empty()) {
    http = OrFail(server::HttpServer::Start(
        config.operate.http,
        {.metrics = [&metrics] { return metrics.Text(); }, .ready = [&] { return orchestrator.ready(); }}));
    where = fmt::format("; http on port {}", http->port());
  }
  if (const absl::Status said = TryOut(
          Printable(fmt::format("operating the fleet at {}{}\n", FleetOptionsOf(config.store).root, where),
                    Lines::kMany));
      !said.ok()) {
    spdlog::warn("{}", std::string(said.message()));
  }
  std::thread stopper([&] {
    signals.Wait();
    orchestrator.Stop();
  });
  orchestrator.Run();
  stopper.join();
  end.Done();
  spdlog::info("stopped");
}

/// The pair of each host that was named, or all pairs. Throws Failure.
std::vector<shardops::Pair> PairsOf(shardops::FleetOperator& fleet, const std::vector<std::string>& hosts,
                                    bool all) {
  const auto maps = OrFail(shardops::Maps::Load(fleet.zookeeper, fleet.root));
  if (all) return maps.Pairs();
  std::vector<shardops::Pair> pairs;
  for (const std::string& host : hosts) pairs.push_back(OrFail(operate::FindPair(maps, ParseHost(host))));
  return pairs;
}

void AddSwitch(CLI::App& group, Globals& globals, bool on) {
  struct Arguments {
    std::vector<std::string> hosts;
    bool all = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = group.add_subcommand(
      on ? "on" : "off",
      on ? "Let kv operate promote the slaves of pairs by itself; refused for pairs with problems"
         : "Leave the promotion of slaves of pairs to people");
  command->add_option("host", args->hosts, "A host of each pair")->type_name("HOST");
  command->add_flag("--all", args->all, "All pairs of the shard maps");
  command->footer(
      on ? R"(Each host of a pair must be without problems (kv shards status), must come back read-only when it is started again
(read_only = 1 in its configuration), and its master must acknowledge no commit without its slave.

Examples:
  kv operate on MySQL001A
  kv operate on --all

Exit codes: 0 all of them are on; 1 one is not, and the message says why; 2 wrong usage.)"
         : "Example: kv operate off MySQL001A");
  command->callback([args, on, &globals] {
    if (args->all == !args->hosts.empty()) WrongUsage("name a host of each pair, or give --all");
    FleetConfig(globals);
    const auto session = OpenConfiguredFleet(globals);
    shardops::FleetOperator& fleet = **session;
    PairRecords records(fleet.zookeeper, fleet.root);
    absl::Status failed;
    for (const shardops::Pair& pair : PairsOf(fleet, args->hosts, args->all)) {
      const absl::Status switched =
          on ? operate::SwitchOn(fleet, records, pair) : operate::SwitchOff(fleet, records, pair);
      if (!switched.ok()) {
        if (!failed.ok()) PrintError(failed, globals.json);
        failed = switched;
      } else if (!globals.json) {
        Print("{}: {}\n", PairRecords::NameOf(pair), on ? "on" : "off");
      }
    }
    OrFail(failed);
    if (globals.json) PrintJson({{"ok", true}});
  });
}

std::string PromotionText(const Json& pair) {
  const auto last = pair.find("promoted");
  if (last == pair.end()) return "-";
  return fmt::format("{} for {}, {}{}", last->at("to").get<std::string>(),
                     last->at("from").get<std::string>(), UtcText(last->at("begun_ms").get<uint64_t>()),
                     last->at("done").get<bool>() ? "" : ", not completed");
}

/// status  The answer of "operate_status" (operate/commands.h).
void PrintStatus(const Json& status) {
  Table members({"PROCESS", "ROLE", "LAST HEARD OF"});
  for (const Json& member : status.at("members")) {
    members.Add({member.at("who").get<std::string>(), member.at("leads").get<bool>() ? "leads" : "watches",
                 UtcText(member.at("said_ms").get<uint64_t>())});
  }
  members.Print();
  if (!status.at("pairs").empty()) {
    Table pairs({"PAIR", "KV OPERATE", "SINCE", "BY", "LAST PROMOTION"});
    for (const Json& pair : status.at("pairs")) {
      const auto name = pair.at("pair").get<std::string>();
      if (pair.contains("problem")) {
        pairs.Add({name, "?", "-", "-", pair.at("problem").get<std::string>()});
        continue;
      }
      pairs.Add({name, pair.at("on").get<bool>() ? "on" : "off", UtcText(pair.at("since_ms").get<uint64_t>()),
                 pair.at("by").get<std::string>(), PromotionText(pair)});
    }
    pairs.Print();
  }
  for (const Json& alarm : status.at("alarms")) {
    const auto page = alarm.at("page").get<std::string>();
    Print("{} since {}: {}{}\n", alarm.at("subject").get<std::string>(),
          UtcText(alarm.at("since_ms").get<uint64_t>()), alarm.at("text").get<std::string>(),
          page.empty() ? "" : fmt::format(" (docs/{})", page));
  }
  if (status.at("alarms").empty()) Print("no alarm\n");
}

bool HasLeader(const Json& status) {
  const Json& members = status.at("members");
  return std::any_of(members.begin(), members.end(),
                     [](const Json& member) { return member.at("leads").get<bool>(); });
}

void AddStatus(CLI::App& group, Globals& globals) {
  CLI::App* status = group.add_subcommand(
      "status",
      "Show the processes of kv operate, the pairs that were ever switched on, and what is wrong now");
  status->footer(R"(Exit codes: 0 all is well; 1 there is an alarm, or no process leads; 2 wrong usage.

Examples:
  kv operate status
  kv --server ops1:7400 operate status)");
  globals.without_server[status] = "";
  status->callback([status, &globals] {
    const Json answer = Operate(*OpenFleet(*status, globals), {{"command", "operate_status"}}, globals);
    if (globals.json) {
      PrintAnswer(answer);
    } else {
      PrintStatus(answer);
    }
    if (!HasLeader(answer)) {
      throw Failure{
          absl::FailedPreconditionError("no process of kv operate leads: start kv operate on two machines or "
                                        "more; alarms are those of the last one")};
    }
    if (const size_t alarms = answer.at("alarms").size(); alarms > 0) {
      throw Failure{absl::FailedPreconditionError(fmt::format("{} alarm{}", alarms, alarms == 1 ? "" : "s"))};
    }
  });
}

void AddJournal(CLI::App& group, Globals& globals) {
  CLI::App* journal = group.add_subcommand(
      "journal", "Show what kv operate has done, refused and told people, oldest first: the last 200 events");
  journal->footer(R"(Examples:
  kv operate journal
  kv --server ops1:7400 operate journal)");
  globals.without_server[journal] = "";
  journal->callback([journal, &globals] {
    const Json answer = Operate(*OpenFleet(*journal, globals), {{"command", "operate_journal"}}, globals);
    if (globals.json) return PrintAnswer(answer);
    for (const Json& one : answer.at("events")) {
      const Event event = operate::EventFromJson(one);
      Print("{} {:<6} {}: {} [{}]\n", UtcText(event.at_ms), event.kind, event.subject, event.text, event.by);
    }
  });
}

}  // namespace

void AddOperateCommands(CLI::App& app, Globals& globals) {
  struct Arguments {
    bool dry_run = false;
    std::string http;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* group = app.add_subcommand(
      "operate",
      "Look after a fleet of MySQL servers until SIGTERM or SIGINT: put slaves in the place of dead masters, "
      "have "
      "hosts that come back take their place, purge, and say what is wrong; docs/operate.md");
  group->require_subcommand(0, 1);
  group->add_flag("--dry-run", args->dry_run, "Change nothing; say what would be done");
  group->add_option("--http", args->http, "host:port of /metrics, /healthz and /readyz")->type_name("ADDR");
  AddStatus(*group, globals);
  AddSwitch(*group, globals, /*on=*/true);
  AddSwitch(*group, globals, /*on=*/false);
  AddJournal(*group, globals);
  group->footer(
      R"(Run it on two machines or more: one of the processes leads and acts, the others confirm that a master is dead, and one
of them takes the lead when the leader is gone. A slave is promoted only in pairs for which that is on (kv operate on),
and only if no acknowledged write is lost. The configuration is an operator's; its "operate" (docs/configuration.md)
names a webhook, a program that fences hosts, and a journal.

Examples:
  kv --config /etc/kvstore/operator.json operate
  kv --config /etc/kvstore/operator.json operate --dry-run
  kv --config /etc/kvstore/operator.json operate on --all
  kv --config /etc/kvstore/operator.json operate status)");
  globals.without_server[group] =
      "this command works on the fleet's hosts and ZooKeeper itself; name the operator's configuration with "
      "--config "
      "FILE, or in KV_CONFIG";
  group->callback([args, group, &globals] {
    if (!group->get_subcommands().empty()) return;
    Config config = FleetConfig(globals);
    if (!args->http.empty()) config.operate.http = args->http;
    Run(config, args->dry_run, globals.verbose);
  });
}

}  // namespace kvstore::cli
