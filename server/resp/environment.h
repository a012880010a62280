#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "server/call/call.h"
#include "server/resp/commands/cursors.h"

namespace kvstore::server::resp {

/// Counts of connections and commands since the start. Thread-safe.
struct Figures {
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::atomic<size_t> connections{0};  ///< Open.
  std::atomic<uint64_t> connected{0};  ///< Since the start; also the number of the last one.
  std::atomic<uint64_t> commands{0};   ///< Commands that were decoded.
  std::atomic<uint64_t> cut{0};  ///< Connections that were ended for what their clients did, or did not.
};

/// How many connections may be open.
struct ConnectionLimits {
  size_t each_loop;    ///< The most of all callers and strangers together, on one loop.
  size_t each_caller;  ///< The most of one caller, on all loops.
};

/// The state that all connections share.
struct Environment {
  Core& core;
  Cursors& cursors;
  Figures& figures;
  const ConnectionLimits limits;
};

}  // namespace kvstore::server::resp
