#pragma once

#include <memory>

#include "backends/cached/servers/server.h"

namespace kvstore::cached {

/// The parts that keys have on Redis servers.
inline constexpr std::string_view kRedisParts = "adc";

/// Opens a Redis server (5 or later), which is connected to when it is needed. Its keys have the parts of
/// kRedisParts.
///
/// A key K is several keys of Redis: K:vP the value of part P, K:lP its lease, K:m a hash of the marks.
/// Scripts change them, so that each change is one step. A server that is restarted may bring back what it
/// had saved, which is old by then; so the guard is stored with the number that Redis gives to each of its
/// runs, and is valid in that run only.
std::unique_ptr<Server> OpenRedis(const ServerOptions& options);

}  // namespace kvstore::cached
