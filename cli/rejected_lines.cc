#include "cli/rejected_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/files.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "json/bytes_json.h"

namespace kvstore::cli {
namespace {

namespace fs = std::filesystem;

/// So many lines are told where there is no reject file.
constexpr size_t kTold = 5;

}  // namespace

RejectedLines::~RejectedLines() {
  if (out_ >= 0) ::close(out_);
}

void RejectedLines::Begin(const std::vector<std::string>& inputs) {
  if (file_.empty()) return;
  std::error_code error;
  for (const std::string& input : inputs) {
    if (input == "-" || !fs::equivalent(input, file_, error)) continue;
    throw Failure{absl::InvalidArgumentError(
        fmt::format("--reject-file: {} is a file that is loaded; name another one", file_))};
  }
  const fs::file_status there = fs::symlink_status(file_, error);
  if (fs::is_symlink(there)) {
    throw Failure{absl::FailedPreconditionError(
        fmt::format("--reject-file: {} is a symbolic link, which is not followed; remove it, or name another "
                    "file",
                    file_))};
  }
  if (fs::is_regular_file(there) && !fs::remove(file_, error)) {
    throw Failure{FileError(file_, "remove", error.value())};
  }
}

void RejectedLines::Add(uint64_t line, std::string_view text, const std::string& why) {
  if (file_.empty()) {
    ++kept_nowhere_;
    if (first_.size() < kTold) first_.push_back({line, why});
    return;
  }
  if (out_ < 0) out_ = OrFail(OpenForWriting(file_, append_ ? O_APPEND : O_TRUNC));
  const Json json = {{"line", line}, {"error", why}, {"text", BytesToJson(text)}};
  OrFail(WriteAll(out_, file_, ToLine(json) + "\n"));
}

void RejectedLines::Tell() const {
  if (kept_nowhere_ == 0) return;
  for (const Rejected& rejected : first_) PrintErr("line {}: {}\n", rejected.line, rejected.why);
  if (kept_nowhere_ > first_.size()) PrintErr("and {} more\n", kept_nowhere_ - first_.size());
  PrintErr("rejected lines are kept nowhere: --reject-file FILE would keep them, with the reasons\n");
}

Json RejectedLines::First() const {
  Json list = Json::array();
  for (const Rejected& rejected : first_) list.push_back({{"line", rejected.line}, {"error", rejected.why}});
  return list;
}

}  // namespace kvstore::cli
