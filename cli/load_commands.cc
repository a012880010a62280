#include "cli/load_commands.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/bench_store.h"
#include "bench/child.h"
#include "bench/folder.h"
#include "bench/report.h"
#include "bench/sequences_bench.h"
#include "bench/ycsb.h"
#include "cli/table.h"
#include "client/connect.h"
#include "registry/open.h"

/// kv bench ycsb, and sequences.
namespace kvstore::cli {
namespace {

void AddTo(CLI::App& command, bench::LoadOptions& load) {
  command.add_option("--threads", load.threads, "Clients")->check(CLI::Range(1, 1024))->capture_default_str();
  command
      .add_option("--rate", load.rate,
                  "Calls a second of all clients together, at random moments; latency counts from when a "
                  "call was due. 0: "
                  "each client begins the next when the last has ended")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command.add_option("--warm-up", load.warm_up_s, "Seconds before the first round, not counted")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command.add_option("--seconds", load.seconds, "Of a round")
      ->check(CLI::Range(0.01, 86'400.0))
      ->capture_default_str();
  command.add_option("--rounds", load.rounds, "Their median counts")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
}

/// The store of --server, --config or --data, or else an embedded one in a temporary place.
class BenchedStore {
 public:
  /// served  By a server that is started for it, on an embedded store in a temporary place.
  explicit BenchedStore(const Globals& globals, bool served = false) {
    if (served) {
      folder_.emplace(OrFail(bench::Folder::Make()));
      server_.emplace(OrFail(bench::Child::Start(
          {"--data", (folder_->path() / "store").string(), "serve", "--listen", "127.0.0.1:0"})));
      const std::string& line = server_->first_line();
      own_ = OrFail(Connect(line.substr(line.rfind(' ') + 1), globals.ServerConnection()));
      store_ = own_.get();
      return;
    }
    if (globals.server.empty() && globals.config.empty() && globals.data.empty()) {
      temporary_ = OrFail(bench::BenchStore::Create(""));
      store_ = &temporary_->store();
      return;
    }
    own_ = globals.OpenStore(/*create_if_missing=*/true);
    store_ = own_.get();
  }
  KVStore& operator*() { return *store_; }

 private:
  std::optional<bench::Folder> folder_;
  std::optional<bench::Child> server_;  // in folder_
  std::unique_ptr<bench::BenchStore> temporary_;
  std::unique_ptr<KVStore> own_;
  KVStore* store_ = nullptr;
};

std::string Where(const Globals& globals, bool served) {
  if (!globals.server.empty() || served) return "server";
  if (!globals.config.empty()) return "as configured";
  return "embedded";
}

std::string Conditions(const Json& report) {
  return fmt::format("{}, {} clients, {}, on {} cores, {}", report["store"].get<std::string>(),
                     report["threads"].get<int>(),
                     report["rate"] == 0 ? "closed loop"
                                         : fmt::format("{:.0f} calls a second", report["rate"].get<double>()),
                     report["cores"].get<unsigned>(), report["cpu"].get<std::string>());
}

/// What all reports of loads begin with.
Json NewReport(const char* workload, std::string store, const bench::LoadOptions& load) {
  bench::Report machine;
  bench::DescribeMachine(machine);
  return {{"ok", true},
          {"workload", workload},
          {"store", std::move(store)},
          {"threads", load.threads},
          {"rate", load.rate},
          {"warm_up_s", load.warm_up_s},
          {"seconds", load.seconds},
          {"rounds", load.rounds},
          {"cores", machine.cores},
          {"cpu", machine.cpu}};
}

void PrintYcsb(const Json& report) {
  fmt::print("YCSB, {} records of 1 KB, {}\n", report["records"].get<uint64_t>(), Conditions(report));
  Table table(
      {"WORKLOAD", "OPS/S", "MIN", "MAX", "OPERATION", "COUNT", "MEAN US", "P50", "P99", "P99.9", "MAX US"});
  for (const Json& workload : report["workloads"]) {
    bool first = true;
    for (const auto& [kind, latency] : workload["operations"].items()) {
      const auto us = [&latency = latency](const char* name) {
        return fmt::format("{:.1f}", latency[name].get<double>());
      };
      const auto once = [&](const char* name) {
        return first ? fmt::format("{:.0f}", workload[name].get<double>()) : std::string();
      };
      table.Add({first ? workload["workload"].get<std::string>() : "", once("ops_s"), once("ops_s_min"),
                 once("ops_s_max"), kind, std::to_string(latency["count"].get<uint64_t>()), us("mean_us"),
                 us("p50_us"), us("p99_us"), us("p99_9_us"), us("max_us")});
      first = false;
    }
  }
  table.Print();
}

void PrintSequences(const Json& report) {
  fmt::print("user sequences, {} users, {} events, {}\n", report["users"].get<uint64_t>(),
             report["events"].get<uint64_t>(), Conditions(report));
  Table table({"PATH", "STORE", "OPS/S", "MIN", "MAX", "OURS TO IT", "P50 US", "P99", "P99.9", "MAX US"});
  std::map<std::string, std::string> promises;
  for (const Json& path : report["paths"]) {
    for (const Json& side : path["sides"]) {
      const Json& latency = side["operations"].front();
      const auto us = [&](const char* name) { return fmt::format("{:.1f}", latency[name].get<double>()); };
      const auto rate = [&](const char* name) { return fmt::format("{:.0f}", side[name].get<double>()); };
      const bool first = side == path["sides"].front();
      table.Add({first ? path["path"].get<std::string>() : "", side["store"].get<std::string>(),
                 rate("ops_s"), rate("ops_s_min"), rate("ops_s_max"),
                 first ? "" : fmt::format("{:.2f}", side["ratio"].get<double>()), us("p50_us"), us("p99_us"),
                 us("p99_9_us"), us("max_us")});
      promises[side["store"].get<std::string>()] = side["promise"].get<std::string>();
    }
  }
  table.Print();
  for (const auto& [store, promise] : promises) fmt::print("{}: {}\n", store, promise);
}

void RunSequences(const Globals& globals, const bench::SequencesOptions& options, bool served) {
  BenchedStore store(globals, served);
  const OpenOptions configured = globals.config.empty() ? OpenOptions() : globals.StoreOptions();
  const auto paths =
      OrFail(bench::BenchSequences(*store, configured.mysql ? &*configured.mysql : nullptr, options));
  Json report = NewReport("sequences", Where(globals, served), options.load);
  report["users"] = options.users;
  report["events"] = options.events;
  report["durability"] = std::string(Name(options.durability));
  report["paths"] = Json::array();
  for (const bench::SequencesPath& path : paths) {
    Json sides = Json::array();
    for (const bench::SequencesSide& side : path.sides) {
      Json one = bench::ToJson(side.rounds);
      one["store"] = side.name;
      one["promise"] = side.promise;
      one["ratio"] = side.ratio;
      sides.push_back(std::move(one));
    }
    report["paths"].push_back({{"path", path.path}, {"sides", std::move(sides)}});
  }
  if (globals.json) {
    PrintJson(report);
  } else {
    PrintSequences(report);
  }
}

void AddSequences(CLI::App& group, Globals& globals) {
  struct Arguments {
    bench::SequencesOptions options;
    std::string durability = "process";
    bool served = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = group.add_subcommand(
      "sequences",
      "User sequences: the newest 50 events of a user and a kind, the newest 10 of 100 users, appends; on "
      "the store of --server or --config, else on an embedded one; and beside it what people use instead");
  command
      ->add_option("--peers", args->options.peers,
                   "rocksdb (in this process), redis (redis-server, on loopback), mariadb (a plain table "
                   "on the first server of --config)")
      ->delimiter(',')
      ->check(CLI::IsMember({"rocksdb", "redis", "mariadb"}));
  command->add_flag("--served", args->served, "Over loopback too: by a server that is started for it");
  command->add_option("--durability", args->durability, "Of ours, rocksdb and redis")
      ->check(CLI::IsMember({"process", "machine"}))
      ->capture_default_str();
  command->add_option("--users", args->options.users)
      ->check(CLI::Range(100, 100'000'000))
      ->capture_default_str();
  command->add_option("--events", args->options.events, "Of 64 bytes, to load")->capture_default_str();
  command->add_option("--paths", args->options.paths, "Only these")->delimiter(',');
  AddTo(*command, args->options.load);
  command->callback([args, &globals] {
    args->options.durability = *ParseDurability(args->durability);
    RunSequences(globals, args->options, args->served);
  });
}

}  // namespace

void AddLoadCommands(CLI::App& group, Globals& globals) {
  AddSequences(group, globals);
  auto options = std::make_shared<bench::YcsbOptions>();
  CLI::App* ycsb = group.add_subcommand(
      "ycsb",
      "The core workloads A to F of YCSB; on the store of --server or --config, else on an embedded one");
  ycsb->add_option("--workloads", options->workloads, "Which, in order")->capture_default_str();
  ycsb->add_option("--records", options->records, "Of ten fields of 100 bytes")
      ->check(CLI::Range(100, 1'000'000'000))
      ->capture_default_str();
  ycsb->add_option("--dataset", options->dataset, "Made for it, and dropped")->capture_default_str();
  AddTo(*ycsb, options->load);
  ycsb->callback([options, &globals] {
    BenchedStore store(globals);
    const auto results = OrFail(bench::BenchYcsb(*store, *options));
    Json report = NewReport("ycsb", Where(globals, /*served=*/false), options->load);
    report["records"] = options->records;
    report["workloads"] = Json::array();
    for (const bench::YcsbResult& result : results) {
      Json one = bench::ToJson(result.rounds);
      one["workload"] = std::string(1, result.workload);
      report["workloads"].push_back(std::move(one));
    }
    if (globals.json) {
      PrintJson(report);
    } else {
      PrintYcsb(report);
    }
  });
}

}  // namespace kvstore::cli
