#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/report.h"
#include "client/options.h"

namespace kvstore::bench {

struct ServerBenchOptions {
  /// Of the server that is measured; empty: one is started, on an embedded store of its own.
  std::string address;
  ConnectOptions connection;
  int rounds = 9;
  double seconds = 0.4;
  uint64_t rows = 20'000;          ///< To load, of one value of 1 KiB each.
  std::vector<std::string> paths;  ///< Only these; empty: all.
};

/// Measures a server beside a bare gRPC service with the same payloads, threads and connections, in a process
/// of its own on this machine: get_row at 1, 8 and 32 clients, a batch of 100 rows, a scan.
absl::StatusOr<Report> BenchServer(const ServerBenchOptions& options);

/// Serves the bare service on a free port of the loopback interface, which it prints, until standard input
/// ends. Called in a process of its own.
void RunEchoServer();

}  // namespace kvstore::bench
