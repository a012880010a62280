#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/answers.h"
#include "cli/command.h"
#include "cli/exec_protocol.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "kvstore_api/bytes_json.h"
#include "kvstore_api/limits.h"

/// kv import: JSON lines into a dataset.
namespace kvstore::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxLineBytes = size_t{64} << 20;
constexpr size_t kBatchLines = 1000;
constexpr size_t kBatchBytes = size_t{4} << 20;

struct Arguments {
  std::string dataset;
  std::string file = "-";
  std::string reject_file;
  std::string progress_file;
  bool restart = false;
};

/// What was done so far; kept in the progress file, so that an import that was stopped goes on.
struct State {
  uint64_t offset = 0;  // bytes of the input that are done with
  uint64_t lines = 0;
  uint64_t imported = 0;
  uint64_t rejected = 0;
};

struct Line {
  uint64_t number = 0;
  std::string text;
  absl::Status problem;
};

/// Carries out a batch of lines; what is wrong with a line goes into its `problem`, and an error of the
/// store, which another try may cure, is returned.
using Load = std::function<absl::Status(KVStore&, const std::string& dataset, std::vector<Line>&)>;

bool IsLinesFault(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsAlreadyExists(status) ||
         absl::IsFailedPrecondition(status);
}

/// Keeps a mistake of the line, passes on an error of the store.
absl::Status Sort(const absl::Status& status, Line& line) {
  if (status.ok()) return status;
  if (!IsLinesFault(status)) return status;
  line.problem = status;
  return absl::OkStatus();
}

