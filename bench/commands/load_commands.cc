#include "bench/commands/load_commands.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assembly/backend_config.h"
#include "bench/commands/flood_command.h"
#include "bench/commands/load_report.h"
#include "bench/harness/bench_store.h"
#include "bench/harness/child.h"
#include "bench/harness/folder.h"
#include "bench/harness/report.h"
#include "bench/rows/ycsb.h"
#include "bench/sequences/sequences_bench.h"
#include "bench/sequences/tenants_bench.h"
#include "json/json.h"
#include "kvstore_api/connect.h"
#include "kvstore_api/open.h"

/// kv bench ycsb, sequences, and tenants.
namespace kvstore::bench {

using cli::Globals;
using cli::OrFail;
using cli::WrongUsage;

namespace {

void AddTo(CLI::App& command, LoadOptions& load, std::string& html) {
  command.add_option("--html", html, "File for the report as a page with pictures");
  command.add_option("--threads", load.threads, "Clients")->check(CLI::Range(1, 1024))->capture_default_str();
  command
      .add_option("--rate", load.rate,
                  "Calls a second of all clients together, at random moments; latency counts from when a "
                  "call was due. 0: each client makes a call when the last one has ended")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command.add_option("--warm-up", load.warm_up_s, "Seconds before the first round, not counted")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command.add_option("--seconds", load.seconds, "Seconds of a round")
      ->check(CLI::Range(0.01, 86'400.0))
      ->capture_default_str();
  command.add_option("--rounds", load.rounds, "Rounds, whose median is reported")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
}

/// The store of --server, --config or --data, or otherwise an embedded one in a temporary place.
class BenchedStore {
 public:
  /// served  whether to start a server, on an embedded store in a temporary place.
  explicit BenchedStore(const Globals& globals, bool served = false) {
    if (served) {
      folder_.emplace(OrFail(Folder::Make()));
      const std::filesystem::path config = folder_->path() / "kv.json";
      // The peers have their data in memory, too.
      std::ofstream(config) << Json{{"data", (folder_->path() / "store").string()},
                                    {"cache_bytes", 256 << 20}};
      server_.emplace(OrFail(Child::Start(
          "kv", {"--config", config.string(), "serve", "--listen", "127.0.0.1:0", "--resp", "127.0.0.1:0"})));
      // "serving on ADDRESS; redis on ADDRESS"
      const std::string& line = server_->first_line();
      const std::string grpc = line.substr(0, line.find(';'));
      own_ = OrFail(Connect(grpc.substr(grpc.rfind(' ') + 1), globals.ServerConnection()));
      resp_port_ = static_cast<uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
      store_ = own_.get();
      return;
    }
    if (globals.server.empty() && globals.config.empty() && globals.data.empty()) {
      temporary_ = OrFail(BenchStore::Create(""));
      store_ = &temporary_->store();
      return;
    }
    own_ = globals.OpenStore(/*create_if_missing=*/true);
    store_ = own_.get();
  }
  KVStore& operator*() { return *store_; }
  /// Returns where the server that was started speaks the Redis protocol.
  uint16_t resp_port() const { return resp_port_; }

 private:
  std::optional<Folder> folder_;
  std::optional<Child> server_;  // in folder_
  std::unique_ptr<BenchStore> temporary_;
  std::unique_ptr<KVStore> own_;
  KVStore* store_ = nullptr;
  uint16_t resp_port_ = 0;
};

std::string Where(const Globals& globals, bool served) {
  if (!globals.server.empty() || served) return "server";
  if (!globals.config.empty()) return "as configured";
  return "embedded";
}

void RunSequences(const Globals& globals, SequencesOptions options, bool served, bool by_resp,
                  const std::string& html) {
  if (by_resp && !globals.server.empty()) {
    WrongUsage("--door resp starts a server itself; leave out --server, and unset KV_SERVER");
  }
  served = served || by_resp;
  BenchedStore store(globals, served);
  if (by_resp) options.resp_port = store.resp_port();
  const OpenOptions configured = globals.config.empty() ? OpenOptions() : globals.StoreOptions();
  const auto paths = OrFail(BenchSequences(*store, FindFleet(configured), options));
  Json report = NewLoadReport("sequences", Where(globals, served), options.load);
  report["users"] = options.users;
  report["events"] = options.events;
  report["durability"] = std::string(Name(options.durability));
  report["paths"] = Json::array();
  for (const SequencesPath& path : paths) {
    Json sides = Json::array();
    for (const SequencesSide& side : path.sides) {
      Json one = ToJson(side.rounds);
      one["store"] = side.name;
      one["promise"] = side.promise;
      one["ratio"] = side.ratio;
      sides.push_back(std::move(one));
    }
    report["paths"].push_back({{"path", path.path}, {"sides", std::move(sides)}});
  }
  ShowLoad(report, globals.json, html);
}

void AddSequences(CLI::App& group, Globals& globals) {
  struct Arguments {
    SequencesOptions options;
    std::string durability = "process";
    bool served = false;
    std::string door = "grpc";
    std::string html;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command =
      group.add_subcommand("sequences",
                           "Measure user sequences: the newest 50 events of a user and a kind, the newest 10 "
                           "of 100 users, appends; on the store of --server or --config, otherwise on an "
                           "embedded one; and on the stores that people use instead");
  command
      ->add_option("--peers", args->options.peers,
                   "rocksdb (in this process), redis (redis-server, on loopback), mariadb (a plain table "
                   "on the first server of --config)")
      ->delimiter(',')
      ->check(CLI::IsMember({"rocksdb", "redis", "mariadb"}));
  command->add_flag("--served", args->served, "Also over loopback, with a server that is started for it");
  command
      ->add_option(
          "--door", args->door,
          "How our store is called: grpc, or resp, by hiredis over the Redis protocol of a server that "
          "is started for it")
      ->check(CLI::IsMember({"grpc", "resp"}))
      ->capture_default_str();
  command->add_option("--durability", args->durability, "Durability of our store, rocksdb and redis")
      ->check(CLI::IsMember({"process", "machine"}))
      ->capture_default_str();
  command->add_option("--users", args->options.users, "Users, each with a row of events")
      ->check(CLI::Range(100, 100'000'000))
      ->capture_default_str();
  command->add_option("--events", args->options.events, "Events of 64 bytes to load")->capture_default_str();
  command->add_option("--paths", args->options.paths, "Only these paths")->delimiter(',');
  AddTo(*command, args->options.load, args->html);
  command->footer(
      "Examples:\n  kv bench sequences --peers rocksdb,redis\n  kv bench sequences --door resp --peers "
      "redis");
  command->callback([args, &globals] {
    args->options.durability = *ParseDurability(args->durability);
    RunSequences(globals, args->options, args->served, args->door == "resp", args->html);
  });
}

void AddTenants(CLI::App& group, Globals& globals) {
  struct Arguments {
    TenantsOptions options;
    bool served = false;
    FloodArguments flood;
    std::string html;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = group.add_subcommand(
      "tenants",
      "Measure tenants of one store with different habits, first each alone and then all at once, to show "
      "what each loses to the others; on the store of --server or --config, otherwise on an embedded one");
  command
      ->add_option("--tenants", args->options.tenants,
                   "feed (user sequences: nine reads of the newest 50 to one append), graph (the mix of "
                   "LinkBench), import (batches of 100 rows), scan (1000 rows); all, if none is named")
      ->delimiter(',')
      ->check(CLI::IsMember({"feed", "graph", "import", "scan"}));
  command->add_flag("--served", args->served, "Over loopback, with a server that is started for it");
  AddFloodOptions(*command, args->flood);
  command->add_option("--users", args->options.users, "Users of the feed")
      ->check(CLI::Range(100, 100'000'000))
      ->capture_default_str();
  command->add_option("--events", args->options.events, "Events of the feed to load")->capture_default_str();
  command->add_option("--rows", args->options.rows, "Rows to load for the scans")
      ->check(CLI::Range(100, 100'000'000))
      ->capture_default_str();
  AddTo(*command, args->options.load, args->html);
  command->footer("Example: kv bench tenants --html report.html");
  command->callback([args, &globals] {
    if (RunFlood(globals, args->flood, args->options.load, args->html)) return;
    BenchedStore store(globals, args->served);
    const TenantsOptions& options = args->options;
    const auto results = OrFail(BenchTenants(*store, options));
    Json report = NewLoadReport("tenants", Where(globals, args->served), options.load);
    report["users"] = options.users;
    report["events"] = options.events;
    report["rows"] = options.rows;
    report["tenants"] = Json::array();
    for (const TenantResult& result : results) {
      report["tenants"].push_back(
          {{"tenant", result.name}, {"alone", ToJson(result.alone)}, {"together", ToJson(result.together)}});
    }
    ShowLoad(report, globals.json, args->html);
  });
}

}  // namespace

void AddLoadCommands(CLI::App& group, Globals& globals) {
  AddSequences(group, globals);
  AddTenants(group, globals);
  AddChangesCommand(group, globals);
  AddSteadyCommand(group, globals);
  auto options = std::make_shared<YcsbOptions>();
  CLI::App* ycsb = group.add_subcommand("ycsb",
                                        "Run the core workloads A to F of YCSB; on the store of --server or "
                                        "--config, otherwise on an embedded one");
  ycsb->add_option("--workloads", options->workloads, "Which workloads, in order")->capture_default_str();
  ycsb->add_option("--records", options->records, "Records of ten fields of 100 bytes")
      ->check(CLI::Range(100, 1'000'000'000))
      ->capture_default_str();
  ycsb->add_option("--dataset", options->dataset, "Dataset that is created, and dropped at the end")
      ->capture_default_str();
  auto html = std::make_shared<std::string>();
  AddTo(*ycsb, options->load, *html);
  ycsb->footer("Example: kv bench ycsb --workloads AB --html report.html");
  ycsb->callback([options, html, &globals] {
    BenchedStore store(globals);
    const auto results = OrFail(BenchYcsb(*store, *options));
    Json report = NewLoadReport("ycsb", Where(globals, /*served=*/false), options->load);
    report["records"] = options->records;
    report["workloads"] = Json::array();
    for (const YcsbResult& result : results) {
      Json one = ToJson(result.rounds);
      one["workload"] = std::string(1, result.workload);
      report["workloads"].push_back(std::move(one));
    }
    ShowLoad(report, globals.json, *html);
  });
}

}  // namespace kvstore::bench
