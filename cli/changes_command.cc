#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/standard_output.h"
#include "cli/stop_signals.h"
#include "json_api/answers.h"
#include "kvstore_api/limits.h"

/// kv changes: a dataset's changes as JSON lines.
namespace kvstore::cli {
namespace {

/// Of a column with more, the newest cells are printed.
constexpr size_t kMaxColumnBytes = size_t{1} << 20;
/// A follower that has read everything asks again after this,
constexpr std::chrono::milliseconds kPollInterval{10};
/// and, while nothing is written, says how far it is after this.
constexpr std::chrono::seconds kTellInterval{1};

class Follower {
 public:
  Follower(KVStore& store, DatasetSpec spec, uint64_t limit)
      : store_(store), spec_(std::move(spec)), left_(limit) {}

  /// Prints the dataset as it is now, in the form of changes with the token of before it was read.
  void PrintSnapshot(const std::string& token) {
    token_ = token;
    at_ms_ = WallClockMs();
    switch (spec_.shape) {
      case Shape::kRows:
        return PrintRows();
      case Shape::kObjects:
        return PrintObjects();
      case Shape::kMappings:
        return PrintMappings();
    }
  }

  /// Prints the changes of a page. False if no more may be printed.
  bool Print(const ChangePage& page) {
    for (const Change& change : page.changes) {
      if (left_ == 0) return false;
      Line(change);
      token_ = change.token;
    }
    if (left_ == 0) return false;
    token_ = page.token;
    return true;
  }

  void PrintCompleteUntil(const ChangePage& page) {
    PrintJson({{"token", page.token}, {"complete_until", page.complete_until_ms}});
  }

 private:
  void Line(const Change& change) {
    PrintJson(OrFail(json_api::ChangeToJson(change)));
    --left_;
  }
  /// Prints what is there as a change.
  template <typename What>
  void LineOf(What what) {
    if (left_ > 0) Line({.token = token_, .at_ms = at_ms_, .what = std::move(what)});
  }

  void PrintRows() {
    const auto cursor =
        OrFail(store_.ScanRows(spec_.name, {}, {.versions = std::numeric_limits<uint32_t>::max()}));
    // A column with many cells comes in pieces.
    std::optional<RowChange> column;
    size_t bytes = 0;
    ScannedRow row;
    while (left_ > 0 && OrFail(cursor->Next(row))) {
      for (Item& item : row.items) {
        if (column && (column->row != row.key || column->column != item.column)) {
          LineOf(*std::exchange(column, std::nullopt));
        }
        if (!column) {
          column = RowChange{.row = row.key, .column = item.column, .cells = {}};
          bytes = 0;
        }
        for (Cell& cell : item.cells) {
          bytes += cell.value.size() + sizeof(Cell);
          // As in a change: its newest cells.
          column->more = column->more || (bytes > kMaxColumnBytes && !column->cells.empty());
          if (!column->more) column->cells.push_back(std::move(cell));
        }
      }
    }
    if (column) LineOf(*std::move(column));
  }
  void PrintObjects() {
    ObjectScanOptions options{.include_inactive = true, .limit = kMaxListEntries};
    do {
      ObjectPage page = OrFail(store_.ScanObjects(spec_.name, {}, options));
      for (Object& object : page.objects) {
        LineOf(ObjectChange{.id = object.id, .timestamp = object.timestamp, .data = std::move(object.data)});
      }
      options.marker = std::move(page.marker);
    } while (left_ > 0 && !options.marker.empty());
  }
  void PrintMappings() {
    MappingScanOptions options{.limit = kMaxListEntries};
    do {
      ScannedMappingPage page = OrFail(store_.ScanMappings(spec_.name, {}, options));
      for (const ScannedMapping& entry : page.entries) {
        LineOf(MappingChange{.from = entry.from, .to = entry.to, .sequence = entry.sequence});
      }
      options.marker = std::move(page.marker);
    } while (left_ > 0 && !options.marker.empty());
  }

  KVStore& store_;
  const DatasetSpec spec_;
  uint64_t left_;
  std::string token_;
  uint64_t at_ms_ = 0;
};

struct Arguments {
  std::string dataset;
  std::string from{kChangesFromBegin};
  bool snapshot = false;
  bool follow = false;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
};

/// stopped  is set when the command is to end.
void Run(KVStore& store, const Arguments& args, const std::atomic<bool>& stopped) {
  Follower follower(store, OrFail(store.GetDataset(args.dataset)), args.limit);
  std::string from = args.from;
  if (args.snapshot) {
    // The token of a page has its changes behind it; of them the snapshot has all that were acknowledged.
    from = OrFail(store.ReadChanges(args.dataset, kChangesFromNow, {.limit = 1})).token;
    follower.PrintSnapshot(from);
  }
  auto told = std::chrono::steady_clock::time_point();
  while (!stopped) {
    const ChangePage page = OrFail(store.ReadChanges(args.dataset, from, {}));
    if (!follower.Print(page)) return;
    from = page.token;
    if (page.complete_until_ms == 0) continue;
    const auto now = std::chrono::steady_clock::now();
    if (!page.changes.empty() || now - told >= kTellInterval || !args.follow) {
      follower.PrintCompleteUntil(page);
      told = now;
    }
    if (!args.follow) return;
    FlushOut();
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace

void AddChangesCommand(CLI::App& app, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* changes = app.add_subcommand(
      "changes", "Print the changes of a dataset that keeps them (--keep-changes-ms), as JSON lines");
  changes->add_option("dataset", args->dataset)->required();
  changes
      ->add_option(
          "--from", args->from,
          "begin: with the oldest change that is kept; now: with what is written from now on; or the "
          "token of a line, to go on behind it")
      ->type_name("begin|now|TOKEN")
      ->capture_default_str();
  changes->add_flag("--snapshot", args->snapshot, "First the dataset as it is, then what is written since")
      ->excludes("--from");
  changes->add_flag("--follow", args->follow, "Wait for changes, until SIGTERM or SIGINT");
  changes->add_option("--limit", args->limit, "End after so many changes")
      ->check(CLI::Range(uint64_t{1}, std::numeric_limits<uint64_t>::max()));
  changes->footer(
      "A line is a column, an object or an entry of a mapping that a write has touched, as it is now; or "
      "says that "
      "all writes of before a time (complete_until) were printed. Every acknowledged write is printed at "
      "least "
      "once. If what is behind a token is not kept any more, the command ends with OUT_OF_RANGE: begin again "
      "with "
      "--snapshot.\n\nExample: kv changes events --snapshot --follow");
  changes->callback([args, &globals] {
    std::atomic<bool> stopped{false};
    std::unique_ptr<StopSignals> signals;
    if (args->follow) signals = std::make_unique<StopSignals>([&](int) { stopped = true; });
    const ReaderWatch watch([&] { stopped = true; });
    const auto store = globals.OpenStore(false);
    std::optional<WholeCommand> limit;
    if (!args->follow) limit.emplace(globals);
    Run(*store, *args, stopped);
  });
}

}  // namespace kvstore::cli
