#include "cli/rejected_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/escape.h"
#include "json/bytes_json.h"

namespace kvstore::cli {
namespace {

/// So many lines are told where there is no reject file.
constexpr size_t kTold = 5;

}  // namespace

void RejectedLines::Add(uint64_t line, std::string_view text, const std::string& why) {
  if (file_.empty()) {
    ++kept_nowhere_;
    if (first_.size() < kTold) first_.push_back({line, why});
    return;
  }
  if (!out_.is_open()) out_.open(file_, append_ ? std::ios::app : std::ios::trunc);
  const Json json = {{"line", line}, {"error", why}, {"text", BytesToJson(text)}};
  out_ << ToLine(json) << std::endl;
  if (!out_) throw Failure{absl::UnavailableError(fmt::format("cannot write {}", file_))};
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
