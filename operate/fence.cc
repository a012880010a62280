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
constexpr std::chrono::seconds kWaitsEvery{2};

}  // namespace

absl::Status RunFence(const OperateOptions& options, const Host& host, const std::function<void()>& waits) {
  std::vector<std::string> command = options.fence;
  command.push_back(host.ToString());
  const auto begin = std::chrono::steady_clock::now();
  const auto deadline = begin + std::chrono::milliseconds(options.fence_ms);
  auto next = begin + kWaitsEvery;
  shardops::Program program(std::move(command), /*in=*/-1, /*out=*/-1);
  for (;;) {
    if (const auto ended = program.TryJoin()) {
      if (!absl::IsFailedPrecondition(*ended)) return *ended;
      return absl::FailedPreconditionError(
          fmt::format("{} (operate.fence) cannot be run: there is no such program", options.fence.front()));
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= next) {
      next = now + kWaitsEvery;
      waits();
    }
    if (now >= deadline) {
      return absl::DeadlineExceededError(fmt::format("{} {} has not ended within {} ms (operate.fence_ms)",
                                                     options.fence.front(), host.ToString(),
                                                     options.fence_ms));
    }
    std::this_thread::sleep_for(kFencePoll);
  }
}

}  // namespace kvstore::operate
