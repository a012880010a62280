#include "cli/migrate_status.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace kvstore::cli {
namespace {

std::string Text(const Json& json, const char* name) { return json.value(name, std::string()); }
uint64_t Number(const Json& json, const char* name) { return json.value(name, uint64_t{0}); }

/// Returns the limits in force, as the options of `kv migrate throttle`.
std::string LimitsText(const Json& limits) {
  return fmt::format("--share {} --units-per-s {} --bytes-per-s {} --max-read-us {}; 0 is no limit",
                     Number(limits, "share"), Number(limits, "units_per_s"), Number(limits, "bytes_per_s"),
                     Number(limits, "max_read_us"));
}

}  // namespace

std::string WithArguments(const std::string& command, const std::string& dataset) {
  const char* more = "";
  if (command == "resolve") more = " --keep BACKEND";
  if (command == "abandon") more = " --gone BACKEND";
  if (command == "throttle") more = " --share PERCENT";
  return fmt::format("{} {}{}", command, dataset, more);
}

bool WaitsForOperator(const Json& status) {
  const std::string phase = Text(status, "phase");
  if (phase == "finished" || phase == "aborted") return true;
  if (status.value("wanted", "nothing") != "nothing") return false;
  if (!Text(status, "doubt").empty() || WaitsForResume(status)) return true;
  return phase == "reversible" || (phase == "ready" && !status.value("automatic", false));
}

bool WaitsForResume(const Json& status) {
  // Elsewhere a pause only delays what keeps the copy current; comparisons, cutovers and removals go on.
  return Text(status, "phase") == "backfill" && status.value("paused", false) &&
         status.value("wanted", "nothing") == "nothing";
}

std::string StatusText(const Json& status) {
  std::string out;
  const auto print = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  const auto number = [&](const char* name) { return Number(status, name); };
  const auto text = [&](const char* name) { return Text(status, name); };
  print("dataset       {}\n", text("dataset"));
  print("phase         {}{}{}\n", text("phase"), status.value("paused", false) ? ", paused" : "",
        status.value("wanted", "nothing") == "nothing" ? "" : ", " + text("wanted") + " asked for");
  print("migrates      {} -> {}; {} is the truth\n", text("source"), text("target"), text("truth"));
  print("copied        {} units, {:.1f} MB; {} of {} partitions; {} units/s{}\n", number("units_done"),
        static_cast<double>(number("bytes_done")) / 1e6, number("partitions_done"), number("partitions"),
        number("units_per_s"),
        number("units_left") == 0
            ? ""
            : fmt::format("; about {} left, {} s", number("units_left"), number("seconds_left")));
  if (status.contains("limits")) print("limits        {}\n", LimitsText(status["limits"]));
  print("again         {} units that were written meanwhile\n", number("drained_units"));
  if (status.contains("lag")) {
    print("lag           {} units, the oldest {} ms\n", Number(status["lag"], "units"),
          Number(status["lag"], "ms"));
  }
  print("verified      {} passes; {} units compared, {} differed, {} copied again\n", number("verify_passes"),
        number("compared_units"), number("differences"), number("repaired"));
  if (status.contains("shadow")) {
    const Json& shadow = status["shadow"];
    print("shadow reads  {} % of the reads; {} units compared, {} reads dropped, {} differed\n",
          static_cast<double>(Number(shadow, "share")) / 10'000, Number(shadow, "compared"),
          Number(shadow, "dropped"), Number(shadow, "differences"));
    const char* title = "differ";
    for (const Json& example : shadow["examples"]) {
      print("{:<14}{}\n", title, example.get<std::string>());
      title = "";
    }
  }
  if (number("write_pause_ms") > 0) {
    print("last cutover  writes were held for {} ms, reads for {} ms\n", number("write_pause_ms"),
          number("read_pause_ms"));
  }
  if (!text("problem").empty()) print("problem       {}\n", text("problem"));
  if (!text("doubt").empty()) {
    print(
        "doubt         {}\n              kv migrate resolve {} --keep BACKEND says which side is right; see "
        "docs/runbook.md\n",
        text("doubt"), text("dataset"));
  }
  if (!status.contains("next")) return out;
  const char* title = "next";
  for (const Json& command : status["next"]) {
    print("{:<14}kv migrate {}\n", title, WithArguments(command.get<std::string>(), text("dataset")));
    title = "";
  }
  return out;
}

