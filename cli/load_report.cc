#include "cli/load_report.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/page.h"
#include "cli/command.h"
#include "cli/table.h"

namespace kvstore::cli {
namespace {

std::string Conditions(const Json& report) {
  return fmt::format("{}, {} clients, {}, on {} cores, {}", report["store"].get<std::string>(),
                     report["threads"].get<int>(),
                     report["rate"] == 0 ? "closed loop"
                                         : fmt::format("{:.0f} calls a second", report["rate"].get<double>()),
                     report["cores"].get<unsigned>(), report["cpu"].get<std::string>());
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

// ---- as a page ----

bench::Bar BarOf(std::string name, const Json& load) {
  return {std::move(name), load["ops_s"].get<double>(), load["ops_s_min"].get<double>(),
          load["ops_s_max"].get<double>()};
}

bench::Curve CurveOf(std::string name, const Json& latency) {
  bench::Curve curve{.name = std::move(name)};
  size_t point = 0;
  for (const char* const key : {"p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"}) {
    curve.us.at(point++) = latency[key].get<double>();
  }
  return curve;
}

/// All that the report says once, by its names.
bench::Page NewPage(std::string title, const Json& report) {
  bench::Page page{.title = std::move(title)};
  for (const auto& [name, value] : report.items()) {
    if (value.is_structured() || name == "ok" || name == "workload") continue;
    page.facts.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return page;
}

bench::Page YcsbPage(const Json& report) {
  bench::Page page = NewPage("YCSB", report);
  bench::Section rates{.title = "Calls a second, by workload"};
  for (const Json& workload : report["workloads"]) {
    rates.bars.push_back(BarOf(workload["workload"].get<std::string>(), workload));
  }
  page.sections.push_back(std::move(rates));
  for (const Json& workload : report["workloads"]) {
    bench::Section section{.title = "Workload " + workload["workload"].get<std::string>()};
    for (const auto& [kind, latency] : workload["operations"].items()) {
      section.curves.push_back(CurveOf(kind, latency));
    }
    page.sections.push_back(std::move(section));
  }
  return page;
}

bench::Page SequencesPage(const Json& report) {
  bench::Page page = NewPage("User sequences", report);
  for (const Json& path : report["paths"]) {
    bench::Section section{.title = path["path"].get<std::string>()};
    for (const Json& side : path["sides"]) {
      const auto store = side["store"].get<std::string>();
      section.bars.push_back(BarOf(store, side));
      section.curves.push_back(CurveOf(store, side["operations"].front()));
      if (page.sections.empty()) page.facts.emplace_back(store, side["promise"].get<std::string>());
    }
    page.sections.push_back(std::move(section));
  }
  return page;
}

}  // namespace

void ShowLoad(const Json& report, bool json, const std::string& html) {
  const bool ycsb = report["workload"] == "ycsb";
  if (!html.empty()) {
    std::ofstream file(html);
    file << bench::ToHtml(ycsb ? YcsbPage(report) : SequencesPage(report));
    if (!file.flush()) throw Failure{absl::UnavailableError("html: cannot write " + html)};
  }
  if (json) {
    PrintJson(report);
  } else if (ycsb) {
    PrintYcsb(report);
  } else {
    PrintSequences(report);
  }
}

}  // namespace kvstore::cli