absl::Status LoadRows(KVStore& store, const std::string& dataset, std::vector<Line>& lines) {
  struct Request {
    size_t line;
    std::string row;
    PutItems items;
  };
  std::vector<Request> requests;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].problem.ok()) continue;
    const auto json = ParseJson(lines[i].text);
    if (!json.ok()) {
      lines[i].problem = json.status();
      continue;
    }
    JsonFields fields(*json, "");
    Request request{i, fields.Bytes("row"), ReadItems(fields)};
    lines[i].problem = fields.Finish();
    if (lines[i].problem.ok()) requests.push_back(std::move(request));
  }
  if (requests.empty()) return absl::OkStatus();
  std::vector<RowWrite> writes;
  for (const Request& request : requests)
    writes.push_back({.row = request.row, .cells = request.items.cells});
  const auto results = store.PutRows(dataset, writes);
  if (!results.ok()) return results.status();
  for (size_t i = 0; i < requests.size(); ++i) {
    if (auto status = Sort((*results)[i].status(), lines[requests[i].line]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

/// Loads lines one by one with `one(store, dataset, fields)`.
template <typename One>
absl::Status LoadSingly(KVStore& store, const std::string& dataset, std::vector<Line>& lines, One one) {
  for (Line& line : lines) {
    if (!line.problem.ok()) continue;
    const auto json = ParseJson(line.text);
    absl::Status status = json.status();
    if (json.ok()) {
      JsonFields fields(*json, "");
      status = one(store, dataset, fields);
    }
    if (status = Sort(status, line); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status LoadObjects(KVStore& store, const std::string& dataset, std::vector<Line>& lines) {
  return LoadSingly(store, dataset, lines,
                    [](KVStore& to, const std::string& name, JsonFields& fields) -> absl::Status {
                      const Json* data = fields.Require("data");
                      CreateOptions options;
                      options.near = fields.OptionalUint("near", 0, kMaxId);
                      if (auto shard = fields.OptionalUint("shard", 0, 65535))
                        options.shard = static_cast<uint32_t>(*shard);
                      if (auto status = fields.Finish(); !status.ok()) return status;
                      return to.CreateObject(name, data->dump(), options).status();
                    });
}

absl::Status LoadMappings(KVStore& store, const std::string& dataset, std::vector<Line>& lines) {
  return LoadSingly(store, dataset, lines,
                    [](KVStore& to, const std::string& name, JsonFields& fields) -> absl::Status {
                      const uint64_t from = fields.Uint("from", 0, kMaxId);
                      const uint64_t target = fields.Uint("to", 0, kMaxId);
                      const auto sequence = fields.OptionalUint("sequence", 0, kMaxTimestamp);
                      if (auto status = fields.Finish(); !status.ok()) return status;
                      return to.AddMapping(name, from, target, sequence);
                    });
}

Load LoadFor(Shape shape) {
  switch (shape) {
    case Shape::kRows:
      return LoadRows;
    case Shape::kObjects:
      return LoadObjects;
    case Shape::kMappings:
      return LoadMappings;
  }
  return LoadRows;
}

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
  Import(const Arguments& args, KVStore& store)
      : args_(args),
        store_(store),
        load_(LoadFor(OrFail(store.GetDataset(args.dataset)).shape)),
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
    state.offset = fields.Uint("offset", 0, UINT64_MAX);
    state.lines = fields.Uint("lines", 0, UINT64_MAX);
    state.imported = fields.Uint("imported", 0, UINT64_MAX);
    state.rejected = fields.Uint("rejected", 0, UINT64_MAX);
    const uint64_t size = fields.Uint("file_bytes", 0, UINT64_MAX);
    const std::string dataset = fields.String("dataset");
    if (!fields.Finish().ok() || size != input_.size() || dataset != args_.dataset || state.offset > size) {
      throw Failure{absl::FailedPreconditionError(fmt::format(
          "{} is of another import (of another dataset, or the file has changed); start over with --restart",
          args_.progress_file))};
    }
    state_ = state;
    start_ = state.offset;
    input_.Skip(start_);
  }

  void Send() {
    const absl::Status status = load_(store_, args_.dataset, batch_);
    if (!status.ok()) {
      throw Failure{absl::Status(
          status.code(),
          fmt::format("stopped at line {}: {}{}", batch_.front().number, std::string(status.message()),
                      args_.progress_file.empty() ? "" : "; the same command goes on from here"))};
    }
    for (const Line& line : batch_) {
      if (line.problem.ok()) {
        ++state_.imported;
      } else {
        ++state_.rejected;
        Reject(line);
      }
    }
    batch_.clear();
    bytes_ = 0;
    state_.offset = start_ + reader_.consumed();
    KeepProgress();
    const double seconds = Seconds();
    bar_.Show(input_.size() > 0 ? state_.offset : state_.lines, input_.size(),
              fmt::format("{} lines, {:.0f} a second, {} rejected", state_.lines,
                          static_cast<double>(state_.imported) / std::max(seconds, 0.001), state_.rejected));
  }

  void Reject(const Line& line) {
    if (args_.reject_file.empty()) return;
    if (!rejects_.is_open()) rejects_.open(args_.reject_file, resumed() ? std::ios::app : std::ios::trunc);
    const Json json = {{"line", line.number},
                       {"error", std::string(line.problem.message())},
                       {"text", BytesToJson(line.text)}};
    rejects_ << ToLine(json) << std::endl;
    if (!rejects_) throw Failure{absl::UnavailableError(fmt::format("cannot write {}", args_.reject_file))};
  }

  void KeepProgress() {
    if (args_.progress_file.empty()) return;
    const Json json = {{"dataset", args_.dataset},    {"file_bytes", input_.size()},
                       {"offset", state_.offset},     {"lines", state_.lines},
                       {"imported", state_.imported}, {"rejected", state_.rejected}};
    OrFail(ReplaceFile(fs::absolute(args_.progress_file), json.dump() + "\n"));
  }

  const Arguments args_;
  KVStore& store_;
  const Load load_;
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

constexpr char kFooter[] =
    R"(Lines of the file, by the dataset's shape (strings or {"b64": "..."} for any bytes):
  rows      {"row": "user:7", "items": [{"column": "click", "value": "pin:3", "timestamp": 1700000000000}]}
  objects   {"data": {"title": "a chair"}, "near": ID?, "shard": 0..65535?}
  mappings  {"from": ID, "to": ID, "sequence": number?}

Lines that are wrong are counted, written to the reject file with their number and reason, and passed over.
An import from a file that was stopped goes on where it was when the same command is given again: FILE.progress remembers.
Then up to one batch (1,000 lines) is loaded twice: harmless where lines have timestamps or sequences of their own.
Exit code 0 also if lines were rejected; see the count.)";

}  // namespace

void AddImportCommand(CLI::App& app, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* import = app.add_subcommand("import", "Load a file of JSON lines into a dataset");
  import->add_option("dataset", args->dataset)->required();
  import->add_option("file", args->file, "- or nothing: standard input")->capture_default_str();
  import
      ->add_option("--reject-file", args->reject_file,
                   "Where lines that are wrong go; FILE.rejects by default")
      ->type_name("FILE");
  import->add_flag("--restart", args->restart, "Begin at the first line, whatever FILE.progress says");
  import->footer(kFooter);
  import->callback([args, &globals] {
    if (args->file != "-") {
      args->progress_file = args->file + ".progress";
  if (args->reject_file.empty()) args->reject_file = args->file + ".rejects";
}
const auto store = globals.OpenStore(false);
State state;
double seconds = 0;
{
  Import import_run(*args, *store);
  state = import_run.Run();
  seconds = import_run.Seconds();
}
if (globals.json) {
  PrintJson({{"ok", true},
             {"lines", state.lines},
             {"imported", state.imported},
             {"rejected", state.rejected},
             {"seconds", seconds}});
  return;
}
fmt::print("{} lines: {} imported, {} rejected, in {:.1f} s ({:.0f} lines a second)\n", state.lines,
           state.imported, state.rejected, seconds,
           static_cast<double>(state.lines) / std::max(seconds, 0.001));
if (state.rejected > 0 && !args->reject_file.empty())
  fmt::print("rejected lines are in {}\n", args->reject_file);
}  // namespace kvstore::cli
);
}

}  // namespace kvstore::cli
