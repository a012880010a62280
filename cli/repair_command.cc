#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "assembly/repair.h"
#include "cli/commands.h"
#include "cli/escape.h"

/// kv repair.
namespace kvstore::cli {
namespace {

std::string Describe(const LeftOutLogs& logs) {
  std::string text = fmt::format("{} can be read up to byte {}", logs.log.string(), logs.kept_bytes);
  if (logs.later_logs > 0) text += fmt::format(", and {} logs follow it", logs.later_logs);
  return text + fmt::format("; behind that are {} bytes, with at least {} changes", logs.left_out_bytes,
                            logs.changes);
}

Json ToJson(const LeftOutLogs& logs) {
  return {{"log", logs.log.string()},         {"kept_bytes", logs.kept_bytes},
          {"later_logs", logs.later_logs},    {"left_out_bytes", logs.left_out_bytes},
          {"left_out_changes", logs.changes}, {"folder", logs.folder.string()}};
}

}  // namespace

void AddRepairCommand(CLI::App& app, Globals& globals) {
  auto yes = std::make_shared<bool>(false);
  CLI::App* repair = app.add_subcommand(
      "repair", "End the logs of a store where a damage begins, and say what that leaves out");
  repair->add_flag("--yes", *yes, "Do it; without this nothing is changed");
  repair->footer(
      R"(For a store that does not open because a write-ahead log has a hole, or is shorter than it was at the last close
(DATA_LOSS). Restoring a backup may lose less or more: compare first. Everything written after the damage is left out,
except for what has reached tables since; that can be megabytes, of all datasets. The logs that are left out are moved
into the folder left-out of the store; remove them when nobody needs them any more. IDs of objects that were created
after the damage are not given again. Damage elsewhere than in a log is not repaired.

Examples:
  kv --data /var/lib/events repair          says what would be left out; exit code 1
  kv --data /var/lib/events repair --yes    does it, and opens the store

Exit codes: 0 done, or the store opens as it is; 1 failed, or without --yes something would be left out; 2 wrong usage.)");
  repair->callback([yes, &globals] {
    if (!globals.server.empty()) {
      throw Failure{absl::InvalidArgumentError(
          "--server: repair works on a directory that no process has open; name it with --data")};
    }
    const auto left_out = OrFail(RepairLogs(globals.StoreOptions(), *yes));
    if (left_out && !*yes) {
      throw Failure{absl::FailedPreconditionError(
          Describe(*left_out) + "; say --yes to leave those out, and to open the store without them")};
    }
    if (globals.json) {
      Json answer = {{"ok", true}};
      if (left_out) answer["left_out"] = ToJson(*left_out);
      return PrintJson(answer);
    }
    if (!left_out) return Print("the store opens as it is\n");
    Print("{}: left out\n{} has them\nthe store opens\n", Describe(*left_out), left_out->folder.string());
  });
}

}  // namespace kvstore::cli
