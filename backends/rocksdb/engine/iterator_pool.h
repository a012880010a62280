#pragma once

#include <rocksdb/db.h>
#include <rocksdb/iterator.h>
#include <rocksdb/listener.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace kvstore::rocks {

class IteratorPool;

/// Clears the pool of a family after each of its flushes and compactions: an iterator keeps the memory and
/// the files of its time from being given back. Thread-safe; outlives the pools and the database.
class IdleIterators : public rocksdb::EventListener {
 public:
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override;
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;

 private:
  friend class IteratorPool;
  void Clear(uint32_t family);

  std::mutex mutex_;
  std::map<uint32_t, IteratorPool*> pools_;  // by ID of the family; guarded by mutex_
};

/// Iterators over a family that reads have left for the next ones: to make one costs more than most reads
/// that are made with it. Thread-safe, without a lock.
class IteratorPool {
  struct Idle;

 public:
  /// An iterator for one read. Externally synchronised.
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

  /// The database and the family must outlive the pool, which `idle` clears; not null.
  IteratorPool(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, std::shared_ptr<IdleIterators> idle);
  /// All leases have ended.
  ~IteratorPool();
  IteratorPool(const IteratorPool&) = delete;
  IteratorPool& operator=(const IteratorPool&) = delete;

  /// An iterator over what there is now, in [lower, upper), which lie in one prefix; at no key yet. It stops
  /// among deleted cells: see deleted.h.
  Lease Take(std::string_view lower, std::string_view upper);

  /// Gives back what idle iterators hold; those that are at work go when they come back.
  void Clear();

 private:
  struct Idle {
    uint64_t generation = 0;
    rocksdb::SequenceNumber written = 0;  // the last write that it shows, or one before
    std::string lower;
    std::string upper;
    rocksdb::Slice lower_slice;  // RocksDB looks at these at each seek
    rocksdb::Slice upper_slice;
    std::unique_ptr<rocksdb::Iterator> iterator;
  };
  /// As many threads find one of their own.
  static constexpr size_t kSlots = 16;

  std::atomic<Idle*>& Slot();
  void Return(std::unique_ptr<Idle> idle);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const std::shared_ptr<IdleIterators> idle_;
  std::atomic<uint64_t> generation_{0};  // one more after each Clear
  std::array<std::atomic<Idle*>, kSlots> slots_{};
};

}  // namespace kvstore::rocks
