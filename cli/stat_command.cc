#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/prometheus_text.h"
#include "cli/table.h"
#include "client/client.h"

/// kv stat: shows the figures of a server's /metrics to people.
namespace kvstore::cli {
namespace {

using Labels = std::map<std::string, std::string>;

/// The calls of one operation on one backend, by all doors, since some time before.
struct Calls {
  double count = 0;
  double seconds = 0;
  double errors = 0;
  std::map<double, double> buckets;  // number of calls that took at most so many seconds
};

std::map<std::pair<std::string, std::string>, Calls> CallsOf(const std::vector<Sample>& samples) {
  std::map<std::pair<std::string, std::string>, Calls> all;
  for (const Sample& sample : samples) {
    if (!sample.name.starts_with("kvstore_call_")) continue;
    Calls& calls = all[{sample.Label("operation"), sample.Label("backend")}];
    // There is a sample for each door that calls came by.
    if (sample.name == "kvstore_call_seconds_count") calls.count += sample.value;
    if (sample.name == "kvstore_call_seconds_sum") calls.seconds += sample.value;
    if (sample.name == "kvstore_call_errors_total") calls.errors += sample.value;
    if (sample.name == "kvstore_call_seconds_bucket") {
      const std::string bound = sample.Label("le");
      calls.buckets[bound == "+Inf" ? 1e9 : std::stod(bound)] += sample.value;
    }
  }
  return all;
}

Calls Minus(Calls after, const Calls& before) {
  after.count -= before.count;
  after.seconds -= before.seconds;
  after.errors -= before.errors;
  for (auto& [bound, count] : after.buckets) {
    const auto found = before.buckets.find(bound);
    if (found != before.buckets.end()) count -= found->second;
  }
  return after;
}

/// Returns the bound below which this share of the calls lies.
std::string Quantile(const Calls& calls, double share) {
  for (const auto& [bound, count] : calls.buckets) {
    if (count < share * calls.count) continue;
    return bound > 1e6 ? "> 10 s" : fmt::format("< {:g} ms", bound * 1e3);
  }
  return "-";
}

void PrintCalls(const std::vector<Sample>& before, const std::vector<Sample>& after, double seconds) {
  const auto old = CallsOf(before);
  Table table({"OPERATION", "BACKEND", "CALLS/S", "ERRORS/S", "MEAN MS", "P50", "P99"});
  for (const auto& [key, calls] : CallsOf(after)) {
    const auto found = old.find(key);
    const Calls now = found == old.end() ? calls : Minus(calls, found->second);
    if (now.count == 0) continue;
    table.Add({key.first, key.second.empty() ? "-" : key.second, fmt::format("{:.1f}", now.count / seconds),
               fmt::format("{:.1f}", now.errors / seconds),
               fmt::format("{:.3f}", now.seconds / now.count * 1e3), Quantile(now, 0.5),
               Quantile(now, 0.99)});
  }
  table.Print();
}

/// Prints all figures that are not by operation, one line each; counters as rates.
void PrintOthers(const std::vector<Sample>& before, const std::vector<Sample>& after, double seconds) {
  std::map<std::string, double> old;
  for (const Sample& sample : before) old[sample.Text()] = sample.value;
  Table table({"FIGURE", "VALUE"});
  for (const Sample& sample : after) {
    // Figures by operation are in the table of calls.
    if (!sample.Label("operation").empty()) continue;
    if (sample.name.ends_with("_total")) {
      const auto found = old.find(sample.Text());
      const double since = found == old.end() ? sample.value : sample.value - found->second;
      table.Add({sample.Text(), fmt::format("{:.1f}/s ({:.0f} in all)", since / seconds, sample.value)});
    } else {
      table.Add({sample.Text(), fmt::format("{:.0f}", sample.value)});
    }
  }
  table.Print();
}

struct Arguments {
  uint32_t interval_s = 2;
  bool once = false;
};

void Stat(const Arguments& args, const Globals& globals) {
  if (globals.server.empty()) {
    WrongUsage("--server is missing: name the server whose figures you want to see, or set KV_SERVER");
  }
  const auto client = OrFail(client::Client::Open(globals.server, globals.ServerConnection()));
  std::optional<std::vector<Sample>> before;
  auto read_at = std::chrono::steady_clock::now();
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const std::string text = OrFail(client->GetMetrics());
    if (globals.json) {
      Json figures = Json::object();
      for (const Sample& sample : ParsePrometheus(text)) figures[sample.Text()] = sample.value;
      PrintJson({{"ok", true}, {"figures", std::move(figures)}});
      if (args.once) return;
    } else {
      std::vector<Sample> after = ParsePrometheus(text);
      const auto now = std::chrono::steady_clock::now();
      const double seconds = std::chrono::duration<double>(now - read_at).count();
      read_at = now;
      if (before) {
        if (terminal && !args.once) WriteOut("\033[H\033[J");
        PrintCalls(*before, after, seconds);
        Print("\n");
        PrintOthers(*before, after, seconds);
        if (args.once) return;
      }
      before = std::move(after);
    }
    FlushOut();
    std::this_thread::sleep_for(std::chrono::seconds(args.interval_s));
  }
}

}  // namespace

void AddStatCommand(CLI::App& app, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* stat = app.add_subcommand(
      "stat", "Show continuously what a server does: its calls, and the figures of its parts");
  stat->add_option("--interval", args->interval_s, "Seconds between two updates")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  stat->add_flag("--once", args->once, "Show one interval, then exit");
  stat->footer(
      R"(docs/operations.md says what the figures mean, and when to act. /metrics has the same for Prometheus.

Example:
  kv --server 127.0.0.1:7400 stat)");
  stat->callback([args, &globals] { Stat(*args, globals); });
}

}  // namespace kvstore::cli
