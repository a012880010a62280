#include "cli/log_format.h"

#include <spdlog/pattern_formatter.h>

#include <ctime>
#include <string>
#include <string_view>

#include "cli/escape.h"

namespace kvstore::cli {
namespace {

class PrintableMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::string text =
        Printable(std::string_view(message.payload.data(), message.payload.size()), Lines::kOne);
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

}  // namespace

std::unique_ptr<spdlog::formatter> PrintableLogFormat() {
  auto format = std::make_unique<spdlog::pattern_formatter>();
  format->add_flag<PrintableMessage>('v');
  format->set_pattern("[%Y-%m-%d %H:%M:%S.%e] [%n] [%^%l%$] %v");
  return format;
}

}  // namespace kvstore::cli
