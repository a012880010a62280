#include "operate/fence.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "shardops/program.h"

namespace kvstore::operate {
namespace {

/// How often the program is asked whether it has ended.
constexpr std::chrono::milliseconds kFencePoll{20};

}  // namespace

absl::Status RunFence(const OperateOptions& options, const Host& host) {
  std::vector<std::string> command = options.fence;
  command.push_back(host.ToString());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(options.fence_ms);
  shardops::Program program(std::move(command), /*in=*/-1, /*out=*/-1);
  for (;;) {
    if (const auto ended = program.TryJoin()) {
      if (!absl::IsFailedPrecondition(*ended)) return *ended;
      return absl::FailedPreconditionError(
          fmt::format("{} (operate.fence) cannot be run: there is no such program", options.fence.front()));
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError(fmt::format("{} {} has not ended within {} ms (operate.fence_ms)",
                                                     options.fence.front(), host.ToString(),
                                                     options.fence_ms));
    }
    std::this_thread::sleep_for(kFencePoll);
  }
}

}  // namespace kvstore::operate
