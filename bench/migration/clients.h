#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/harness/report.h"
#include "bench/harness/timeline.h"
#include "kvstore_api/kvstore.h"
#include "testing/history.h"

namespace kvstore::bench {

/// Threads that put, delete and read rows of a dataset, at a pace that leaves room for others on the machine,
/// and record every answer.
class Clients {
 public:
  /// Number of keys that they write.
  static constexpr uint32_t kKeys = 4000;

  /// All arguments must outlive it.
  Clients(KVStore& store, std::string dataset, Timeline& timeline, testing::History& history, int threads);
  ~Clients() { Stop(); }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;
  void Stop();
  /// Returns the number of calls that failed.
  uint64_t errors() const { return errors_; }

 private:
  void Run(uint64_t seed);

  KVStore& store_;
  const std::string dataset_;
  Timeline& timeline_;
  testing::History& history_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> errors_{0};
  std::vector<std::thread> threads_;
};

struct ClientsOptions {
  std::string dataset = "kv_bench_clients";  ///< Created with shape rows, and dropped at the end.
  int threads = 4;
};

/// Runs clients on a store until `wait` returns, while something else is done to the store. Reports how many
/// calls there were, how many failed, and how long the longest took. DATA_LOSS if no order of the calls
/// explains the answers: a write was lost, or a deleted one came back, or time went back.
absl::StatusOr<Report> BenchClients(KVStore& store, const ClientsOptions& options,
                                    const std::function<void()>& wait);

}  // namespace kvstore::bench
