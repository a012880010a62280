#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/commands/load_commands.h"
#include "bench/harness/bench_store.h"
#include "bench/harness/report.h"
#include "bench/rows/changes_bench.h"
#include "cli/escape.h"
#include "cli/table.h"

/// kv bench changes.
namespace kvstore::bench {

using cli::Globals;
using cli::OrFail;

namespace {

double Milliseconds(const Histogram& delay, double share) {
  return static_cast<double>(delay.Quantile(share)) / 1e6;
}

void ShowChanges(const ChangesResult& result, bool json) {
  Report machine;
  DescribeMachine(machine);
  if (json) {
    return cli::PrintJson({{"ok", true},
                           {"workload", "changes"},
                           {"cores", machine.cores},
                           {"cpu", machine.cpu},
                           {"plain", ToJson(result.plain)},
                           {"kept", ToJson(result.kept)},
                           {"followed", ToJson(result.followed)},
                           {"kept_ratio", result.kept_ratio},
                           {"followed_ratio", result.followed_ratio},
                           {"delay_ms",
                            {{"p50", Milliseconds(result.delay, 0.5)},
                             {"p99", Milliseconds(result.delay, 0.99)},
                             {"max", static_cast<double>(result.delay.max()) / 1e6},
                             {"count", result.delay.count()}}}});
  }
  cli::Print("appends, on {} cores, {}\n", machine.cores, machine.cpu);
  cli::Table table({"DATASET", "OPS/S", "OF PLAIN", "P50 US", "P99"});
  const auto add = [&](const char* name, const std::vector<LoadRound>& rounds, double ratio) {
    const Json load = ToJson(rounds);
    const Json& latency = load["operations"].front();
    table.Add({name, fmt::format("{:.0f}", load["ops_s"].get<double>()), fmt::format("{:.2f}", ratio),
               fmt::format("{:.1f}", latency["p50_us"].get<double>()),
               fmt::format("{:.1f}", latency["p99_us"].get<double>())});
  };
  add("plain", result.plain, 1);
  add("keeps changes", result.kept, result.kept_ratio);
  add("is followed", result.followed, result.followed_ratio);
  table.Print();
  cli::Print("a change is read after {:.0f} ms (p50), {:.0f} ms (p99), at most {:.0f} ms; of {}\n",
             Milliseconds(result.delay, 0.5), Milliseconds(result.delay, 0.99),
             static_cast<double>(result.delay.max()) / 1e6, result.delay.count());
}

}  // namespace

void AddChangesCommand(CLI::App& group, Globals& globals) {
  auto options = std::make_shared<ChangesOptions>();
  CLI::App* command = group.add_subcommand(
      "changes",
      "Measure appends to a dataset that keeps no changes, to one that keeps them, and to one that somebody "
      "follows; and how late a follower has a change; on the store of --server, otherwise on an embedded "
      "one");
  command->add_option("--threads", options->load.threads, "Clients")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--seconds", options->load.seconds, "Seconds of a round")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  command->add_option("--rounds", options->load.rounds, "Rounds, whose median is reported")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--delay-rate", options->delay_rate, "Appends a second while the delay is measured")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  command->footer("Example: kv bench changes --rounds 9");
  command->callback([options, &globals] {
    if (!globals.server.empty()) {
      const auto store = globals.OpenStore(/*create_if_missing=*/false);
      return ShowChanges(OrFail(BenchChanges(*store, *options)), globals.json);
    }
    const auto store = OrFail(BenchStore::Create(globals.data));
    ShowChanges(OrFail(BenchChanges(store->store(), *options)), globals.json);
  });
}

}  // namespace kvstore::bench
