#include "server/call/call_log.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace kvstore::server {
namespace {

/// Error messages may quote a name of megabytes. A caller must not be able to fill the disk by its mistakes.
constexpr size_t kMaxMessageBytes = 500;

std::string Shortened(std::string_view text) {
  std::string message(text.substr(0, kMaxMessageBytes));
  if (message.size() < text.size()) message += "...";
  return message;
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

bool CallLog::Wants(double seconds, const absl::Status& status) const {
  return (slow_seconds_ > 0 && seconds >= slow_seconds_) || !IsAnswer(status);
}

void CallLog::Write(const CallRecord& record, const absl::Status& status) {
  std::optional<uint64_t> left_out = 0;
  if (!record.is_audited) left_out = lines_.Admit(LineLimit::Clock::now());
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
  line["request_bytes"] = record.request_bytes;
  line["response_bytes"] = record.response_bytes;
  if (!status.ok()) line["message"] = Shortened({status.message().data(), status.message().size()});
  if (*left_out > 0) line["lines_left_out"] = *left_out;
  const std::string text =
      line.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  if (IsAnswer(status)) {
    spdlog::info("{}", text);
  } else {
    spdlog::warn("{}", text);
  }
}

}  // namespace kvstore::server
