#include "cli/move_commands.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/escape.h"
#include "cli/operated.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "shardops/move.h"
#include "shardops/replace.h"

/// kv shards move, replace-slave: what copies data between hosts.
namespace kvstore::cli {
namespace {

using shardops::DamagedMove;
using shardops::MoveRange;
using shardops::MoveRecord;
using shardops::Pair;

struct RangeArguments {
  std::string range;
  bool mod = false;

  void AddTo(CLI::App& command) {
    command.add_option("--range", range, "First and last shard")->type_name("A-B");
    command.add_flag("--mod", mod, "Mod shards, which have the rows; else ID shards");
  }
  MoveRange Get() const {
    if (range.empty())
      WrongUsage("range: name the shards with --range FIRST-LAST, for example --range 256-511");
    return ParseRange(range, mod);
  }
};

/// Parses "HOST,HOST", the value of an option.
Pair ParsePair(std::string_view option, const std::string& text) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos) {
    WrongUsage(fmt::format("{0}: '{1}' is not a pair of hosts; write --{0} MASTER,SLAVE", option, text));
  }
  return {ParseHost(text.substr(0, comma)), ParseHost(text.substr(comma + 1))};
}

/// Shows a progress bar for each step of the work.
class StepBars {
 public:
  bool Show(std::string_view step, uint64_t done, uint64_t total) {
    if (!bar_ || step != step_) {
      bar_.reset();
      step_ = step;
      bar_ = std::make_unique<ProgressBar>(step_, step_ == "copy"      ? "bytes"
                                                  : step_ == "compare" ? "tables"
                                                                       : "shards");
    }
    bar_->Show(done, total);
    return true;
  }
  void Close() { bar_.reset(); }

 private:
  std::string step_;
  std::unique_ptr<ProgressBar> bar_;
};

void RunMove(const Globals& globals, const MoveRange& range, const std::string& to,
             shardops::MoveOptions options) {
  if (to.empty()) WrongUsage("to: name the new pair with --to MASTER,SLAVE");
  Operated fleet(globals);
  StepBars bars;
  const auto report = (*fleet).report;
  (*fleet).report = [&](const std::string& text) {
    bars.Close();
    report(text);
  };
  options.progress = [&](auto step, uint64_t done, uint64_t total) { return bars.Show(step, done, total); };
  const auto moved = shardops::MoveShards(*fleet, range, ParsePair("to", to), options);
  bars.Close();
  const auto result = OrFail(moved);
  if (globals.json) {
    PrintJson({{"ok", true},
               {"switches", result.switches},
               {"max_pause_ms", result.max_pause_ms},
               {"copied_bytes", result.copied_bytes}});
  } else if (!options.dry_run && result.switches == 0) {
    Print("shards {} are there\n", range.ToString());
  }
}

Json ToJson(const MoveRecord& move) {
  Json leaves = Json::array();
  for (const Pair& pair : move.old_homes) leaves.push_back(pair.master.ToString());
  return {{"space", move.range.mod ? "mod" : "db"},
          {"range", {move.range.first, move.range.last}},
          {"from", {move.from.master.ToString(), move.from.slave.ToString()}},
          {"to", {move.to.master.ToString(), move.to.slave.ToString()}},
          {"state", shardops::Name(move.state)},
          {"old_tables_at", std::move(leaves)},
          {"began_ms", move.began_ms}};
}

Json ToJson(const DamagedMove& move) {
  Json json = {{"path", move.path}, {"problem", shardops::ToString(move)}};
  if (move.range) {
    json["space"] = move.range->mod ? "mod" : "db";
    json["range"] = {move.range->first, move.range->last};
  }
  return json;
}

void PrintTable(const std::vector<MoveRecord>& moves) {
  Table table({"SHARDS", "FROM", "TO", "STATE", "NEXT"});
  for (const MoveRecord& move : moves) {
    table.Add({move.range.ToString(), move.from.master.ToString(), move.to.master.ToString(),
               std::string(shardops::Name(move.state)),
               move.state == shardops::MoveState::kMoved ? "finish, or move back"
                                                         : "move again to go on, or cancel"});
  }
  table.Print();
}

