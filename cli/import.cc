#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/answers.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/line_loader.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "kvstore_api/bytes_json.h"
#include "kvstore_api/json_fields.h"

/// kv import: JSON lines into a dataset.
namespace kvstore::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxLineBytes = size_t{64} << 20;
constexpr size_t kBatchLines = 1000;
constexpr size_t kBatchBytes = size_t{4} << 20;
/// Without a reject file: what is told of rejected lines instead.
constexpr size_t kToldRejects = 5;

struct Arguments {
  std::string dataset;
  std::string file = "-";
  std::string reject_file;
  std::string progress_file;
  bool restart = false;
  bool only_changes = false;
  bool verify = false;
  std::string keys;

  LoadMode Mode() const { return {.compare = only_changes || verify, .write = !verify, .keys = keys}; }
};

/// Something that is counted, with its name in JSON and in the progress file.
struct State;
struct Count {
  const char* name;
  uint64_t State::*place;
};

/// What was done so far; kept in the progress file, so that an import that was stopped goes on.
struct State {
  uint64_t offset = 0;  // bytes of the input that are done with
  uint64_t lines = 0;
  uint64_t imported = 0;  // written
  uint64_t rejected = 0;
  uint64_t blank = 0;  // passed over
  // Where they are compared.
  uint64_t fresh = 0;
  uint64_t changed = 0;
  uint64_t same = 0;

  static constexpr std::array<Count, 8> Counts();
};

constexpr std::array<Count, 8> State::Counts() {
  return {{{"offset", &State::offset},
           {"lines", &State::lines},
           {"imported", &State::imported},
           {"rejected", &State::rejected},
           {"blank", &State::blank},
           {"new", &State::fresh},
           {"changed", &State::changed},
           {"same", &State::same}}};
}

/// What would be in the reject file, where there is none.
struct NotKept {
  struct Rejected {
    uint64_t line = 0;
    std::string why;
  };
  std::vector<Rejected> first;
  uint64_t all = 0;

  void Add(uint64_t line, const std::string& why) {
    ++all;
    if (first.size() < kToldRejects) first.push_back({line, why});
  }
};

