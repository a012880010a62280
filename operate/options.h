#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// The options of `kv operate`, as a configuration has them.
namespace kvstore::operate {

struct OperateOptions {
  /// "host:port" of /metrics, /healthz and /readyz; empty: not served.
  std::string http;
  /// An address (http or https) to which each event is sent as JSON; empty: none.
  std::string webhook;
  /// A program, and its first arguments, that switches a host off or cuts it off from all clients, and ends
  /// with 0 once that is certain. It gets the host, "HOST:PORT", as its last argument. Empty: there is none.
  std::vector<std::string> fence;
  /// How long that program may take, in ms: 100 to 600,000. After that it is killed, and the slave does not
  /// take the master's place until a later attempt.
  uint64_t fence_ms = 30'000;
  /// The time from one check of the masters to the next, in ms: 100 to 60,000.
  uint64_t look_ms = 1'000;
  /// The hour of the day, UTC, from which on datasets are purged of expired and surplus cells; 24: never.
  uint64_t purge_hour = 3;
  /// A file to which each event is appended as a line of JSON; empty: none.
  std::filesystem::path journal;
};

}  // namespace kvstore::operate
