#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/report.h"
#include "kvstore_api/connect.h"

namespace kvstore::bench {

struct ServerBenchOptions {
  /// Address of the server to measure; empty: one is started, on an embedded store of its own.
  std::string address;
  ConnectOptions connection;
  int rounds = 9;
  double seconds = 0.4;
  uint64_t rows = 20'000;          ///< Rows to load, of one value of 1 KiB each.
  std::vector<std::string> paths;  ///< Only these; empty: all.
};

/// Compares a server with a bare gRPC service that has the same payloads, threads and connections and runs in
/// a process of its own on this machine: get_row with 1, 8 and 32 clients, a batch of 100 rows, a scan.
absl::StatusOr<Report> BenchServer(const ServerBenchOptions& options);

/// Serves the bare service on a free port of the loopback interface, which it prints, until standard input
/// ends. Called in a process of its own.
void RunEchoServer();

}  // namespace kvstore::bench
