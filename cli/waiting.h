#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "absl/status/status.h"

namespace kvstore::cli {

/// Returns a function for ConnectOptions::on_lost that says on standard error that the command waits for its
/// server, for how long, and why: once, and not before the server was missed for some tenths of a second,
/// because a server that restarts is often back by then. That time counts from this call, when the command
/// begins; a server that is lost later is told of at once. Thread-safe.
std::function<void(const absl::Status& error, std::optional<std::chrono::milliseconds> left)> TellOfWaiting();

}  // namespace kvstore::cli