/// An open input file; closes it.
class Input {
 public:
  explicit Input(const std::string& path)
      : file_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0)
      throw Failure{absl::NotFoundError(fmt::format("cannot open {}: {}", path, std::strerror(errno)))};
    struct stat status {};
    if (::fstat(file_, &status) == 0 && S_ISREG(status.st_mode))
      size_ = static_cast<uint64_t>(status.st_size);
  }
  ~Input() {
    if (file_ != STDIN_FILENO) ::close(file_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  int file() const { return file_; }
  uint64_t size() const { return size_; }  // 0 if it is not known
  void Skip(uint64_t bytes) const {
    if (::lseek(file_, static_cast<off_t>(bytes), SEEK_SET) < 0) {
      throw Failure{
          absl::UnavailableError(fmt::format("cannot go on at byte {}: {}", bytes, std::strerror(errno)))};
    }
  }

 private:
  const int file_;
  uint64_t size_ = 0;
};

class Import {
 public:
  Import(const Arguments& args, KVStore& store, NotKept& not_kept)
      : args_(args),
        not_kept_(not_kept),
        loader_(NewLineLoader(store, OrFail(store.GetDataset(args.dataset)), args.Mode())),
        input_(args.file),
        reader_(input_.file(), kMaxLineBytes, [] {}),
        bar_("import " + args.dataset, "lines") {
    if (!args_.progress_file.empty() && !args_.restart) Resume();
  }

  State Run() {
    std::string text;
    while (true) {
      const LineReader::Result result = OrFail(reader_.Next(text));
      if (result == LineReader::Result::kEnd) break;
      ++state_.lines;
      absl::Status problem;
      if (result == LineReader::Result::kTooLong) {
        problem = absl::InvalidArgumentError(fmt::format("longer than the limit of {} bytes", kMaxLineBytes));
        text.clear();
      } else if (text.find_first_not_of(" \t\r") == std::string::npos) {
        ++state_.blank;
        continue;
      }
      bytes_ += text.size();
      batch_.push_back({state_.lines, std::move(text), problem});
      if (batch_.size() >= kBatchLines || bytes_ >= kBatchBytes) Send();
    }
    Send();
    if (!args_.progress_file.empty()) fs::remove(args_.progress_file);
    return state_;
  }

  double Seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }
  bool resumed() const { return start_ > 0; }

 private:
  void Resume() {
    std::ifstream file(args_.progress_file);
    if (!file) return;
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const Json json = ParseJson(text).value_or(Json());
    JsonFields fields(json, "");
    State state;
    for (const Count& count : State::Counts()) {
      state.*count.place = fields.OptionalUint(count.name, 0, UINT64_MAX).value_or(0);
    }
    const uint64_t size = fields.Uint("file_bytes", 0, UINT64_MAX);
    const std::string dataset = fields.String("dataset");
    const std::string mode = fields.OptionalString("mode").value_or("all");
    if (!fields.Finish().ok() || size != input_.size() || dataset != args_.dataset || mode != ModeName() ||
        state.offset > size) {
      throw Failure{absl::FailedPreconditionError(
          fmt::format("{} is of another import (of another dataset, with other options, or the file has "
                      "changed); start over with --restart",
                      args_.progress_file))};
    }
    state_ = state;
    start_ = state.offset;
    input_.Skip(start_);
  }

  const char* ModeName() const {
    return args_.verify ? "verify" : args_.only_changes ? "only-changes" : "all";
  }

  void Send() {
    const absl::Status status = loader_->Load(batch_);
    if (!status.ok()) {
      throw Failure{absl::Status(
          status.code(),
          fmt::format("stopped at line {}: {}{}", batch_.front().number, std::string(status.message()),
                      args_.progress_file.empty() ? "" : "; the same command goes on from here"))};
    }
    for (const Line& line : batch_) Settle(line);
    batch_.clear();
    bytes_ = 0;
    state_.offset = start_ + reader_.consumed();
    KeepProgress();
    const double seconds = Seconds();
    bar_.Show(input_.size() > 0 ? state_.offset : state_.lines, input_.size(),
              fmt::format("{} lines, {:.0f} a second, {} rejected", state_.lines,
                          static_cast<double>(state_.lines) / std::max(seconds, 0.001), state_.rejected));
  }

  void Settle(const Line& line) {
    switch (line.outcome) {
      case Outcome::kRejected:
        ++state_.rejected;
        return Reject(line, std::string(line.problem.message()));
      case Outcome::kLoaded:
        break;
      case Outcome::kNew:
        ++state_.fresh;
        if (args_.verify) return Reject(line, "is not there");
        break;
      case Outcome::kChanged:
        ++state_.changed;
        if (args_.verify) return Reject(line, "something else is there");
        break;
      case Outcome::kSame:
        ++state_.same;
        return;
    }
    ++state_.imported;
  }

  void Reject(const Line& line, const std::string& why) {
    if (args_.reject_file.empty()) {
      not_kept_.Add(line.number, why);
      return;
    }
    if (!rejects_.is_open()) rejects_.open(args_.reject_file, resumed() ? std::ios::app : std::ios::trunc);
    const Json json = {{"line", line.number}, {"error", why}, {"text", BytesToJson(line.text)}};
    rejects_ << ToLine(json) << std::endl;
    if (!rejects_) throw Failure{absl::UnavailableError(fmt::format("cannot write {}", args_.reject_file))};
  }

  void KeepProgress() {
    if (args_.progress_file.empty()) return;
    Json json = {{"dataset", args_.dataset}, {"file_bytes", input_.size()}, {"mode", ModeName()}};
    for (const Count& count : State::Counts()) json[count.name] = state_.*count.place;
    OrFail(ReplaceFile(fs::absolute(args_.progress_file), json.dump() + "\n"));
  }

  const Arguments args_;
  NotKept& not_kept_;
  const std::unique_ptr<LineLoader> loader_;
  const Input input_;
  LineReader reader_;
  ProgressBar bar_;
  const Clock::time_point begun_ = Clock::now();
  uint64_t start_ = 0;
  State state_;
  std::vector<Line> batch_;
  size_t bytes_ = 0;
  std::ofstream rejects_;
};

void Tell(const NotKept& not_kept) {
  if (not_kept.all == 0) return;
  for (const NotKept::Rejected& rejected : not_kept.first) {
    PrintErr("line {}: {}\n", rejected.line, rejected.why);
  }
  if (not_kept.all > not_kept.first.size()) PrintErr("and {} more\n", not_kept.all - not_kept.first.size());
  PrintErr("rejected lines are kept nowhere: --reject-file FILE would keep them, with the reasons\n");
}

/// Its numbers of lines, in one line for people; they add up to all.
std::string Counted(const Arguments& args, const State& state) {
  if (args.verify) {
    return fmt::format("{} lines: {} are there, {} are not, {} are different, {} rejected", state.lines,
                       state.same, state.fresh, state.changed, state.rejected);
  }
  if (args.only_changes) {
    return fmt::format("{} lines: {} new, {} changed, {} same, {} rejected", state.lines, state.fresh,
                       state.changed, state.same, state.rejected);
  }
  return fmt::format("{} lines: {} imported, {} rejected", state.lines, state.imported, state.rejected);
}

std::string Told(const Arguments& args, const State& state) {
  return Counted(args, state) + (state.blank == 0 ? "" : fmt::format(", {} blank", state.blank));
}

