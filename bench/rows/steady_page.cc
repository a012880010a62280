#include "bench/rows/steady_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "charts/line_chart.h"

namespace kvstore::bench {
namespace {

using charts::LineChart;

double MiB(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// Formats a time with three significant digits at most.
std::string Time(double us) {
  if (us < 1000) return fmt::format("{:.3g} us", us);
  if (us < 1e6) return fmt::format("{:.3g} ms", us / 1e3);
  return fmt::format("{:.3g} s", us / 1e6);
}

std::string LatencyCells(const SteadyLatencies& us) {
  return fmt::format("{} | {} | {} | {}", Time(us.p50), Time(us.p99), Time(us.p99_9), Time(us.max));
}

/// Returns whether an operator's compaction ran in that minute.
bool Compacted(const SteadyWorkload& workload, size_t minute) {
  const double begin = static_cast<double>(minute) * 60;
  return std::any_of(
      workload.compactions.begin(), workload.compactions.end(),
      [&](const SteadyCompaction& one) { return one.end_s > begin && one.begin_s < begin + 60; });
}

LineChart NewChart(const SteadyReport& report, std::string title, std::string unit) {
  LineChart chart{
      .title = std::move(title), .unit = std::move(unit), .axis = "minutes", .band_name = "compaction"};
  double from = 0;
  for (const SteadyWorkload& workload : report.workloads) {
    chart.phases.push_back({from, fmt::format("{}: {:.0f} calls/s", workload.workload, workload.rate)});
    for (const SteadyCompaction& one : workload.compactions) {
      chart.bands.push_back({from + one.begin_s / 60, from + one.end_s / 60});
    }
    from += static_cast<double>(workload.minutes.size());
  }
  chart.end = std::max(from, 1.0);
  const double step = std::max(std::floor(chart.end / 12), 1.0);
  for (int mark = 0; mark * step <= chart.end; ++mark) {
    chart.marks.push_back({mark * step, fmt::format("{:.0f}", mark * step)});
  }
  return chart;
}

/// figure  returns the value of a minute in the chart's unit.
template <typename Figure>
LineChart::Line LineOf(const SteadyReport& report, std::string name, Figure figure) {
  LineChart::Line line{.name = std::move(name), .points = {}};
  double minute = 0.5;
  for (const SteadyWorkload& workload : report.workloads) {
    for (const SteadyMinute& one : workload.minutes) line.points.push_back({minute++, figure(one)});
  }
  return line;
}

LineChart Latencies(const SteadyReport& report) {
  LineChart chart = NewChart(report, "Latency, by minute", "ms");
  chart.logarithmic = true;
  chart.lines = {LineOf(report, "p50", [](const SteadyMinute& one) { return one.us.p50 / 1000; }),
                 LineOf(report, "p99", [](const SteadyMinute& one) { return one.us.p99 / 1000; }),
                 LineOf(report, "p99.9", [](const SteadyMinute& one) { return one.us.p99_9 / 1000; }),
                 LineOf(report, "longest pause", [](const SteadyMinute& one) { return one.pause_ms; }),
                 LineOf(report, "a sleeper's", [](const SteadyMinute& one) { return one.overslept_ms; })};
  return chart;
}

LineChart Memory(const SteadyReport& report) {
  LineChart chart = NewChart(report, "Resident memory, and logs", "MiB");
  chart.lines = {LineOf(report, "memory", [](const SteadyMinute& one) { return MiB(one.resident_bytes); }),
                 LineOf(report, "logs", [](const SteadyMinute& one) { return MiB(one.wal_bytes); })};
  return chart;
}

LineChart Disk(const SteadyReport& report) {
  LineChart chart = NewChart(report, "On disk, logs included", "MiB");
  chart.lines = {LineOf(report, "disk", [](const SteadyMinute& one) { return MiB(one.disk_bytes); })};
  return chart;
}

LineChart Files(const SteadyReport& report) {
  LineChart chart = NewChart(report, "Files", "");
  chart.lines = {
      LineOf(report, "files", [](const SteadyMinute& one) { return static_cast<double>(one.files); })};
  return chart;
}

std::string Introduction(const SteadyReport& report) {
  const SteadyOptions& options = report.options;
  return fmt::format(
      "{} million records of ten fields of 100 bytes and a block cache of {:.0f} MiB, embedded, {} threads "
      "in the "
      "same process, on {} cores ({}). Each workload of YCSB first runs as fast as it goes for {:.0f} s, "
      "then "
      "at {:.0f} % of that rate at random moments, whatever the store does (open loop): latencies count from "
      "when a call was due. Of a hundred calls two delete any record or put a deleted one back (in D five, "
      "which "
      "delete the oldest, as many as are inserted), and five put or read a session, which expires after "
      "{:.1f} minutes. Every {:.1f} minutes an operator compacts both datasets.\n\n",
      static_cast<double>(options.records) / 1e6, MiB(options.cache_bytes), options.threads, report.cores,
      report.cpu, options.top_s, options.share * 100, static_cast<double>(options.ttl_ms) / 60'000,
      static_cast<double>(options.compact_ms) / 60'000);
}

std::string Summary(const SteadyReport& report) {
  std::string text =
      "| workload | top rate, calls/s | then | call | how many | p50 | p99 | p99.9 | max |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const SteadyWorkload& workload : report.workloads) {
    bool first = true;
    for (const auto& [kind, us] : workload.kinds) {
      const std::string name =
          first ? fmt::format("{} | {:.0f} | {:.0f}", workload.workload, workload.top_s, workload.rate)
                : " | | ";
      text += fmt::format("| {} | {} | {} | {} |\n", name, kind, workload.counts.at(kind), LatencyCells(us));
      first = false;
    }
  }
  text += "\n";
  for (const SteadyWorkload& workload : report.workloads) {
    uint64_t missed = 0;
    for (const SteadyMinute& minute : workload.minutes) missed += minute.missed;
    if (missed == 0) continue;
    text += fmt::format(
        "**{}: the store could not keep up.** {} calls were due, and not made half a minute after "
        "the end.\n\n",
        workload.workload, missed);
  }
  return text;
}

std::string Compactions(const SteadyReport& report) {
  std::string text =
      "| workload | an operator's compaction begins at | takes | removes, expired and surplus cells |\n"
      "| --- | --- | --- | --- |\n";
  for (const SteadyWorkload& workload : report.workloads) {
    for (const SteadyCompaction& one : workload.compactions) {
      text += fmt::format("| {} | {:.1f} min | {:.1f} s | {} |\n", workload.workload, one.begin_s / 60,
                          one.end_s - one.begin_s, one.removed_cells);
    }
  }
  return text + "\n";
}

std::string Minutes(const SteadyReport& report) {
  std::string text =
      "`pause`: the longest time in which no call was answered. `sleeper`: by how much a thread that does "
      "nothing but sleep was late at most, which no store can do better than. `stalled`: how long RocksDB "
      "had "
      "writers wait, all of them together. `*`: an operator's compaction was at work.\n\n"
      "| minute | calls/s | p50 | p99 | p99.9 | max | pause, ms | sleeper, ms | stalled, ms | memory, MiB | "
      "logs, MiB | files | disk, MiB |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const SteadyWorkload& workload : report.workloads) {
    for (size_t i = 0; i < workload.minutes.size(); ++i) {
      const SteadyMinute& minute = workload.minutes[i];
      text += fmt::format(
          "| {} {}{} | {:.0f} | {} | {:.1f} | {:.1f} | {} | {:.0f} | {:.0f} | {} | {:.0f} |\n",
          workload.workload, i + 1, Compacted(workload, i) ? " *" : "", minute.calls_s,
          LatencyCells(minute.us), minute.pause_ms, minute.overslept_ms, minute.stalled_ms,
          MiB(minute.resident_bytes), MiB(minute.wal_bytes), minute.files, MiB(minute.disk_bytes));
    }
  }
  return text;
}

absl::Status WriteFile(const std::filesystem::path& file, std::string_view text) {
  std::ofstream out(file);
  out << text;
  if (out.flush()) return absl::OkStatus();
  return absl::UnavailableError("page: cannot write " + file.string());
}

Json ToJson(const SteadyLatencies& us) {
  return {{"p50_us", us.p50}, {"p99_us", us.p99}, {"p99_9_us", us.p99_9}, {"max_us", us.max}};
}

}  // namespace

absl::Status WritePage(const SteadyReport& report, const std::filesystem::path& page) {
  std::string text = fmt::format(
      "# An hour under load\n\n```\nkv bench steady --workloads {} --minutes {:g} --records {} --page "
      "{}\n```\n\n",
      report.options.workloads, report.options.minutes, report.options.records, page.string());
  text += Introduction(report) + Summary(report);
  const auto add = [&](const char* name, const LineChart& chart) {
    const std::string file = fmt::format("{}-{}.svg", page.stem().string(), name);
    text += fmt::format("![{}]({})\n\n", chart.title, file);
    return WriteFile(page.parent_path() / file, charts::ToSvg(chart));
  };
  if (auto status = add("latency", Latencies(report)); !status.ok()) return status;
  if (auto status = add("memory", Memory(report)); !status.ok()) return status;
  if (auto status = add("disk", Disk(report)); !status.ok()) return status;
  if (auto status = add("files", Files(report)); !status.ok()) return status;
  text += Compactions(report) + Minutes(report);
  return WriteFile(page, text);
}

Json ToJson(const SteadyReport& report) {
  Json workloads = Json::array();
  for (const SteadyWorkload& workload : report.workloads) {
    Json minutes = Json::array();
    for (const SteadyMinute& minute : workload.minutes) {
      Json one = ToJson(minute.us);
      one["calls_s"] = minute.calls_s;
      one["missed"] = minute.missed;
      one["pause_ms"] = minute.pause_ms;
      one["overslept_ms"] = minute.overslept_ms;
      one["stalled_ms"] = minute.stalled_ms;
      one["resident_bytes"] = minute.resident_bytes;
      one["wal_bytes"] = minute.wal_bytes;
      one["files"] = minute.files;
      one["disk_bytes"] = minute.disk_bytes;
      minutes.push_back(std::move(one));
    }
    Json operations = Json::object();
    for (const auto& [kind, us] : workload.kinds) {
      operations[kind] = ToJson(us);
      operations[kind]["count"] = workload.counts.at(kind);
    }
    Json compactions = Json::array();
    for (const SteadyCompaction& one : workload.compactions) {
      compactions.push_back(
          {{"begin_s", one.begin_s}, {"end_s", one.end_s}, {"removed_cells", one.removed_cells}});
    }
    workloads.push_back({{"workload", std::string(1, workload.workload)},
                         {"top_s", workload.top_s},
                         {"rate", workload.rate},
                         {"operations", std::move(operations)},
                         {"compactions", std::move(compactions)},
                         {"minutes", std::move(minutes)}});
  }
  return {{"ok", true},
          {"workload", "steady"},
          {"records", report.options.records},
          {"threads", report.options.threads},
          {"cache_bytes", report.options.cache_bytes},
          {"cores", report.cores},
          {"cpu", report.cpu},
          {"load_s", report.load_s},
          {"workloads", std::move(workloads)}};
}

}  // namespace kvstore::bench
