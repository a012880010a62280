#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/line_reader.h"
#include "client/reports.h"
#include "json_api/answers.h"
#include "json_api/execute.h"

/// kv exec: JSON lines on standard input and output.
namespace kvstore::cli {
namespace {

/// Large enough for a put of the largest size with each of its bytes escaped as \u00XX.
constexpr size_t kMaxRequestBytes = size_t{64} << 20;
constexpr size_t kMaxBufferedBytes = size_t{1} << 20;

/// Buffers answers. Throws Failure when standard output can no longer be written.
class Output {
 public:
  void Add(const std::string& line) {
    buffer_ += line;
    buffer_ += '\n';
    if (buffer_.size() >= kMaxBufferedBytes) Flush();
  }

  void Flush() {
    std::string_view rest = buffer_;
    while (!rest.empty()) {
      const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        throw Failure{
            absl::UnavailableError(fmt::format("cannot write the answers: {}", std::strerror(errno)))};
      }
      rest.remove_prefix(static_cast<size_t>(written));
    }
    buffer_.clear();
  }

 private:
  std::string buffer_;
};

void Exec(KVStore& store) {
  // With --server queries run there, and not over rows that come to this process.
  const reports::ReportsOf reports_of = [&store](const std::string& dataset) {
    return client::OpenReports(store, dataset);
  };
  Output output;
  LineReader reader(STDIN_FILENO, kMaxRequestBytes, [&output] {
    output.Flush();
    return absl::OkStatus();
  });
  std::string line;
  while (true) {
    const LineReader::Result result = OrFail(reader.Next(line));
    if (result == LineReader::Result::kEnd) break;
    if (result == LineReader::Result::kTooLong) {
      output.Add(ToLine(json_api::ErrorToJson(absl::InvalidArgumentError(
          fmt::format("request: the line is longer than the limit of {} bytes", kMaxRequestBytes)))));
    } else if (line.find_first_not_of(" \t\r") != std::string::npos) {
      output.Add(PrintableJson(json_api::Execute(store, reports_of, line)));
    }
  }
  output.Flush();
}

}  // namespace

void AddExecCommand(CLI::App& app, Globals& globals) {
  CLI::App* exec = app.add_subcommand("exec", "Execute requests given as JSON lines on standard input");
  exec->footer(
      R"(Reads one request a line and writes one answer a line, in the same order. A request that fails does not end the process.
docs/json-lines.md lists the operations. The store is created if there is none. Blank lines are skipped.

Example:
  printf '%s\n' '{"op":"create_dataset","dataset":"events"}' \
    '{"op":"put_row","dataset":"events","row":"user:7","items":[{"column":"click","value":"pin:3"}]}' \
    '{"op":"get_row","dataset":"events","row":"user:7"}' | kv exec --data /tmp/store)");
  exec->callback([&globals] { Exec(*globals.OpenStore(true)); });
}

}  // namespace kvstore::cli
