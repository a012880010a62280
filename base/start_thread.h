#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/fail_point.h"

namespace kvstore {

/// Starts a thread, into `thread`, which has none. UNAVAILABLE, without an exception, if the system gives no
/// more threads (ulimit -u, the pids limit of a service).
///
/// what  says for whom: "the log of 10.0.0.1:3306".
template <typename Work>
absl::Status StartThread(std::thread& thread, std::string_view what, Work&& work) {
  try {
    Reached("start-thread");
    thread = std::thread(std::forward<Work>(work));
    return absl::OkStatus();
  } catch (const std::system_error& error) {
    std::string message = "cannot start a thread for ";
    message.append(what).append(": the system gives no more (").append(error.what()).append(")");
    return absl::UnavailableError(message);
  }
}

}  // namespace kvstore
