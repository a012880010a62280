#include "server/grpc/grpc_log.h"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "server/call/line_limit.h"

namespace kvstore::server {
namespace {

constexpr int kLinesPerSecond = 10;
constexpr size_t kMaxMessageBytes = 500;

void Write(gpr_log_func_args* args) {
  static LineLimit& limit = *new LineLimit(kLinesPerSecond);  // Threads of gRPC may log until the very end.
  const std::string_view message(args->message);
  // The process ends after such a line.
  const bool is_last = message.starts_with("assertion failed");
  const auto left_out = limit.Admit(LineLimit::Clock::now());
  if (!left_out && !is_last) return;
  std::string text(message.substr(0, kMaxMessageBytes));
  if (text.size() < message.size()) text += "...";
  if (left_out.value_or(0) > 0) text += fmt::format(" ({} lines were left out before)", *left_out);
  if (args->severity == GPR_LOG_SEVERITY_ERROR) {
    spdlog::warn("gRPC: {}", text);
  } else {
    spdlog::info("gRPC: {}", text);
  }
}

}  // namespace

void LimitGrpcLog() { gpr_set_log_function(&Write); }

}  // namespace kvstore::server
