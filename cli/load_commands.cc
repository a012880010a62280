#include "cli/load_commands.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/bench_store.h"
#include "bench/report.h"
#include "bench/ycsb.h"
#include "cli/table.h"
#include "registry/open.h"

/// kv bench ycsb.
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
  explicit BenchedStore(const Globals& globals) {
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
  std::unique_ptr<bench::BenchStore> temporary_;
  std::unique_ptr<KVStore> own_;
  KVStore* store_ = nullptr;
};

std::string Where(const Globals& globals) {
  if (!globals.server.empty()) return "server";
  if (!globals.config.empty()) return "as configured";
  return "embedded";
}

void PrintYcsb(const Json& report) {
  fmt::print("YCSB, {}, {} records of 1 KB, {} clients, {}, on {} cores, {}\n",
             report["store"].get<std::string>(), report["records"].get<uint64_t>(),
             report["threads"].get<int>(),
             report["rate"] == 0 ? "closed loop"
                                 : fmt::format("{:.0f} calls a second", report["rate"].get<double>()),
             report["cores"].get<unsigned>(), report["cpu"].get<std::string>());
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

}  // namespace

void AddLoadCommands(CLI::App& group, Globals& globals) {
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
    bench::Report machine;
    bench::DescribeMachine(machine);
    const auto results = OrFail(bench::BenchYcsb(*store, *options));
    Json report = {{"ok", true},
                   {"workload", "ycsb"},
                   {"store", Where(globals)},
                   {"records", options->records},
                   {"threads", options->load.threads},
                   {"rate", options->load.rate},
                   {"warm_up_s", options->load.warm_up_s},
                   {"seconds", options->load.seconds},
                   {"rounds", options->load.rounds},
                   {"cores", machine.cores},
                   {"cpu", machine.cpu},
                   {"workloads", Json::array()}};
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
