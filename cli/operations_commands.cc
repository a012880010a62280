#include "cli/operations_commands.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/process.h"
#include "cli/escape.h"
#include "cli/table.h"
#include "kvstore_api/ledger_json.h"
#include "kvstore_api/zookeeper_ledger.h"

/// kv shards operations, release: what operators and programs have begun.
namespace kvstore::cli {
namespace {

/// That of the fleet, or of the catalog where there is no fleet. Throws Failure.
std::unique_ptr<Ledger> OpenLedger(const Globals& globals) {
  const OpenOptions options = globals.StoreOptions();
  if (options.mysql && !options.mysql->zookeeper.servers.empty()) {
    return std::make_unique<ZooKeeperLedger>(options.mysql->zookeeper, options.mysql->root);
  }
  if (options.coordination) {
    return std::make_unique<ZooKeeperLedger>(options.coordination->zookeeper, options.coordination->root);
  }
  throw Failure{absl::InvalidArgumentError(
      "config: names no ZooKeeper; what a single process is at is known to that process only")};
}

std::string Has(const Operation& operation) {
  // Some have claims on many datasets.
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

std::string State(const Operation& operation) {
  if (operation.lasting) return "lasts";
  return ProcessHasEnded(operation.process) ? "its process is gone" : "with its process";
}

void AddOperations(CLI::App& group, Globals& globals) {
  CLI::App* operations =
      group.add_subcommand("operations",
                           "List what is under way: who is at what since when, and what of the store that "
                           "has. Two operations that "
                           "would cross exclude each other: the second is refused, and names the first");
  operations->footer(
      R"(Columns: ID (for kv shards release), WHAT, WHO, SINCE (UTC), HAS (what others cannot have meanwhile), ENDS:
  with its process      it ends by itself; if its process dies, within the session timeout of ZooKeeper (10 s)
  its process is gone   it died on this machine: the next operation takes its place at once
  lasts                 a migration or a move of shards: from its start until it is finished or cancelled, whichever
                        process is at it

Examples:
  kv shards operations
  kv shards operations --json     {"ok": true, "operations": [{"id", "what", "who", "since_ms", "lasting", "claims",
                                  "go_on", ...}]}

Exit codes: 0 done, also if there are none; 1 failed; 2 wrong usage. docs/operators.md says which operations exclude each other.)");
  operations->callback([&globals] {
    const auto all = OrFail(OpenLedger(globals)->List());
    if (globals.json) {
      Json list = Json::array();
      for (const Operation& operation : all) {
        list.push_back(OperationToJson(operation));
        list.back()["id"] = operation.id;
      }
      PrintJson({{"ok", true}, {"operations", std::move(list)}});
      return;
    }
    if (all.empty()) {
      Print("nothing is under way\n");
      return;
    }
    Table table({"ID", "WHAT", "WHO", "SINCE", "HAS", "ENDS"});
    for (const Operation& operation : all) {
      table.Add({operation.id, operation.what, operation.who, UtcText(operation.since_ms), Has(operation),
                 State(operation)});
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
  CLI::App* release = group.add_subcommand("release",
                                           "Take away what an operation has, so that others can begin. Only "
                                           "if its process is gone; one that may live, "
                                           "or lasts, is left alone without --force");
  release->add_option("id", args->id, "As kv shards operations gives it")->required();
  release->add_flag(
      "--force", args->force,
      "Also if its process may live, or if it lasts. It is not stopped by this: it stops when it looks "
      "next, at the latest when it would change a shard map");
  release->footer(
      R"(Seldom needed. What a process has goes with it: at once if it died on this machine, else when its session
with ZooKeeper has run out (10 s). First see what it is, and go on with it or give it up by its own command:

  a migration          kv migrate status DATASET; kv migrate cancel DATASET, or finish
  a move of shards     kv shards move status; run the move again, or kv shards move cancel
  anything else        stop its process, or wait

With --force you say that nobody is at it any more, and that nothing of it is left half done. If somebody is, he can
cross what begins next: shards that are opened while a dataset migrates would lack its copy. Emergency promotions
(kv shards promote --emergency) are refused by no claim, and do not need this.

Examples:
  kv shards operations
  kv shards release 3fa29c1b

Exit codes: 0 done; 1 there is none of that ID, or it was left alone, and the message says why; 2 wrong usage.)");
  release->callback([args, &globals] {
    const Operation operation = OrFail(OpenLedger(globals)->Release(args->id, args->force));
    if (globals.json) {
      Json json = OperationToJson(operation);
      json["id"] = operation.id;
      PrintJson({{"ok", true}, {"released", std::move(json)}});
    } else {
      Print("'{}', of {}, has nothing any more\n", operation.what, operation.who);
    }
  });
}

}  // namespace

void AddOperationsCommands(CLI::App& group, Globals& globals) {
  AddOperations(group, globals);
  AddRelease(group, globals);
}

}  // namespace kvstore::cli
