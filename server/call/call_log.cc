#include "server/call/call_log.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

namespace kvstore::server {
namespace {

/// Error messages may quote a name of megabytes. A caller must not be able to fill the disk by its mistakes.
constexpr size_t kMaxMessageBytes = 500;

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
  const auto left_out = lines_.Admit(LineLimit::Clock::now());
  if (!left_out) return;
  nlohmann::ordered_json line = {{"call", record.operation},
                                 {"door", record.door},
                                 {"code", absl::StatusCodeToString(status.code())},
                                 {"ms", static_cast<uint64_t>(record.seconds * 1e3)},
                                 {"dataset", record.dataset},
                                 {"backend", record.backend},
                                 {"caller", record.principal},
                                 {"peer", record.peer},
                                 {"request_bytes", record.request_bytes},
                                 {"response_bytes", record.response_bytes}};
  if (!status.ok()) {
    std::string message(status.message().substr(0, kMaxMessageBytes));
    if (message.size() < status.message().size()) message += "...";
    line["message"] = std::move(message);
  }
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
