#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/statistics.h>
#include <rocksdb/version.h>
#if ROCKSDB_MAJOR >= 8
#include <rocksdb/advanced_cache.h>
#endif

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kvstore::rocks {

/// Answers of reads that were asked for again, kept in memory beside the blocks of files, in the same cache
/// and within its limit; those that nobody reads make room.
///
/// No stale answer is found. Each row has a counter, which many rows share, of the writes that have begun,
/// and of those that are under way. A write counts itself (Change) before it can be seen. An answer is kept
/// with the counter as it was before it was read, when no write was under way, and is found only as long as
/// the counter is the same. So nothing has to be removed, and neither reads nor writes wait. A write may keep
/// the answer as it is after it, in place of the one before.
///
/// An answer may also depend on other things: what they are must be part of its key. Thread-safe.
class AnswerCache {
 public:
  /// Keys must be longer than this, since those of blocks in the same cache are not.
  static constexpr size_t kBlockKeyBytes = 16;
  /// Larger answers are not kept.
  static constexpr size_t kMaxAnswerBytes = size_t{64} << 10;

  AnswerCache(std::shared_ptr<rocksdb::Cache> cache, std::shared_ptr<rocksdb::Statistics> statistics)
      : cache_(std::move(cache)), statistics_(std::move(statistics)) {}

  /// Marks a write of a row that is being made: it is constructed before any reader can see the write, and
  /// destroyed when all can. The cache must outlive it.
  class Change {
   public:
    /// cache  may be null, and then nothing is counted.
    Change(AnswerCache* cache, uint64_t row_hash)
        : counter_(cache == nullptr ? nullptr : &cache->RowOf(row_hash).counter) {
      if (counter_ != nullptr) before_ = counter_->fetch_add(kBegun + 1, std::memory_order_acq_rel);
    }
    ~Change() {
      if (counter_ != nullptr) counter_->fetch_sub(1, std::memory_order_acq_rel);
    }
    Change(Change&& other) noexcept
        : counter_(std::exchange(other.counter_, nullptr)), before_(other.before_) {}
    Change& operator=(Change&&) = delete;

   private:
    friend class AnswerCache;

    std::atomic<uint64_t>* counter_;
    uint64_t before_ = 0;  // the counter
  };

  /// An answer that was found; it is kept as long as this exists. The cache must outlive it.
  class Found {
   public:
    ~Found();
    Found(Found&& other) noexcept : cache_(other.cache_), handle_(std::exchange(other.handle_, nullptr)) {}
    Found& operator=(Found&&) = delete;
    std::string_view answer() const;

   private:
    friend class AnswerCache;
    Found(rocksdb::Cache& cache, rocksdb::Cache::Handle* handle) : cache_(cache), handle_(handle) {}

    rocksdb::Cache& cache_;
    rocksdb::Cache::Handle* handle_;  // null: moved from
  };

  /// Returns the kept answer to a read of a row; nullopt if there is none. The caller then calls CountRead.
  std::optional<Found> Find(uint64_t row_hash, std::string_view key);
  /// Counts a read, which a kept answer has served or not.
  void CountRead(bool served) {
    statistics_->recordTick(served ? rocksdb::ROW_CACHE_HIT : rocksdb::ROW_CACHE_MISS, 1);
  }
  /// To be called before a row is read whose answer was not found. Returns what Add needs, or nullopt if the
  /// answer is not to be kept, since the row is being written, or nobody has read it lately.
  std::optional<uint64_t> BeforeRead(uint64_t row_hash);
  /// Keeps an answer.
  ///
  /// before  what BeforeRead returned.
  void Add(uint64_t before, std::string_view key, std::string answer);

  /// Returns whether the row is the one of those which share its counter that was read last.
  bool WasReadLately(uint64_t row_hash) {
    return RowOf(row_hash).last_read.load(std::memory_order_relaxed) == TagOf(row_hash);
  }
  /// Finds the answer to a read of the row that a write changes, as it was before the write.
  std::optional<Found> FindBefore(const Change& change, std::string_view key);
  /// Keeps the answer as it is after the write, which has been made; it is found when the change has ended,
  /// unless there were other writes meanwhile.
  void AddAfter(const Change& change, std::string_view key, std::string answer) {
    Add(change.before_ + kBegun, key, std::move(answer));
  }

 private:
  /// The lower bits of a counter are the writes that are under way; the upper ones those that have begun.
  static constexpr uint64_t kBegun = uint64_t{1} << 16;
  static constexpr size_t kRows = size_t{1} << 17;

  struct Row {
    std::atomic<uint64_t> counter{0};
    std::atomic<uint32_t> last_read{0};  // a part of the hash of the row that was read last
  };
  Row& RowOf(uint64_t row_hash) { return (*rows_)[row_hash % kRows]; }
  /// The lower bits have chosen the counter; 0 is what nobody has read.
  static uint32_t TagOf(uint64_t row_hash) { return static_cast<uint32_t>(row_hash >> 32) | 1; }
  /// Finds what was kept under this counter.
  std::optional<Found> FindKept(uint64_t counter, std::string_view key);

  const std::shared_ptr<rocksdb::Cache> cache_;
  const std::shared_ptr<rocksdb::Statistics> statistics_;
  const std::unique_ptr<std::array<Row, kRows>> rows_ = std::make_unique<std::array<Row, kRows>>();
};

}  // namespace kvstore::rocks
