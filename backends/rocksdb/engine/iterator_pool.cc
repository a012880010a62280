#include "backends/rocksdb/engine/iterator_pool.h"

#include <utility>

#include "backends/rocksdb/engine/deleted.h"

namespace kvstore::rocks {

// ---- clearing after flushes and compactions ----

void IdleIterators::OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& info) { Clear(info.cf_id); }

void IdleIterators::OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo& info) {
  CountCompaction(info.cf_id, 1);
}

void IdleIterators::OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& info) {
  Clear(info.cf_id);
  CountCompaction(info.cf_id, -1);
}

void IdleIterators::Clear(uint32_t family) {
  const MutexLock lock(mutex_);
  if (const auto pool = pools_.find(family); pool != pools_.end()) pool->second->Clear();
}

void IdleIterators::CountCompaction(uint32_t family, int by) {
  const MutexLock lock(mutex_);
  const auto pool = pools_.find(family);
  if (pool == pools_.end()) return;
  // One that began before the pool was made was not counted.
  if (by > 0 || pool->second->compactions_ > 0) pool->second->compactions_ += by;
}

// ---- the pool ----

IteratorPool::IteratorPool(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                           std::shared_ptr<IdleIterators> idle)
    : db_(db), family_(family), idle_(std::move(idle)) {
  const MutexLock lock(idle_->mutex_);
  idle_->pools_[family_->GetID()] = this;
}

IteratorPool::~IteratorPool() {
  {
    const MutexLock lock(idle_->mutex_);
    idle_->pools_.erase(family_->GetID());
  }
  Clear();
}

std::atomic<IteratorPool::Idle*>& IteratorPool::Slot() {
  static std::atomic<size_t> threads{0};
  static thread_local const size_t thread = threads.fetch_add(1, std::memory_order_relaxed);
  return slots_[thread % kSlots];
}

IteratorPool::Lease IteratorPool::Acquire(std::string_view lower, std::string_view upper) {
  // Both are read before the iterator reads the database: Return then notices a later flush, and the next
  // Acquire a later write.
  const uint64_t generation = generation_.load(std::memory_order_seq_cst);
  const rocksdb::SequenceNumber written = db_->GetLatestSequenceNumber();
  std::unique_ptr<Idle> idle(Slot().exchange(nullptr, std::memory_order_acq_rel));
  const bool again = idle != nullptr;
  if (!again) idle = std::make_unique<Idle>();
  // The iterator is up to date if nothing was written since it was made or refreshed.
  const bool current = again && idle->written == written;
  idle->generation = generation;
  idle->written = written;
  idle->lower.assign(lower);
  idle->upper.assign(upper);
  idle->lower_slice = idle->lower;
  idle->upper_slice = idle->upper;
  if (!current && (!again || !idle->iterator->Refresh().ok())) {
    rocksdb::ReadOptions options;
    options.max_skippable_internal_keys = kMaxDeletedInARow;
    options.iterate_lower_bound = &idle->lower_slice;
    options.iterate_upper_bound = &idle->upper_slice;
    idle->iterator.reset(db_->NewIterator(options, family_));
  }
  return {*this, std::move(idle)};
}

void IteratorPool::Return(std::unique_ptr<Idle> idle) {
  const uint64_t generation = idle->generation;
  // An iterator that has failed would stay failed, so it is not kept.
  if (!idle->iterator->status().ok() || generation != generation_.load(std::memory_order_seq_cst)) return;
  std::atomic<Idle*>& slot = Slot();
  const std::unique_ptr<Idle> other(slot.exchange(idle.release(), std::memory_order_seq_cst));
  // Clear ran meanwhile, and may have emptied the slot before the iterator was in it.
  if (generation != generation_.load(std::memory_order_seq_cst)) {
    const std::unique_ptr<Idle> late(slot.exchange(nullptr, std::memory_order_acq_rel));
  }
}

void IteratorPool::Clear() {
  generation_.fetch_add(1, std::memory_order_seq_cst);
  for (std::atomic<Idle*>& slot : slots_) {
    const std::unique_ptr<Idle> idle(slot.exchange(nullptr, std::memory_order_seq_cst));
  }
}

}  // namespace kvstore::rocks
