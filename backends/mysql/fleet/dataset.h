#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "backends/mysql/connection.h"
#include "backends/mysql/tables.h"
#include "kvstore_api/dataset.h"

namespace kvstore::mysql {

/// A dataset as its stores see it: its tables, and its settings, which may change while they are in use.
/// Thread-safe.
struct Dataset {
  Dataset(const DatasetSpec& spec, uint32_t number);

  /// Puts the changeable settings in force.
  void Set(const DatasetSpec& spec);
  /// Cells with a timestamp below this have expired. By the clock of the connection's server, which gives
  /// timestamps too: the clocks of the processes that ask may differ.
  uint64_t LowestLive(const Connection& connection) const {
    const uint64_t ttl = ttl_ms.load(std::memory_order_relaxed);
    const uint64_t now = ttl == 0 ? 0 : connection.ServerMs();
    return now > ttl ? now - ttl : 0;
  }
  /// FAILED_PRECONDITION if a write must be on stable storage when it is answered and the server does not do
  /// that.
  absl::Status CheckDurable(const Connection& connection, bool wanted) const;

  Table On(uint32_t shard) const { return {&family, shard}; }

  const TableFamily family;
  const uint64_t incarnation;
  const uint32_t type;
  std::atomic<uint32_t> max_versions;
  std::atomic<uint64_t> ttl_ms;
  std::atomic<bool> sync;
};

}  // namespace kvstore::mysql
