#include "cli/waiting.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <string>

#include "cli/escape.h"

namespace kvstore::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{300};

}  // namespace

std::function<void(const absl::Status&, std::optional<std::chrono::milliseconds>)> TellOfWaiting() {
  using Clock = std::chrono::steady_clock;
  const auto told = std::make_shared<std::atomic<bool>>(false);
  return
      [told, begun = Clock::now()](const absl::Status& error, std::optional<std::chrono::milliseconds> left) {
        if (Clock::now() - begun < kPatience || told->exchange(true)) return;
        const std::string limit = left ? fmt::format("for up to {:.1f} s more (--timeout-ms)",
                                                     std::chrono::duration<double>(*left).count())
                                       : "a few times";
        PrintErr("kv: {}; trying again {}\n", std::string(error.message()), limit);
      };
}

}  // namespace kvstore::cli