std::optional<uint64_t> ParseShare(const std::string& text) {
  if (!text.ends_with('%')) return std::nullopt;
  const std::string number = text.substr(0, text.size() - 1);
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  if (!(percent >= 0 && percent <= 100)) return std::nullopt;
  const auto share = static_cast<uint64_t>(std::llround(percent * 10'000));
  // Less than one read in a million is not nothing.
  return share == 0 && percent > 0 ? 1 : share;
}

namespace {

/// " (engine 'myrocks')", or nothing.
std::string EngineText(const Json& json, const char* field) {
  const std::string engine = Text(json, field);
  return engine.empty() ? "" : fmt::format(" (engine '{}')", engine);
}

/// Returns what one side has, on one line.
std::string SideText(const Json& side, const std::string& role) {
  if (!side.value("answers", false)) return fmt::format("the {}; it cannot be asked", role);
  std::string text = fmt::format("the {}", role);
  const char* before = "; ";
  for (const auto& [state, count] : side["partitions"].items()) {
    const auto number = count.get<uint64_t>();
    text += fmt::format("{}{} on {} partition{}", before, state, number, number == 1 ? "" : "s");
    before = ", ";
  }
  text += side.value("records_writes", false) ? "; records writes" : "; records no writes";
  if (side.contains("log")) text += fmt::format(", {} not copied yet", Number(side["log"], "units"));
  if (side.value("restarted_or_replaced", false)) text += "; restarted or replaced";
  return text;
}

}  // namespace

std::string RepairProblem(const Json& answer) {
  const bool done = answer.value("done", false);
  if (!answer["decisions"].empty()) {
    return fmt::format(
        "{}a person must decide; what and how is said above (docs/runbook.md, 'A migration died "
        "badly')",
        done ? "the rest is not done: " : "nothing was changed: ");
  }
  if (done) return "";
  if (!answer["steps"].empty()) return "nothing was changed; say --yes to do it";
  if (answer["findings"].empty()) return "";
  return "nothing was changed: what is wrong is said above, and its worker has not mended it yet; if that "
         "stays so, see docs/runbook.md, 'A migration died badly'";
}

std::string RepairText(const Json& answer) {
  std::string out;
  const auto print = [&](const std::string& title, const std::string& text) {
    fmt::format_to(std::back_inserter(out), "{:<14}{}\n", title, text);
  };
  print("dataset", Text(answer, "dataset"));
  print("phase", Text(answer, "phase"));
  const std::string worker = Text(answer, "worker");
  print("worker", worker == "here"        ? "runs in the process that was asked"
                  : worker == "elsewhere" ? "runs in process " + Text(answer, "owner")
                                          : "none");
  if (answer.contains("catalog")) {
    const std::string other = Text(answer["catalog"], "other_backend");
    print("catalog", fmt::format("routes clients to '{}'{}{}", Text(answer["catalog"], "backend"),
                                 EngineText(answer["catalog"], "engine"),
                                 other.empty() ? ""
                                               : fmt::format("; the other side is '{}'{}", other,
                                                             EngineText(answer["catalog"], "other_engine"))));
  }
  for (const char* const role : {"source", "target"}) {
    if (!answer.contains(role)) continue;
    print(Text(answer[role], "backend"), SideText(answer[role], role + EngineText(answer[role], "engine")));
  }
  print("truth", Text(answer, "truth").empty() ? "cannot be told" : Text(answer, "truth"));
  const auto list = [&](const char* name, const char* title, const auto& text_of) {
    std::string shown = title;
    for (const Json& one : answer[name]) print(std::exchange(shown, ""), text_of(one));
  };
  const bool done = answer.value("done", false);
  list("findings", "found", [](const Json& one) { return one.get<std::string>(); });
  if (answer.contains("notes")) list("notes", "note", [](const Json& one) { return one.get<std::string>(); });
  list("steps", done ? "done" : "would", [](const Json& one) { return Text(one, "does"); });
  list("decisions", "decide",
       [](const Json& one) { return fmt::format("{}: {}", Text(one, "why"), Text(one, "command")); });
  if (answer["findings"].empty() && answer["steps"].empty()) print("found", "nothing to repair");
  if (!done && !answer["steps"].empty()) {
    print("next", fmt::format("kv migrate repair {} --yes", Text(answer, "dataset")));
  }
  return out;
}

}  // namespace kvstore::cli
