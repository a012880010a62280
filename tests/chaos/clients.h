#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "tests/chaos/fleet.h"
#include "tests/chaos/tenants.h"

namespace kvstore::testing::chaos {

using Tenants = std::vector<std::unique_ptr<Tenant>>;

/// The clients: a thread for each dataset, which calls any of the servers. Errors are counted by their kind.
/// While hosts and servers may be away they are no failures, except those that no fault explains: DATA_LOSS,
/// and NOT_FOUND of a dataset that nobody drops.
class Clients {
 public:
  Clients(Fleet& fleet, Tenants& tenants, Log& log, uint64_t seed);
  ~Clients() { Stop(); }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  void Stop();
  /// Returns how many calls there were, and how many errors of each kind.
  std::string Summary() const;

 private:
  void Run(Tenant& tenant, uint64_t seed);
  void Count(const Tenant& tenant, const absl::Status& status);

  Fleet& fleet_;
  Log& log_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> calls_{0};
  mutable Mutex mutex_;
  std::map<std::string, uint64_t> errors_ ABSL_GUARDED_BY(mutex_);  // how many there were of each kind
  std::vector<std::thread> threads_;
};

}  // namespace kvstore::testing::chaos
