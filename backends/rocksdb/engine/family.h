#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "backend_api/row_rules.h"
#include "backends/rocksdb/engine/gate.h"
#include "backends/rocksdb/engine/iterator_pool.h"
#include "backends/rocksdb/engine/timestamps.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kvstore_api/dataset.h"

namespace kvstore::rocks {

/// The settings of a dataset, some of which change while it is in use. Thread-safe.
struct FamilySettings {
  explicit FamilySettings(const DatasetSpec& spec)
      : name(spec.name),
        incarnation(spec.incarnation),
        max_versions(spec.max_versions),
        ttl_ms(spec.ttl_ms),
        sync(spec.durability == Durability::kMachine),
        keep_changes_ms(spec.keep_changes_ms) {}

  void Set(const DatasetSpec& spec) {
    const MutexLock lock(set_mutex_);
    const bool synced = spec.durability == Durability::kMachine;
    // Each store that is opened sets them, mostly to what they are, and that is no change.
    if (max_versions == spec.max_versions && ttl_ms == spec.ttl_ms && sync == synced &&
        keep_changes_ms == spec.keep_changes_ms)
      return;
    changes.fetch_add(1, std::memory_order_acq_rel);
    max_versions = spec.max_versions;
    ttl_ms = spec.ttl_ms;
    sync = synced;
    keep_changes_ms = spec.keep_changes_ms;
    changes.fetch_add(1, std::memory_order_acq_rel);
  }

  /// Returns the lowest timestamp (ms) that has not expired now; 0 if the dataset has no time to live, and
  /// then the clock is not read.
  uint64_t OldestVisible() const {
    const uint64_t ttl = ttl_ms.load(std::memory_order_relaxed);
    return ttl == 0 ? 0 : kvstore::OldestVisible(ttl, WallClockMs());
  }

  const std::string name;
  const uint64_t incarnation;
  std::atomic<uint32_t> max_versions;
  std::atomic<uint64_t> ttl_ms;
  std::atomic<bool> sync;
  std::atomic<uint64_t> keep_changes_ms;
  static constexpr uint32_t kNeverAltered = 0;
  /// Is odd while Set changes the others; kNeverAltered until it changes one for the first time, so that all
  /// compactions of this process have begun with the settings of now.
  std::atomic<uint32_t> changes{kNeverAltered};
  std::atomic<uint64_t> expired_cells{0};  // dropped by compactions since this process opened the family

 private:
  Mutex set_mutex_;  // one thread at a time sets them, so that `changes` is odd while any does
};

/// The open column family of a dataset. Must be destroyed before the database is closed.
struct Family {
  Family(rocksdb::DB* owner, rocksdb::ColumnFamilyHandle* opened, std::shared_ptr<FamilySettings> live,
         std::shared_ptr<IdleIterators> idle)
      : db(owner),
        handle(opened),
        settings(std::move(live)),
        iterators(std::make_unique<IteratorPool>(owner, opened, std::move(idle))) {}
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  ~Family() {
    iterators.reset();
    if (!leaves_handle) db->DestroyColumnFamilyHandle(handle);
  }

  /// Whether what is read from now on is what is there until somebody writes, as long as the settings are
  /// those of this number (FamilySettings::changes). It is not while settings change, nor while a compaction
  /// runs that may have begun with other settings: it drops cells that are visible now.
  bool IsSettled(uint32_t changes) const {
    return changes == FamilySettings::kNeverAltered || (changes % 2 == 0 && !iterators->is_compacting());
  }

  rocksdb::DB* const db;
  rocksdb::ColumnFamilyHandle* const handle;
  /// Whether the handle is somebody else's to destroy. Set before others have the family.
  bool leaves_handle = false;
  const std::shared_ptr<FamilySettings> settings;
  std::unique_ptr<IteratorPool> iterators;  // never null
  Gate gate;
  std::atomic<uint32_t> ranges{0};  ///< Range tombstones written since FlushRanges began a flush.
};

}  // namespace kvstore::rocks