/// Lists all moves. Throws Failure behind the list if a record is damaged.
void PrintMoves(const Globals& globals) {
  Operated fleet(globals);
  const auto moves = OrFail(shardops::LoadMoves(*fleet));
  if (globals.json) {
    Json list = Json::array();
    for (const MoveRecord& move : moves.known) list.push_back(ToJson(move));
    Json damaged = Json::array();
    for (const DamagedMove& move : moves.damaged) damaged.push_back(ToJson(move));
    PrintJson({{"ok", moves.damaged.empty()}, {"moves", std::move(list)}, {"damaged", std::move(damaged)}});
  } else if (!moves.known.empty()) {
    PrintTable(moves.known);
  } else if (moves.damaged.empty()) {
    Print("no shards are moving, and no old tables are left\n");
  }
  if (moves.damaged.empty()) return;
  std::vector<std::string> problems;
  for (const DamagedMove& move : moves.damaged) problems.push_back(shardops::ToString(move));
  throw Failure{absl::DataLossError(fmt::format("{}", fmt::join(problems, "\n")))};
}

void AddCancel(CLI::App& move, Globals& globals) {
  struct Arguments : RangeArguments {
    std::string from;
    std::string to;
    std::string gone;

    /// Returns the pair that will never be back; none if it was not named.
    std::optional<Pair> Gone() const {
      if (gone.empty()) return std::nullopt;
      return ParsePair("gone", gone);
    }
    /// Returns the pairs that were named; none if neither was.
    std::optional<shardops::MovePairs> Pairs() const {
      if (from.empty() && to.empty()) return std::nullopt;
      if (from.empty() || to.empty()) {
        throw Failure{absl::InvalidArgumentError(fmt::format(
            "{}: is missing; --from and --to are given together, and only for a move whose record cannot be "
            "read",
            from.empty() ? "from" : "to"))};
      }
      return shardops::MovePairs{.from = ParsePair("from", from), .to = ParsePair("to", to)};
    }
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
  cancel->callback([args, &globals] {
    const MoveRange range = args->Get();
    const auto pairs = args->Pairs();
    const auto gone = args->Gone();
    Operated fleet(globals);
    OrFail(shardops::CancelMove(*fleet, range, pairs, gone));
    if (globals.json) PrintJson({{"ok", true}});
  });
}

void AddMove(CLI::App& group, Globals& globals) {
  struct Arguments : RangeArguments {
    std::string to;
    shardops::MoveOptions options;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* move = group.add_subcommand(
      "move",
      "Move shards to another pair of hosts while clients use them: copies them, applies changes to the "
      "copy, compares it, and switches a few shards at a time; clients wait for less than half a second. If "
      "it was interrupted at any step, run it again to continue, or cancel it. The old tables stay, renamed, "
      "until you finish the move");
  move->require_subcommand(0, 1);
  args->AddTo(*move);
  move->add_option("--to", args->to, "The pair that gets the shards")->type_name("MASTER,SLAVE");
  move->add_flag("--dry-run", args->options.dry_run, "Only check whether the move is possible");
  move->add_flag("--hold-writes", args->options.hold_writes,
                 "When the copy does not catch up within 10 s, make commits at the old master wait, up to "
                 "400 ms at a time. Needed if clients write faster than the new master applies");
  CLI::App* status =
      move->add_subcommand("status", "Show the moves in progress, and the old tables that are left");
  status->footer(
      R"(A record that cannot be read does not hide the others; it is named behind them, and under "damaged" with --json.

Example: kv shards move status

Exit codes: 0 done; 1 failed, or a record cannot be read; 2 wrong usage.)");
  status->callback([&globals] { PrintMoves(globals); });

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
  finish->callback([finished, &globals] {
    const MoveRange range = finished->Get();
    std::optional<Pair> gone;
    if (!finished->gone.empty()) gone = ParsePair("gone", finished->gone);
    Operated fleet(globals);
    OrFail(shardops::FinishMove(*fleet, range, gone));
    if (globals.json) PrintJson({{"ok", true}});
  });

  move->footer(
      R"(To go back once shards have moved, move them the other way. Pairs need a gtid_domain_id each.

Examples:
  kv shards move --range 256-511 --to MySQL009A,MySQL009B
  kv shards move status
  kv shards move finish --range 256-511)");

  move->callback([args, move, &globals] {
    if (move->get_subcommands().empty()) RunMove(globals, args->Get(), args->to, args->options);
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
  replace->callback([args, &globals] {
    Operated fleet(globals);
    shardops::ReplaceOptions options{.discard = args->discard, .dry_run = args->dry_run};
    if (!args->by.empty()) options.by = ParseHost(args->by);
    StepBars bars;
    options.progress = [&](uint64_t bytes) { return bars.Show("copy", bytes, 0); };
    const absl::Status status = shardops::ReplaceSlave(*fleet, ParseHost(args->host), options);
    bars.Close();
    OrFail(status);
    if (globals.json) PrintJson({{"ok", true}});
  });
}

}  // namespace

void AddMoveCommands(CLI::App& group, Globals& globals) {
  AddMove(group, globals);
  AddReplaceSlave(group, globals);
}

}  // namespace kvstore::cli
