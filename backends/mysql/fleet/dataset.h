#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/driver/tables.h"
#include "kvstore_api/dataset.h"

namespace kvstore::mysql {

/// A dataset as its stores see it: its tables, and its settings, which may change while calls run.
/// Thread-safe.
struct Dataset {
  /// number  TableFamily::number; no other Dataset of the process may have it.
  Dataset(const DatasetSpec& spec, uint32_t number);

  /// Puts those settings of `spec` in force that may change.
  void Apply(const DatasetSpec& spec);
  /// Returns the lowest timestamp that has not expired, by the clock of the connection's server. That clock
  /// also assigns timestamps; the clocks of client processes may differ from it.
  uint64_t LowestLive(const Connection& connection) const {
    const uint64_t ttl = ttl_ms.load(std::memory_order_relaxed);
    const uint64_t now = ttl == 0 ? 0 : connection.ServerMs();
    return now > ttl ? now - ttl : 0;
  }
  /// Returns FAILED_PRECONDITION if a write must be on stable storage before it is acknowledged, and the
  /// server does not do that.
  ///
  /// wanted  whether the call asks for it; the dataset's durability may ask for it too.
  absl::Status CheckDurable(const Connection& connection, bool wanted) const;

  /// Returns the dataset's table on a shard.
  Table TableOn(uint32_t shard) const { return {&family, shard}; }

  const TableFamily family;
  const uint64_t incarnation;
  const uint32_t type;
  std::atomic<uint32_t> max_versions;
  std::atomic<uint64_t> ttl_ms;
  std::atomic<bool> sync;
};

}  // namespace kvstore::mysql
