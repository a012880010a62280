#include "cli/move_commands.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/escape.h"
#include "cli/shard_arguments.h"
#include "cli/shard_operator.h"
#include "cli/table.h"

/// kv shards move, replace-slave: what copies data between hosts.
namespace kvstore::cli {
namespace {

using shardops::MoveRange;

struct RangeArguments {
  std::string range;
  ShardSpace space = ShardSpace::kId;

  void AddTo(CLI::App& command) {
    command.add_option("--range", range, "First and last shard")->type_name("A-B");
    AddModFlag(command, space, "Mod shards, which have the rows; else ID shards");
  }
  MoveRange Get() const {
    if (range.empty())
      WrongUsage("range: name the shards with --range FIRST-LAST, for example --range 256-511");
    return ParseRange(range, space);
  }
};

/// The move as an argument of a command, and what the operator wants of it.
struct MoveArguments : RangeArguments {
  std::string to;
  bool dry_run = false;
  bool hold_writes = false;
};

void RunMove(const CLI::App& move, const Globals& globals, const MoveArguments& args) {
  const MoveRange range = args.Get();
  if (args.to.empty()) WrongUsage("to: name the new pair with --to MASTER,SLAVE");
  Json command = {{"command", "move"}};
  AddRangeTo(command, range);
  AddPairTo(command, "to", args.to);
  if (args.dry_run) command["dry_run"] = true;
  if (args.hold_writes) command["hold_writes"] = true;
  const Json moved = Operate(*OpenFleet(move, globals), command, globals);
  if (globals.json) {
    PrintAnswer(moved);
  } else if (!args.dry_run && moved.value("switches", uint64_t{0}) == 0) {
    Print("shards {} are there\n", range.ToString());
  }
}

void PrintTable(const Json& moves) {
  Table table({"SHARDS", "FROM", "TO", "STATE", "NEXT"});
  for (const Json& move : moves) {
    const std::string state = move.value("state", "");
    table.Add({fmt::format("{} {}-{}", move.value("space", ""), move.at("range").at(0).get<uint32_t>(),
                           move.at("range").at(1).get<uint32_t>()),
               move.at("from").at(0).get<std::string>(), move.at("to").at(0).get<std::string>(), state,
               state == "moved" ? "finish, or move back" : "move again to go on, or cancel"});
  }
  table.Print();
}

/// Lists all moves. Throws Failure after the list if a record is damaged.
void PrintMoves(const CLI::App& status, const Globals& globals) {
  Json answer = Operate(*OpenFleet(status, globals), {{"command", "moves"}}, globals);
  const Json& damaged = answer.at("damaged");
  if (globals.json) {
    Json line = answer;
    line["ok"] = damaged.empty();
    PrintJson(line);
  } else if (!answer.at("moves").empty()) {
    PrintTable(answer.at("moves"));
  } else if (damaged.empty()) {
    Print("no shards are moving, and no old tables are left\n");
  }
  if (damaged.empty()) return;
  std::vector<std::string> problems;
  for (const Json& move : damaged) problems.push_back(move.value("problem", ""));
  throw Failure{absl::DataLossError(fmt::format("{}", fmt::join(problems, "\n")))};
}

void AddCancel(CLI::App& move, Globals& globals) {
  struct Arguments : RangeArguments {
    std::string from;
    std::string to;
    std::string gone;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* cancel = move.add_subcommand(
      "cancel",
      "Give a move up: shards that have not moved stay in use where they are, and their copies are removed; "
      "shards that have moved stay moved");
  args->AddTo(*cancel);
  cancel->add_option("--from", args->from, "The pair that the shards come from, if the record cannot be read")
      ->type_name("MASTER,SLAVE");
  cancel->add_option("--to", args->to, "The pair that the shards go to, if the record cannot be read")
      ->type_name("MASTER,SLAVE");
  cancel
      ->add_option("--gone", args->gone,
                   "The pair that the shards go to, if its hosts will never be back: they are not asked. "
                   "Refused while they answer, and if shards have moved there already")
      ->type_name("MASTER,SLAVE");
  cancel->footer(
      R"(If the new hosts are gone for good, name them with --gone: the shards are used where they are, and the move ends. The
lost hosts keep copies; wipe them before they are on the network again. docs/runbook.md, 'The new hosts of a move are
gone for good'.

If kv shards move status says that the record of a move cannot be read, name both pairs with --from and
--to. They must be those that the operation of the move has in the ledger (kv shards operations --json); the
map in force and what the hosts have say the rest. docs/runbook.md, 'The record of a move cannot be read'.

Examples:
  kv shards move cancel --range 256-511
  kv shards move cancel --range 256-511 --gone MySQL009A,MySQL009B
  kv shards move cancel --range 256-511 --from MySQL001A,MySQL001B --to MySQL009A,MySQL009B)");
  cancel->callback([args, cancel, &globals] {
    Json command = {{"command", "cancel_move"}};
    AddRangeTo(command, args->Get());
    AddPairTo(command, "from", args->from);
    AddPairTo(command, "to", args->to);
    AddPairTo(command, "gone", args->gone);
    Operate(*OpenFleet(*cancel, globals), command, globals);
    if (globals.json) PrintAnswer(Json::object());
  });
}

void AddMove(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<MoveArguments>();
  CLI::App* move = group.add_subcommand(
      "move",
      "Move shards to another pair of hosts while clients use them: copies them, applies changes to the "
      "copy, compares it, and switches a few shards at a time; clients wait for less than half a second. If "
      "it was interrupted at any step, run it again to continue, or cancel it. The old tables stay, renamed, "
      "until you finish the move");
  move->require_subcommand(0, 1);
  args->AddTo(*move);
  move->add_option("--to", args->to, "The pair that gets the shards")->type_name("MASTER,SLAVE");
  move->add_flag("--dry-run", args->dry_run, "Only check whether the move is possible");
  move->add_flag("--hold-writes", args->hold_writes,
                 "When the copy does not catch up within 10 s, make commits at the old master wait, up to "
                 "400 ms at a time. Needed if clients write faster than the new master applies");
  CLI::App* status =
      move->add_subcommand("status", "Show the moves in progress, and the old tables that are left");
  status->footer(
      R"(A record that cannot be read does not hide the others; it is listed after them, and under "damaged" with --json.

Example: kv shards move status

Exit codes: 0 done; 1 failed, or a record cannot be read; 2 wrong usage.)");
  status->callback([status, &globals] { PrintMoves(*status, globals); });

  AddCancel(*move, globals);

  struct FinishArguments : RangeArguments {
    std::string gone;
  };
  auto finished = std::make_shared<FinishArguments>();
  CLI::App* finish =
      move->add_subcommand("finish", "Remove the old tables of shards that have moved, for good");
  finished->AddTo(*finish);
  finish
      ->add_option("--gone", finished->gone,
                   "A pair that has old tables, if its hosts will never be back: they are not asked. Refused "
                   "while one of them answers")
      ->type_name("MASTER,SLAVE");
  finish->footer("Example: kv shards move finish --range 256-511");
  finish->callback([finished, finish, &globals] {
    Json command = {{"command", "finish_move"}};
    AddRangeTo(command, finished->Get());
    AddPairTo(command, "gone", finished->gone);
    Operate(*OpenFleet(*finish, globals), command, globals);
    if (globals.json) PrintAnswer(Json::object());
  });

  move->footer(
      R"(To go back once shards have moved, move them the other way. Pairs need a gtid_domain_id each.

Examples:
  kv shards move --range 256-511 --to MySQL009A,MySQL009B
  kv shards move status
  kv shards move finish --range 256-511)");

  move->callback([args, move, &globals] {
    if (move->get_subcommands().empty()) RunMove(*move, globals, *args);
  });
}

void AddReplaceSlave(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string host;
    std::string by;
    bool discard = false;
    bool dry_run = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* replace = group.add_subcommand(
      "replace-slave",
      "Rebuild a slave from its master, or put another host in its place: copies all databases and users, "
      "then replicates from there. For a slave that is lost, or has transactions that its master never had. "
      "If it was interrupted, run it again with --discard");
  replace->add_option("host", args->host, "The slave, as it is written in the maps")->required();
  replace->add_option("--by", args->by, "The host that takes its place")->type_name("HOST");
  replace->add_flag("--discard", args->discard, "Remove the databases that the host has");
  replace->add_flag("--dry-run", args->dry_run, "Only look if it can be done");
  replace->footer("Example: kv shards replace-slave MySQL001B --by MySQL001C --dry-run");
  replace->callback([args, replace, &globals] {
    Json command = {{"command", "replace_slave"}, {"host", ParseHost(args->host).ToString()}};
    AddHostTo(command, "by", args->by);
    if (args->discard) command["discard"] = true;
    if (args->dry_run) command["dry_run"] = true;
    Operate(*OpenFleet(*replace, globals), command, globals);
    if (globals.json) PrintAnswer(Json::object());
  });
}

}  // namespace

void AddMoveCommands(CLI::App& group, Globals& globals) {
  AddMove(group, globals);
  AddReplaceSlave(group, globals);
}

}  // namespace kvstore::cli
