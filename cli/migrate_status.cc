#include "cli/migrate_status.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
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
  print("moves         {} -> {}; {} is the truth\n", text("source"), text("target"), text("truth"));
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

}  // namespace kvstore::cli
