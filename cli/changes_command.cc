#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "cli/arguments.h"
#include "cli/changes_sink.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/standard_output.h"
#include "cli/stop_signals.h"
#include "json_api/answers.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"

/// kv changes: a dataset's changes as JSON lines.
namespace kvstore::cli {
namespace {

/// If a column has more bytes, only its newest cells are printed.
constexpr size_t kMaxColumnBytes = size_t{1} << 20;

/// The token of the lines of a snapshot, and a place to begin: with the snapshot.
constexpr std::string_view kFromSnapshot = "snapshot";

class Follower {
 public:
  /// consumer  The name under which it is noted how far it has come; empty: it is not noted.
  /// sink      Who deals with what is printed; null: what is printed is dealt with.
  Follower(KVStore& store, DatasetSpec spec, uint64_t limit, std::string consumer, ChangesSink* sink)
      : store_(store), spec_(std::move(spec)), consumer_(std::move(consumer)), sink_(sink), left_(limit) {}

  /// Prints the dataset as it is now, in the form of changes. Nobody can go on within it, so their token is
  /// kFromSnapshot.
  ///
  /// stopped  is set when nothing more is to be printed.
  void PrintSnapshot(const std::atomic<bool>& stopped) {
    stopped_ = &stopped;
    token_ = kFromSnapshot;
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

  const std::string& dataset() const { return spec_.name; }
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

  /// Notes how far it has come, once what was printed is written out.
  absl::Status Note() {
    if (consumer_.empty()) return absl::OkStatus();
    const std::string dealt = sink_ != nullptr ? sink_->Dealt() : token_;
    // A sink that prints something else would move the consumer over what it has not dealt with.
    const bool is_token =
        !dealt.empty() && dealt != kFromSnapshot && dealt != kChangesFromBegin && dealt != kChangesFromNow;
    if (!is_token || dealt == noted_) return absl::OkStatus();
    if (sink_ == nullptr) FlushOut();
    absl::Status status = store_.SetConsumer(spec_.name, consumer_, dealt);
    if (status.ok()) noted_ = dealt;
    return status;
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

  bool GoesOn() const { return left_ > 0 && !*stopped_; }
  void PrintRows() {
    const auto cursor =
        OrFail(store_.ScanRows(spec_.name, {}, {.versions = std::numeric_limits<uint32_t>::max()}));
    // A column with many cells comes in pieces.
    std::optional<RowChange> column;
    size_t bytes = 0;
    ScannedRow row;
    while (GoesOn() && OrFail(cursor->Next(row))) {
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
    } while (GoesOn() && !options.marker.empty());
  }
  void PrintMappings() {
    MappingScanOptions options{.limit = kMaxListEntries};
    do {
      ScannedMappingPage page = OrFail(store_.ScanMappings(spec_.name, {}, options));
      for (const ScannedMapping& entry : page.entries) {
        LineOf(MappingChange{.from = entry.from, .to = entry.to, .sequence = entry.sequence});
      }
      options.marker = std::move(page.marker);
    } while (GoesOn() && !options.marker.empty());
  }

  KVStore& store_;
  const DatasetSpec spec_;
  const std::string consumer_;
  ChangesSink* const sink_;
  uint64_t left_;
  std::string token_;
  std::string noted_;
  uint64_t at_ms_ = 0;
  const std::atomic<bool>* stopped_ = nullptr;  // of a snapshot
};

struct Arguments {
  std::string dataset;
  std::string from{kChangesFromBegin};  // perhaps kFromSnapshot
  std::string consumer;
  std::string sink;
  bool has_from = false;
  bool snapshot = false;
  bool follow = false;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
};

/// Prints what is written after the token, until the command is to end.
void Follow(KVStore& store, const std::string& from, Follower& follower, const std::atomic<bool>& stopped) {
  const CallScope scope({.deadline = std::nullopt, .cancelled = &stopped});
  const auto stream = store.WatchChanges(follower.dataset(), from);
  while (!stopped) {
    if (!stream.ok()) OrFail(stream.status());
    auto next = (*stream)->Next();
    if (stopped) return;
    const ChangePage page = OrFail(std::move(next));
    const bool more = follower.Print(page);
    if (more && page.complete_until_ms != 0) follower.PrintCompleteUntil(page);
    FlushOut();
    const absl::Status noted = follower.Note();
    if (stopped || !more) return;
    OrFail(noted);
  }
}

/// Returns where the consumer is; `from` if there is none of that name yet and it was told where it begins.
std::string PlaceOf(KVStore& store, const Arguments& args) {
  for (const ChangeConsumer& consumer : OrFail(store.ListConsumers(args.dataset))) {
    if (consumer.name != args.consumer) continue;
    if (!consumer.token.empty()) return consumer.token;
    throw Failure{absl::OutOfRangeError(fmt::format(
        "consumer: some changes that '{}' had not dealt with are not kept any more; begin again with the "
        "whole dataset (kv changes {} --snapshot --consumer {})",
        consumer.name, args.dataset, consumer.name))};
  }
  if (args.has_from) return args.from;
  throw Failure{absl::NotFoundError(
      fmt::format("consumer: '{0}' has none named '{1}'; say where it begins, with --from or --snapshot",
                  args.dataset, args.consumer))};
}

/// stopped  is set when the command is to end.
void Run(KVStore& store, const Arguments& args, Follower& follower, const std::atomic<bool>& stopped) {
  std::string from = args.consumer.empty() || args.snapshot ? args.from : PlaceOf(store, args);
  if (args.snapshot || from == kFromSnapshot) {
    // The token comes after the changes of its page, of which the snapshot has all that were acknowledged.
    from = OrFail(store.ReadChanges(args.dataset, kChangesFromNow, {.limit = 1})).token;
    follower.PrintSnapshot(stopped);
    if (stopped) return;
  }
  if (args.follow) return Follow(store, from, follower, stopped);
  for (bool more = true; more && !stopped;) {
    const ChangePage page = OrFail(store.ReadChanges(args.dataset, from, {}));
    more = follower.Print(page);
    from = page.token;
    if (more && page.complete_until_ms != 0) {
      follower.PrintCompleteUntil(page);
      more = false;
    }
    OrFail(follower.Note());
  }
}

/// The same, and then waits until the sink has dealt with what was printed.
void RunWithSink(KVStore& store, const Arguments& args, Follower& follower, ChangesSink& sink,
                 std::atomic<bool>& stopped) {
  std::atomic<bool> gone{false};  // it has ended before it was to
  try {
    const ReaderWatch watch([&] {
      if (!stopped.exchange(true)) gone = true;
    });
    Run(store, args, follower, stopped);
  } catch (const OutputLost&) {
    // How it has ended says more.
    if (!stopped) gone = true;
  }
  const absl::Status end = sink.Finish();
  OrFail(follower.Note());
  OrFail(end);
  if (gone) throw Failure{absl::UnavailableError("sink: the command has ended by itself")};
}

}  // namespace

void AddChangesCommand(CLI::App& app, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* changes = app.add_subcommand(
      "changes", "Print the changes of a dataset that keeps them (--keep-changes-ms), as JSON lines");
  changes->add_option("dataset", args->dataset, kDatasetHelp)->required();
  CLI::Option* const from = changes
                                ->add_option("--from", args->from,
                                             "begin: with the oldest change that is kept; now: with what is "
                                             "written from now on; snapshot: as --snapshot; "
                                             "or the token of a line, to go on after it")
                                ->type_name("begin|now|snapshot|TOKEN")
                                ->capture_default_str();
  changes->add_flag("--snapshot", args->snapshot, "First the dataset as it is, then what is written since")
      ->excludes("--from");
  CLI::Option* const consumer = changes->add_option(
      "--consumer", args->consumer,
      "Go on where the consumer of this name is, or else with --from; and note for it what was "
      "printed, so that what follows is kept for it (kv consumers list)");
  CLI::Option* const follow =
      changes->add_flag("--follow", args->follow, "Wait for changes, until SIGTERM or SIGINT");
  changes
      ->add_option("--sink", args->sink,
                   "Start a command, and give it the lines; it prints the token of what it has dealt with, "
                   "which is noted for the consumer: kv-kafka brings changes to Kafka")
      ->type_name("COMMAND")
      ->needs(consumer)
      ->needs(follow);
  changes->add_option("--limit", args->limit, "End after so many changes")
      ->check(CLI::Range(uint64_t{1}, std::numeric_limits<uint64_t>::max()));
  changes->footer(
      R"(A line is a column, an object or an entry of a mapping that a write has touched, as it is now; or says that all writes
of before a time (complete_until) were printed. Every acknowledged write is printed at least once. If what is after a
token is not kept any more, the command ends with OUT_OF_RANGE: begin again with --snapshot.

Example: kv changes events --snapshot --follow
         kv changes events --consumer search --from now --follow)");
  changes->callback([args, from, &globals] {
    args->has_from = from->count() > 0;
    std::atomic<bool> stopped{false};
    std::unique_ptr<StopSignals> signals;
    if (args->follow) signals = std::make_unique<StopSignals>([&](int) { stopped = true; });
    const auto store = globals.OpenStore(false);
    DatasetSpec spec = OrFail(store->GetDataset(args->dataset));
    std::optional<ChangesSink> sink;
    if (!args->sink.empty()) sink.emplace(args->sink);
    Follower follower(*store, std::move(spec), args->limit, args->consumer, sink ? &*sink : nullptr);
    std::optional<WholeCommand> limit;
    if (!args->follow) limit.emplace(globals);
    if (!sink) {
      const ReaderWatch watch([&] { stopped = true; });
      return Run(*store, *args, follower, stopped);
    }
    RunWithSink(*store, *args, follower, *sink, stopped);
  });
}

}  // namespace kvstore::cli
