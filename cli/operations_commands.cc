#include "cli/operations_commands.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "catalog/ledger_json.h"
#include "cli/escape.h"
#include "cli/shard_operator.h"
#include "cli/table.h"
#include "json/json_text.h"

/// kv shards operations, release: operations in progress, of operators and of programs.
namespace kvstore::cli {
namespace {

std::string ClaimsText(const Operation& operation) {
  // Some operations have claims on many datasets.
  constexpr size_t kShown = 4;
  std::vector<std::string> claims;
  for (const Claim& claim : operation.claims) {
    if (claims.size() == kShown) {
      claims.push_back(fmt::format("{} more", operation.claims.size() - kShown));
      break;
    }
    claims.push_back(claim.ToString());
  }
  return fmt::format("{}", fmt::join(claims, ", "));
}

/// Returns when the operation ends, for the column ENDS.
///
/// ended  Whether its process has certainly ended.
std::string EndsText(const Operation& operation, bool ended) {
  if (operation.lasting) return "lasts";
  return ended ? "its process is gone" : "with its process";
}

void AddOperations(CLI::App& group, Globals& globals) {
  CLI::App* operations = group.add_subcommand(
      "operations",
      "List the operations in progress: who does what since when, and what it claims. Two operations that "
      "would interfere exclude each other: the second is refused, with a message that names the first");
  operations->footer(
      R"(Columns: ID (for kv shards release), WHAT, WHO, SINCE (UTC), HAS (its claims, which others cannot have meanwhile), ENDS:
  with its process      it ends by itself; if its process dies, within the session timeout of ZooKeeper (10 s)
  its process is gone   the process died on this machine: the next operation replaces it at once
  lasts                 a migration or a move of shards: from its start until it is finished or cancelled, whichever
                        process works on it

Examples:
  kv shards operations
  kv shards operations --json     {"ok": true, "operations": [{"id", "what", "who", "since_ms", "lasting", "claims",
                                  "go_on", ...}]}

Exit codes: 0 done, also if there are none; 1 failed; 2 wrong usage. docs/operators.md says which operations exclude
each other.)");
  operations->callback([operations, &globals] {
    Json answer = Operate(*OpenStoreOperations(*operations, globals), {{"command", "operations"}}, globals);
    Json& all = answer.at("operations");
    if (globals.json) {
      for (Json& one : all) one.erase("ended");
      PrintAnswer(std::move(answer));
      return;
    }
    if (all.empty()) {
      Print("no operation is under way\n");
      return;
    }
    Table table({"ID", "WHAT", "WHO", "SINCE", "HAS", "ENDS"});
    for (const Json& one : all) {
      const Operation operation = OrFail(DecodeOperation(TextOf(one)));
      table.Add({one.value("id", ""), operation.what, operation.who, UtcText(operation.since_ms),
                 ClaimsText(operation), EndsText(operation, one.value("ended", false))});
    }
    table.Print();
  });
}

void AddRelease(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string id;
    bool force = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* release = group.add_subcommand(
      "release",
      "Take away the claims of an operation whose process is gone, so that others can begin. Refused without "
      "--force if the process may be alive, or if the operation lasts beyond its process");
  release->add_option("id", args->id, "The ID that kv shards operations shows")->required();
  release->add_flag("--force", args->force,
                    "Even if its process may be alive, or if it lasts. This does not stop the process: it "
                    "stops when it next checks its claims, at the latest when it would change a shard map");
  release->footer(
      R"(Seldom needed. The claims of a process normally vanish with it: at once if it died on this machine, otherwise when its
session with ZooKeeper has expired (10 s). First see what the operation is, and continue it or give it up by its own
command:

  a migration          kv migrate status DATASET; kv migrate cancel DATASET, or finish
  a move of shards     kv shards move status; run the move again, or kv shards move cancel
  anything else        stop its process, or wait

With --force you state that nobody works on it any more, and that nothing of it is left half done. If somebody does, he
may interfere with what begins next: shards that are opened while a dataset migrates would lack its copy. Emergency
promotions (kv shards promote --emergency) are refused by no claim, and do not need this.

Examples:
  kv shards operations
  kv shards release 3fa29c1b

Exit codes: 0 done; 1 there is none of that ID, or it was left alone, and the message says why; 2 wrong usage.)");
  release->callback([args, release, &globals] {
    Json command = {{"command", "release"}, {"id", args->id}};
    if (args->force) command["force"] = true;
    const Json answer = Operate(*OpenStoreOperations(*release, globals), command, globals);
    if (globals.json) {
      PrintAnswer(answer);
    } else {
      const Json& released = answer.at("released");
      Print("'{}', of {}, has no claims any more\n", released.value("what", ""), released.value("who", ""));
    }
  });
}

}  // namespace

void AddOperationsCommands(CLI::App& group, Globals& globals) {
  AddOperations(group, globals);
  AddRelease(group, globals);
}

}  // namespace kvstore::cli
