#include "bench/commands/flood_command.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "bench/commands/load_report.h"
#include "bench/harness/child.h"
#include "bench/harness/cores.h"
#include "bench/harness/folder.h"
#include "bench/harness/report.h"
#include "bench/sequences/flood_bench.h"
#include "json/json.h"
#include "kvstore_api/connect.h"

/// kv bench tenants --flood.
namespace kvstore::bench {

using cli::Globals;
using cli::OrFail;
using cli::WrongUsage;

namespace {

/// A server on an embedded store in a temporary place, and connections of callers whom it tells apart.
class ManyCallers {
 public:
  /// limit  Calls a second of the first of them; 0: none of them has a limit.
  /// apart  The server gets one half of the cores, and this process, with what it starts later, the other.
  ManyCallers(int callers, uint64_t limit, bool apart) {
    Json tokens = Json::array();
    for (int i = 0; i < callers; ++i) {
      std::vector<std::string> command = {"--json",  "token", fmt::format("caller{}", i),
                                          "--right", "*",     "admin"};
      if (i == 0 && limit > 0) {
        command.insert(command.end(), {"--limit", "calls_per_s", std::to_string(limit)});
      }
      const Child made = OrFail(Child::Start("kv", command));
      const Json answer = OrFail(ParseJson(made.first_line()));
      secrets_.push_back(answer["token"].get<std::string>());
      tokens.push_back(answer["entry"]);
    }
    const std::filesystem::path file = folder_.path() / "tokens.json";
    const std::filesystem::path config = folder_.path() / "kv.json";
    std::ofstream(file) << Json{{"tokens", tokens}};
    std::ofstream(config) << Json{{"data", (folder_.path() / "store").string()},
                                  // A log would be part of what is measured, and of what is printed.
                                  {"server", {{"tokens", file.string()}, {"slow_ms", 0}}}};
    const std::vector<int> cores = apart ? AllowedCores() : std::vector<int>();
    const size_t half = cores.size() / 2;
    if (half > 0) OrFail(RunOn({cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(half)}));
    server_.emplace(
        OrFail(Child::Start("kv", {"--config", config.string(), "serve", "--listen", "127.0.0.1:0"})));
    const std::string& line = server_->first_line();
    address_ = line.substr(line.rfind(' ') + 1);
    if (half > 0) OrFail(RunOn({cores.begin() + static_cast<std::ptrdiff_t>(half), cores.end()}));
    for (const std::string& secret : secrets_) {
      stores_.push_back(OrFail(Connect(address_, {.token = secret})));
    }
  }
  const std::vector<std::unique_ptr<KVStore>>& stores() const { return stores_; }
  const std::string& address() const { return address_; }
  const std::string& first_secret() const { return secrets_.front(); }

 private:
  const Folder folder_ = OrFail(Folder::Make());
  std::vector<std::string> secrets_;
  std::optional<Child> server_;  // in folder_
  std::string address_;
  std::vector<std::unique_ptr<KVStore>> stores_;
};

}  // namespace

void AddFloodOptions(CLI::App& command, FloodArguments& arguments) {
  command
      .add_option(
          "--flood", arguments.threads,
          "Instead, four callers of one server with tokens of their own, all reading small rows: what "
          "three of them keep when the first has so many threads, and not --threads as each of them")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--limit", arguments.limit,
                  "With --flood: the limit of the first caller, in calls a second")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}));
  command.add_flag(
      "--elsewhere", arguments.elsewhere,
      "With --flood: as if clients were on other machines: the server has one half of the cores, the clients "
      "the other, and the first caller is a process of its own, which has what the other clients leave of "
      "theirs (SCHED_IDLE); --rate is that of the three others together, and should leave it enough");
}

bool RunFlood(const Globals& globals, const FloodArguments& arguments, const LoadOptions& load,
              const std::string& html) {
  if (arguments.threads == 0) {
    if (arguments.limit > 0) WrongUsage("--limit needs --flood");
    if (arguments.elsewhere) WrongUsage("--elsewhere needs --flood");
    return false;
  }
  constexpr int kCallers = 4;
  Json report = NewLoadReport("flood", "server", load);
  const ManyCallers callers(kCallers, arguments.limit, arguments.elsewhere);
  std::optional<FloodingProcess> elsewhere;
  if (arguments.elsewhere) {
    elsewhere.emplace(OrFail(FloodingProcess::Start(callers.address(), callers.first_secret())));
  }
  const FloodResult result =
      OrFail(BenchFlood(callers.stores(), {.flood_threads = arguments.threads, .load = load},
                        elsewhere ? &*elsewhere : nullptr));
  report["callers"] = kCallers;
  report["flood_threads"] = arguments.threads;
  report["limit"] = arguments.limit;
  report["elsewhere"] = arguments.elsewhere;
  report["kept"] = result.kept;
  // Without a rate all of them want all that they can get: three quarters of it are the others' share.
  if (load.rate == 0) {
    const double all = result.others.equal["ops_s"].get<double>() + result.first.equal["ops_s"].get<double>();
    const double share = all * (kCallers - 1) / kCallers;
    report["kept_of_share"] = result.others.flooded["ops_s"].get<double>() / share;
  }
  report["tenants"] = Json::array();
  for (const auto& [name, caller] :
       {std::pair("others", &result.others), std::pair("flood", &result.first)}) {
    report["tenants"].push_back({{"tenant", name}, {"alone", caller->equal}, {"together", caller->flooded}});
  }
  ShowLoad(report, globals.json, html);
  return true;
}

void AddFloodingProcess(CLI::App& group) {
  group.add_subcommand("flooding-process", "The caller who floods, for kv bench tenants --flood --elsewhere")
      ->group("")
      ->callback([] { RunFloodingProcess(std::cin, std::cout); });
}

}  // namespace kvstore::bench