void RunImport(Arguments& args, const Globals& globals) {
  if (args.file != "-") {
    args.progress_file = args.file + ".progress";
    if (args.reject_file.empty()) args.reject_file = args.file + ".rejects";
  }
  const auto store = globals.OpenStore(false);
  State state;
  NotKept not_kept;
  double seconds = 0;
  try {
    Import import_run(args, *store, not_kept);
    state = import_run.Run();
    seconds = import_run.Seconds();
  } catch (const Failure&) {
    if (!globals.json) Tell(not_kept);
    throw;
  }
  const bool differs = args.verify && state.same < state.fresh + state.changed + state.same + state.rejected;
  if (globals.json) {
    Json json = {{"ok", !differs}, {"seconds", seconds}};
    for (const Count& count : State::Counts()) {
      if (count.place == &State::offset) continue;
      const bool of_comparison =
          count.place == &State::fresh || count.place == &State::changed || count.place == &State::same;
      if (of_comparison == args.Mode().compare || !of_comparison) json[count.name] = state.*count.place;
    }
    for (const NotKept::Rejected& rejected : not_kept.first) {
      json["first_rejected"].push_back({{"line", rejected.line}, {"error", rejected.why}});
    }
    PrintJson(json);
  } else {
    Tell(not_kept);
    Print("{}, in {:.1f} s ({:.0f} lines a second)\n", Told(args, state), seconds,
          static_cast<double>(state.lines) / std::max(seconds, 0.001));
    if (!args.reject_file.empty() && (state.rejected > 0 || differs)) {
      Print("{} lines are in {}\n", args.verify ? "these" : "rejected", args.reject_file);
    }
  }
  if (differs) throw Failure{absl::FailedPreconditionError("not all is there as the file says")};
}

constexpr char kFooter[] =
    R"(Lines of the file, by the dataset's shape (strings or {"b64": "..."} for any bytes):
  rows      {"row": "user:7", "items": [{"column": "click", "value": "pin:3", "timestamp": 1700000000000}]}
  objects   {"data": {"title": "a chair"}, "id": ID? or "key": "..."?, "near": ID?, "shard": 0..65535?}
  mappings  {"from": ID, "to": ID, "sequence": number?}

Lines that are wrong are counted, written to the reject file with their number and reason, and passed over; blank lines
are counted and passed over. The reject file of FILE is FILE.rejects; of standard input there is none unless --reject-file
names one, and the first five reasons are told on standard error (with --json, in the answer as first_rejected).
An import from a file that was stopped goes on where it was when the same command is run again: FILE.progress remembers.
Then up to one batch (1,000 lines) is loaded twice: harmless where lines have timestamps or sequences of their own.

Moving in from elsewhere, while that is still written to: load a first dump, then newer ones with --only-changes until a
pass finds little or nothing that is new or changed; stop the writes there, load a last time, and --verify. A cell with a
timestamp is compared with the one of that time, one without with the newest; what nobody would see, because it has
expired or max_versions newer ones are there, counts as the same. What is in the dataset and not in the file stays.

--keys names a dataset of rows that remembers which object has which key: row KEY, column id. With it a line of objects
says which object it is by "key", and is one object however often it is loaded; and from and to of a mapping may be
{"key": "..."}. A line with an "id" changes the object that has it.

Examples:
  kv import events events.jsonl
  zcat events.jsonl.gz | kv import events --reject-file rejects.jsonl

Exit codes: 0 done, also if lines were rejected: see the count; 1 failed, or with --verify not all lines are there; 2 wrong
usage.)";

}  // namespace

void AddImportCommand(CLI::App& app, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* import = app.add_subcommand("import", "Load a file of JSON lines into a dataset");
  import->add_option("dataset", args->dataset)->required();
  import->add_option("file", args->file, "- or nothing: standard input")->capture_default_str();
  import
      ->add_option("--reject-file", args->reject_file,
                   "Where lines that are wrong go; FILE.rejects by default, for standard input nowhere")
      ->type_name("FILE");
  import->add_flag("--restart", args->restart, "Begin at the first line, whatever FILE.progress says");
  CLI::Option* changes = import->add_flag("--only-changes", args->only_changes,
                                          "Compare with what is there, write only what is new or changed");
  import
      ->add_flag("--verify", args->verify,
                 "Write nothing; lines that are not there, or differ, go to the reject file")
      ->excludes(changes);
  import
      ->add_option("--keys", args->keys,
                   "Dataset of rows that knows the objects' IDs by their keys elsewhere")
      ->type_name("DATASET");
  import->footer(kFooter);
  import->callback([args, &globals] { RunImport(*args, globals);
});
}  // namespace kvstore::cli

}  // namespace kvstore::cli
