#pragma once

#include <rocksdb/db.h>
#include <rocksdb/iterator.h>
#include <rocksdb/listener.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace kvstore::rocks {

class IteratorPool;

/// Clears the iterator pool of a family after each of its flushes and compactions, because an iterator keeps
/// the memtables and files that it reads from being freed; and tells it of compactions that run. Thread-safe;
/// outlives the pools and the database.
class IdleIterators : public rocksdb::EventListener {
 public:
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override;
  void OnCompactionBegin(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;

 private:
  friend class IteratorPool;
  void Clear(uint32_t family);
  void CountCompaction(uint32_t family, int by);

  Mutex mutex_;
  std::map<uint32_t, IteratorPool*> pools_ ABSL_GUARDED_BY(mutex_);  // by ID of the family
};

/// Idle iterators over one family, which reads reuse: creating an iterator costs more than most of the reads
/// made with it. Thread-safe, without a lock.
class IteratorPool {
  friend class IdleIterators;  // counts compactions_
  struct Idle;

 public:
  /// An iterator for one read, which goes back to the pool at the end of the lease. Externally synchronised.
  class Lease {
   public:
    ~Lease() { pool_.Return(std::move(idle_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    rocksdb::Iterator& operator*() const { return *idle_->iterator; }
    rocksdb::Iterator* operator->() const { return idle_->iterator.get(); }

   private:
    friend class IteratorPool;
    Lease(IteratorPool& pool, std::unique_ptr<Idle> idle) : pool_(pool), idle_(std::move(idle)) {}

    IteratorPool& pool_;
    std::unique_ptr<Idle> idle_;
  };

  /// idle  clears the pool after flushes and compactions; not null. The database and the family must outlive
  ///       the pool.
  IteratorPool(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, std::shared_ptr<IdleIterators> idle);
  /// All leases must have ended.
  ~IteratorPool();
  IteratorPool(const IteratorPool&) = delete;
  IteratorPool& operator=(const IteratorPool&) = delete;

  /// Leases an iterator over the current content of [lower, upper), both of which must lie in one prefix. It
  /// is at no key yet. It stops among deleted cells: see deleted.h.
  Lease Acquire(std::string_view lower, std::string_view upper);

  /// Whether a compaction of the family runs: from before it reads its settings until after its files are in
  /// use.
  bool is_compacting() const { return compactions_.load(std::memory_order_acquire) != 0; }

  /// Destroys the idle iterators; those on lease are destroyed when they are returned.
  void Clear();

 private:
  struct Idle {
    uint64_t generation = 0;
    rocksdb::SequenceNumber written = 0;  // the iterator shows at least the writes up to this one
    std::string lower;
    std::string upper;
    rocksdb::Slice lower_slice;  // RocksDB reads both slices at each seek
    rocksdb::Slice upper_slice;
    std::unique_ptr<rocksdb::Iterator> iterator;
  };
  /// So many threads have a slot of their own; more share them.
  static constexpr size_t kSlots = 16;

  std::atomic<Idle*>& Slot();
  void Return(std::unique_ptr<Idle> idle);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const std::shared_ptr<IdleIterators> idle_;
  std::atomic<int> compactions_{0};      // that run
  std::atomic<uint64_t> generation_{0};  // incremented by each Clear
  std::array<std::atomic<Idle*>, kSlots> slots_{};
};

}  // namespace kvstore::rocks
