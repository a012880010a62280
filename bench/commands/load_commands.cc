#include "cli/load_commands.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/bench_store.h"
#include "bench/child.h"
#include "bench/folder.h"
#include "bench/report.h"
#include "bench/sequences_bench.h"
#include "bench/tenants_bench.h"
#include "bench/ycsb.h"
#include "cli/load_report.h"
#include "client/connect.h"
#include "registry/open.h"

/// kv bench ycsb, sequences, and tenants.
namespace kvstore::cli {
namespace {

void AddTo(CLI::App& command, bench::LoadOptions& load, std::string& html) {
  command.add_option("--html", html, "File for the report as a page with pictures");
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

void RunSequences(const Globals& globals, const bench::SequencesOptions& options, bool served,
                  const std::string& html) {
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
  ShowLoad(report, globals.json, html);
}

void AddSequences(CLI::App& group, Globals& globals) {
  struct Arguments {
    bench::SequencesOptions options;
    std::string durability = "process";
    bool served = false;
    std::string html;
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
  AddTo(*command, args->options.load, args->html);
  command->footer("Example: kv bench sequences --peers rocksdb,redis");
  command->callback([args, &globals] {
    args->options.durability = *ParseDurability(args->durability);
    RunSequences(globals, args->options, args->served, args->html);
  });
}

void AddTenants(CLI::App& group, Globals& globals) {
  struct Arguments {
    bench::TenantsOptions options;
    bool served = false;
    std::string html;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = group.add_subcommand(
      "tenants",
      "Users of one store with different habits, first each alone and then all at once: what each loses by "
      "the others. On the store of --server or --config, else on an embedded one");
  command
      ->add_option("--tenants", args->options.tenants,
                   "feed (user sequences: nine reads of the newest 50 to one append), graph (the mix of "
                   "LinkBench), import (batches of 100 rows), scan (1000 rows); all, if none is named")
      ->delimiter(',')
      ->check(CLI::IsMember({"feed", "graph", "import", "scan"}));
  command->add_flag("--served", args->served, "Over loopback: by a server that is started for it");
  command->add_option("--users", args->options.users, "Of the feed")
      ->check(CLI::Range(100, 100'000'000))
      ->capture_default_str();
  command->add_option("--events", args->options.events, "Of the feed, to load")->capture_default_str();
  command->add_option("--rows", args->options.rows, "To load for the scans")
      ->check(CLI::Range(100, 100'000'000))
      ->capture_default_str();
  AddTo(*command, args->options.load, args->html);
  command->footer("Example: kv bench tenants --html report.html");
  command->callback([args, &globals] {
    BenchedStore store(globals, args->served);
    const bench::TenantsOptions& options = args->options;
    const auto results = OrFail(bench::BenchTenants(*store, options));
    Json report = NewReport("tenants", Where(globals, args->served), options.load);
    report["users"] = options.users;
    report["events"] = options.events;
    report["rows"] = options.rows;
    report["tenants"] = Json::array();
    for (const bench::TenantResult& result : results) {
      report["tenants"].push_back({{"tenant", result.name},
                                   {"alone", bench::ToJson(result.alone)},
                                   {"together", bench::ToJson(result.together)}});
    }
    ShowLoad(report, globals.json, args->html);
  });
}

}  // namespace

void AddLoadCommands(CLI::App& group, Globals& globals) {
  AddSequences(group, globals);
  AddTenants(group, globals);
  auto options = std::make_shared<bench::YcsbOptions>();
  CLI::App* ycsb = group.add_subcommand(
      "ycsb",
      "The core workloads A to F of YCSB; on the store of --server or --config, else on an embedded one");
  ycsb->add_option("--workloads", options->workloads, "Which, in order")->capture_default_str();
  ycsb->add_option("--records", options->records, "Of ten fields of 100 bytes")
      ->check(CLI::Range(100, 1'000'000'000))
      ->capture_default_str();
  ycsb->add_option("--dataset", options->dataset, "Made for it, and dropped")->capture_default_str();
  auto html = std::make_shared<std::string>();
  AddTo(*ycsb, options->load, *html);
  ycsb->footer("Example: kv bench ycsb --workloads AB --html report.html");
  ycsb->callback([options, html, &globals] {
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
    ShowLoad(report, globals.json, *html);
  });
}

}  // namespace kvstore::cli
