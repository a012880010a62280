#include "bench/commands/load_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "bench/harness/page.h"
#include "bench/harness/report.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/table.h"

namespace kvstore::bench {

using cli::Failure;
using cli::PrintJson;
using cli::Table;

namespace {

std::string Conditions(const Json& report) {
  return fmt::format("{}, {} clients, {}, on {} cores, {}", report["store"].get<std::string>(),
                     report["threads"].get<int>(),
                     report["rate"] == 0 ? "closed loop"
                                         : fmt::format("{:.0f} calls a second", report["rate"].get<double>()),
                     report["cores"].get<unsigned>(), report["cpu"].get<std::string>());
}

/// The operations of loads, with the rate of each load in its first line.
class LoadTable {
 public:
  explicit LoadTable(const char* name)
      : table_({name, "OPS/S", "MIN", "MAX", "OPERATION", "COUNT", "MEAN US", "P50", "P99", "P99.9",
                "MAX US"}) {}

  void Add(const std::string& name, const Json& load) {
    bool first = true;
    for (const auto& [kind, latency] : load["operations"].items()) {
      const auto us = [&latency = latency](const char* key) {
        return fmt::format("{:.1f}", latency[key].get<double>());
      };
      const auto once = [&](const char* key) {
        return first ? fmt::format("{:.0f}", load[key].get<double>()) : std::string();
      };
      table_.Add({first ? name : "", once("ops_s"), once("ops_s_min"), once("ops_s_max"), kind,
                  std::to_string(latency["count"].get<uint64_t>()), us("mean_us"), us("p50_us"), us("p99_us"),
                  us("p99_9_us"), us("max_us")});
      first = false;
    }
  }
  void Print() { table_.Print(); }

 private:
  Table table_;
};

void PrintYcsb(const Json& report) {
  cli::Print("YCSB, {} records of 1 KB, {}\n", report["records"].get<uint64_t>(), Conditions(report));
  LoadTable table("WORKLOAD");
  for (const Json& workload : report["workloads"]) {
    table.Add(workload["workload"].get<std::string>(), workload);
  }
  table.Print();
}

void PrintTenants(const Json& report) {
  cli::Print("tenants, {}\n", Conditions(report));
  LoadTable table("TENANT");
  for (const Json& tenant : report["tenants"]) {
    const auto name = tenant["tenant"].get<std::string>();
    table.Add(name + ", alone", tenant["alone"]);
    table.Add(name + ", together", tenant["together"]);
  }
  table.Print();
}

void PrintFlood(const Json& report) {
  const auto limit = report["limit"].get<uint64_t>();
  cli::Print("{} callers; one floods with {} threads{}, {}; {}\n", report["callers"].get<int>(),
             report["flood_threads"].get<int>(), report["elsewhere"].get<bool>() ? " from elsewhere" : "",
             limit == 0 ? "without a limit" : fmt::format("at most {} calls a second", limit),
             Conditions(report));
  LoadTable table("CALLERS");
  for (const Json& tenant : report["tenants"]) {
    const auto name = tenant["tenant"].get<std::string>();
    table.Add(name + ", as many threads each", tenant["alone"]);
    table.Add(name + ", flooded", tenant["together"]);
  }
  table.Print();
  cli::Print("the others keep {:.2f} of their rate", report["kept"].get<double>());
  if (report.contains("kept_of_share")) {
    cli::Print(", and {:.2f} of their share of what the server did for all of them before",
               report["kept_of_share"].get<double>());
  }
  cli::Print("\n");
}

void PrintSequences(const Json& report) {
  cli::Print("user sequences, {} users, {} events, {}\n", report["users"].get<uint64_t>(),
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
  for (const auto& [store, promise] : promises) cli::Print("{}: {}\n", store, promise);
}

// ---- as a page ----

Bar BarOf(std::string name, const Json& load) {
  return {std::move(name), load["ops_s"].get<double>(), load["ops_s_min"].get<double>(),
          load["ops_s_max"].get<double>()};
}

Curve CurveOf(std::string name, const Json& latency) {
  Curve curve{.name = std::move(name)};
  size_t point = 0;
  for (const char* const key : {"p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"}) {
    curve.us.at(point++) = latency[key].get<double>();
  }
  return curve;
}

/// Returns the fields that the report has once, by their names.
Page NewPage(std::string title, const Json& report) {
  Page page{.title = std::move(title)};
  for (const auto& [name, value] : report.items()) {
    if (value.is_structured() || name == "ok" || name == "workload") continue;
    page.facts.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return page;
}

Page YcsbPage(const Json& report) {
  Page page = NewPage("YCSB", report);
  Section rates{.title = "Calls a second, by workload"};
  for (const Json& workload : report["workloads"]) {
    rates.bars.push_back(BarOf(workload["workload"].get<std::string>(), workload));
  }
  page.sections.push_back(std::move(rates));
  for (const Json& workload : report["workloads"]) {
    Section section{.title = "Workload " + workload["workload"].get<std::string>()};
    for (const auto& [kind, latency] : workload["operations"].items()) {
      section.curves.push_back(CurveOf(kind, latency));
    }
    page.sections.push_back(std::move(section));
  }
  return page;
}

Page SequencesPage(const Json& report) {
  Page page = NewPage("User sequences", report);
  for (const Json& path : report["paths"]) {
    Section section{.title = path["path"].get<std::string>()};
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

Page TenantsPage(const Json& report) {
  Page page = NewPage("Tenants of one store", report);
  for (const Json& tenant : report["tenants"]) {
    const auto name = tenant["tenant"].get<std::string>();
    Section section{.title = name};
    for (const char* const how : {"alone", "together"}) {
      section.bars.push_back(BarOf(how, tenant[how]));
      // The most frequent operation represents the others.
      const Json& operations = tenant[how]["operations"];
      const auto most =
          std::max_element(operations.begin(), operations.end(),
                           [](const Json& a, const Json& b) { return a["count"] < b["count"]; });
      section.curves.push_back(CurveOf(fmt::format("{} {}", most.key(), how), *most));
    }
    page.sections.push_back(std::move(section));
  }
  return page;
}

/// How a workload is shown.
struct Form {
  std::string_view workload;
  void (*print)(const Json& report);
  Page (*page)(const Json& report);
};
constexpr std::array<Form, 4> kForms = {{{"ycsb", PrintYcsb, YcsbPage},
                                         {"sequences", PrintSequences, SequencesPage},
                                         {"tenants", PrintTenants, TenantsPage},
                                         {"flood", PrintFlood, TenantsPage}}};

}  // namespace

Json NewLoadReport(const char* workload, std::string store, const LoadOptions& load) {
  Report machine;
  DescribeMachine(machine);
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

void ShowLoad(const Json& report, bool json, const std::string& html) {
  const auto workload = report["workload"].get<std::string>();
  const Form& form =
      *std::find_if(kForms.begin(), kForms.end(), [&](const Form& one) { return one.workload == workload; });
  if (!html.empty()) {
    std::ofstream file(html);
    file << ToHtml(form.page(report));
    if (!file.flush()) throw Failure{absl::UnavailableError("html: cannot write " + html)};
  }
  if (json) {
    PrintJson(report);
  } else {
    form.print(report);
  }
}

}  // namespace kvstore::bench
