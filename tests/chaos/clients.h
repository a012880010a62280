#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/chaos/fleet.h"
#include "tests/chaos/tenants.h"

namespace kvstore::testing::chaos {

using Tenants = std::vector<std::unique_ptr<Tenant>>;

/// Clients: a thread for each dataset, which calls any of the servers. Errors are counted by their kind, and
/// are no failures while anything may be away; but for those that no fault explains: DATA_LOSS, and a dataset
/// that is not found although nobody drops it.
class Clients {
 public:
  Clients(Fleet& fleet, Tenants& tenants, Log& log, uint64_t seed);
  ~Clients() { Stop(); }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  void Stop();
  /// How many calls there were, and of what kinds those were that failed.
  std::string Summary() const;

 private:
  void Run(Tenant& tenant, uint64_t seed);
  void Count(const Tenant& tenant, const absl::Status& status);

  Fleet& fleet_;
  Log& log_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> calls_{0};
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> errors_;  // by kind; guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace kvstore::testing::chaos
