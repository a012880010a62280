#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "assembly/repair.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/table.h"

/// kv repair.
namespace kvstore::cli {
namespace {

std::string Describe(const LeftOutLogs& logs) {
  std::string text = logs.log_missing
                         ? fmt::format("{} is missing", logs.log.string())
                         : fmt::format("{} can be read up to byte {}", logs.log.string(), logs.kept_bytes);
  if (logs.later_logs > 0) text += fmt::format(", and {} logs follow it", logs.later_logs);
  if (const uint64_t there = logs.left_out_bytes - logs.gone_bytes; there > 0) {
    text +=
        logs.changes > 0
            ? fmt::format(
                  "; after that are {} bytes, with at least {} of the engine's records (a put of a cell is "
                  "one, and it has some of its own)",
                  there, logs.changes)
            : fmt::format("; after that are {} bytes, and how many changes they hold is not known", there);
  }
  if (logs.gone_bytes > 0) {
    text += fmt::format("; {} bytes of logs are gone, and how many changes they held is not known",
                        logs.gone_bytes);
  }
  if (logs.written_until_ms > 0) {
    text += fmt::format("; by its file's time the last log was written to at {} UTC",
                        UtcText(logs.written_until_ms));
  }
  return text;
}

Json ToJson(const LeftOutLogs& logs) {
  return {{"log", logs.log.string()},
          {"log_missing", logs.log_missing},
          {"kept_bytes", logs.kept_bytes},
          {"later_logs", logs.later_logs},
          {"gone_bytes", logs.gone_bytes},
          {"left_out_bytes", logs.left_out_bytes},
          {"left_out_changes", logs.changes},
          {"folder", logs.folder.string()},
          {"written_until_ms", logs.written_until_ms}};
}

}  // namespace

void AddRepairCommand(CLI::App& app, Globals& globals) {
  auto yes = std::make_shared<bool>(false);
  CLI::App* repair = app.add_subcommand(
      "repair", "End the logs of a store where a damage begins, and say what that leaves out; logs only");
  repair->add_flag("--yes", *yes, "Do it; without this nothing is changed");
  repair->footer(
      R"(For a store that does not open because a write-ahead log has a hole, or is shorter than it was at the last close
(DATA_LOSS). Restoring a backup may lose less or more: compare the time up to which the logs were written, which this
prints, with BEGAN of kv backup list, and with the time up to which the logs were sent (kv backup show). Everything
written after the damage is left out, except for what has reached tables since; that can be megabytes, of all datasets.
The logs that are left out are moved into the folder left-out of the store; remove them when nobody needs them any more.
IDs of objects that were created after the damage are not given again.

Only logs (.log) are repaired. A damaged table (.sst) is named by whatever meets it: by the open of the store, which
then fails, or by the call that reads it. Restore a backup then; or, where the store opens, do without the dataset whose
table it is: kv dataset drop.

Examples:
  kv --data /var/lib/events repair          says what would be left out; exit code 1
  kv --data /var/lib/events repair --yes    does it, and opens the store

Exit codes: 0 done, or the store opens as it is; 1 failed, or without --yes something would be left out; 2 wrong usage.)");
  globals.without_server[repair] =
      "this command works on a directory that no process has open; name it with --data DIR";
  repair->callback([yes, &globals] {
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
    if (!left_out) {
      return Print(
          "the store opens as it is: no log is damaged; tables (.sst) were not read, and are not repaired\n");
    }
    Print("{}\n", Describe(*left_out));
    if (!left_out->folder.empty()) Print("what was left out is in {}\n", left_out->folder.string());
    Print("the store opens\n");
  });
}

}  // namespace kvstore::cli
