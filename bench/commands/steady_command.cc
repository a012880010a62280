#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/commands/load_commands.h"
#include "bench/rows/steady_bench.h"
#include "bench/rows/steady_page.h"
#include "cli/amounts.h"
#include "cli/escape.h"
#include "cli/table.h"

/// kv bench steady.
namespace kvstore::bench {

using cli::Globals;
using cli::OrFail;
using cli::PrintErr;
using cli::PrintJson;
using cli::Table;
using cli::TakeDuration;

namespace {

void Print(const SteadyReport& report) {
  Table table({"WORKLOAD", "MINUTE", "CALLS/S", "P50 US", "P99 US", "P99.9 US", "MAX US", "PAUSE MS",
               "MEMORY MIB", "LOGS MIB", "FILES", "DISK MIB"});
  for (const SteadyWorkload& workload : report.workloads) {
    for (size_t i = 0; i < workload.minutes.size(); ++i) {
      const SteadyMinute& minute = workload.minutes[i];
      const auto number = [](double value) { return fmt::format("{:.0f}", value); };
      table.Add({std::string(1, workload.workload), std::to_string(i + 1), number(minute.calls_s),
                 fmt::format("{:.1f}", minute.us.p50), number(minute.us.p99), number(minute.us.p99_9),
                 number(minute.us.max), number(minute.pause_ms), std::to_string(minute.resident_bytes >> 20),
                 std::to_string(minute.wal_bytes >> 20), std::to_string(minute.files),
                 std::to_string(minute.disk_bytes >> 20)});
    }
  }
  table.Print();
}

}  // namespace

void AddSteadyCommand(CLI::App& group, Globals& globals) {
  struct Arguments {
    SteadyOptions options;
    std::string page;
  };
  auto args = std::make_shared<Arguments>();
  SteadyOptions& options = args->options;
  CLI::App* command =
      group.add_subcommand("steady",
                           "Run an embedded store under YCSB's load at a share of the highest rate that it "
                           "can do, with deletes, rows that expire and compactions; reports latencies, the "
                           "longest pause, memory, logs and files by the minute");
  command->add_option("--workloads", options.workloads, "Workloads of YCSB, in order")->capture_default_str();
  command->add_option("--minutes", options.minutes, "Minutes of all workloads together")
      ->check(CLI::Range(0.01, 10'000.0))
      ->capture_default_str();
  command->add_option("--records", options.records, "Records of ten fields of 100 bytes to load")
      ->check(CLI::Range(1000, 1'000'000'000))
      ->capture_default_str();
  command->add_option("--threads", options.threads, "Threads that call")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--share", options.share, "Share of the highest rate that the store can do")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  command->add_option("--top-seconds", options.top_s, "How many seconds the highest rate is measured")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  TakeDuration(command->add_option("--compact-every", options.compact_ms, "Time between two compactions"));
  TakeDuration(command->add_option("--ttl", options.ttl_ms, "Time to live of the rows that expire"));
  command->add_option("--page", args->page,
                      "File for the report as a page of Markdown; its pictures are written beside it");
  command->footer(
      "Example: kv bench steady --minutes 60 --page steady.md\n\n"
      "With the default --records the run takes about 4 GB of disk, in --data if given; the files are "
      "removed at the end.");
  command->callback([args, &globals] {
    args->options.dir = globals.data;
    const auto tell = [&](const SteadyReport& report, const std::string& what) {
      PrintErr("{}\n", what);
      // Prints intermediate results, for people who wait, and in case it is ended early.
      if (!args->page.empty()) OrFail(WritePage(report, args->page));
    };
    const auto report = OrFail(BenchSteady(args->options, tell));
    if (globals.json) {
      PrintJson(ToJson(report));
    } else {
      Print(report);
    }
  });
}

}  // namespace kvstore::bench
