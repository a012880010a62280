#include "server/call/call_log.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "server/call/quota.h"

namespace kvstore::server {
namespace {

/// Error messages may quote a name of megabytes. A caller must not be able to fill the disk by its mistakes.
constexpr size_t kMaxMessageBytes = 500;

std::string Shortened(std::string_view text) {
  std::string message(text.substr(0, kMaxMessageBytes));
  if (message.size() < text.size()) message += "...";
  return message;
}

/// Returns whether the call failed by its own arguments, or by a limit of its caller or dataset. The caller
/// is told, and the operator of the server has nothing to mend.
bool IsCallers(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || RetryAfter(status).has_value();
}

/// Returns whether the status is an answer that callers expect, and no failure.
bool IsAnswer(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool CallLog::IsSlow(double seconds) const { return slow_seconds_ > 0 && seconds >= slow_seconds_; }

bool CallLog::Wants(double seconds, const absl::Status& status) const {
  if (IsSlow(seconds)) return true;
  return IsCallers(status) ? spdlog::should_log(spdlog::level::debug) : !IsAnswer(status);
}

void CallLog::Write(const CallRecord& record, const absl::Status& status) {
  const bool is_detail = IsCallers(status) && !IsSlow(record.seconds) && !record.is_audited;
  std::optional<uint64_t> left_out = 0;
  if (!record.is_audited) left_out = (is_detail ? details_ : lines_).Admit(LineLimit::Clock::now());
  if (!left_out) return;
  nlohmann::ordered_json line = {{"call", record.operation}};
  if (record.begins) {
    line["begins"] = true;
  } else {
    line["code"] = absl::StatusCodeToString(status.code());
    line["ms"] = static_cast<uint64_t>(record.seconds * 1e3);
  }
  if (!record.what.empty()) line["what"] = Shortened(record.what);
  line["dataset"] = record.dataset;
  line["backend"] = record.backend;
  line["caller"] = record.principal;
  line["peer"] = record.peer;
  line["door"] = record.door;
  line["request_bytes"] = record.request_bytes;
  line["response_bytes"] = record.response_bytes;
  if (!status.ok()) line["message"] = Shortened({status.message().data(), status.message().size()});
  if (*left_out > 0) line["lines_left_out"] = *left_out;
  const std::string text =
      line.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  const bool is_good = IsCallers(status) || IsAnswer(status);
  spdlog::log(is_detail ? spdlog::level::debug
              : is_good ? spdlog::level::info
                        : spdlog::level::warn,
              "{}", text);
}

}  // namespace kvstore::server
