#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/history.h"
#include "bench/report.h"
#include "bench/timeline.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::bench {

/// Threads that put, delete and read rows of a dataset, at a pace that leaves the machine to others too, and
/// remember what they were told.
class Clients {
 public:
  /// Keys that they write.
  static constexpr uint32_t kKeys = 4000;

  /// All of these must outlive it.
  Clients(KVStore& store, std::string dataset, Timeline& timeline, History& history, int threads);
  ~Clients() { Stop(); }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;
  void Stop();
  /// Calls that failed.
  uint64_t errors() const { return errors_; }

 private:
  void Run(uint64_t seed);

  KVStore& store_;
  const std::string dataset_;
  Timeline& timeline_;
  History& history_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> errors_{0};
  std::vector<std::thread> threads_;
};

struct ClientsOptions {
  std::string dataset = "kv_bench_clients";  ///< Made, of rows, and dropped at the end.
  int threads = 4;
};

/// Clients call a store until `wait` returns, while something is done to it: how many calls there were, how
/// many failed, how long the longest took. DATA_LOSS if what they were told has no explanation: a write was
/// lost, or came back, or time went back.
absl::StatusOr<Report> BenchClients(KVStore& store, const ClientsOptions& options,
                                    const std::function<void()>& wait);

}  // namespace kvstore::bench
