#include "backends/rocksdb/engine/answer_cache.h"

namespace kvstore::rocks {
namespace {

/// The value that the cache has under a key.
struct Kept {
  uint64_t before;
  std::string answer;
};

/// About how many bytes an entry takes besides its key and its answer.
constexpr size_t kEntryBytes = sizeof(Kept) + 64;

// RocksDB 8 changed how one tells a cache to delete what it has.
#if ROCKSDB_MAJOR >= 8
const rocksdb::Cache::CacheItemHelper kHelper(rocksdb::CacheEntryRole::kMisc,
                                              [](rocksdb::Cache::ObjectPtr kept, rocksdb::MemoryAllocator*) {
                                                delete static_cast<Kept*>(kept);
                                              });
rocksdb::Status Insert(rocksdb::Cache& cache, const rocksdb::Slice& key, Kept* kept, size_t charge) {
  return cache.Insert(key, kept, &kHelper, charge);
}
#else
rocksdb::Status Insert(rocksdb::Cache& cache, const rocksdb::Slice& key, Kept* kept, size_t charge) {
  return cache.Insert(key, kept, charge,
                      [](const rocksdb::Slice& /*key*/, void* entry) { delete static_cast<Kept*>(entry); });
}
#endif

const Kept& KeptIn(rocksdb::Cache& cache, rocksdb::Cache::Handle* handle) {
  return *static_cast<const Kept*>(cache.Value(handle));
}

}  // namespace

AnswerCache::Found::~Found() {
  if (handle_ != nullptr) cache_.Release(handle_);
}

std::string_view AnswerCache::Found::answer() const { return KeptIn(cache_, handle_).answer; }

std::optional<AnswerCache::Found> AnswerCache::FindKept(uint64_t counter, std::string_view key) {
  rocksdb::Cache::Handle* const handle = cache_->Lookup(rocksdb::Slice(key.data(), key.size()));
  if (handle == nullptr) return std::nullopt;
  Found found(*cache_, handle);
  if (KeptIn(*cache_, handle).before != counter) return std::nullopt;
  return found;
}

std::optional<AnswerCache::Found> AnswerCache::Find(uint64_t row_hash, std::string_view key) {
  return FindKept(RowOf(row_hash).counter.load(std::memory_order_acquire), key);
}

std::optional<AnswerCache::Found> AnswerCache::FindBefore(const Change& change, std::string_view key) {
  return change.before_ % kBegun == 0 ? FindKept(change.before_, key) : std::nullopt;
}

std::optional<uint64_t> AnswerCache::BeforeRead(uint64_t row_hash) {
  Row& row = RowOf(row_hash);
  if (!WasReadLately(row_hash)) {
    row.last_read.store(TagOf(row_hash), std::memory_order_relaxed);
    return std::nullopt;
  }
  const uint64_t counter = row.counter.load(std::memory_order_acquire);
  return counter % kBegun == 0 ? std::optional(counter) : std::nullopt;
}

void AnswerCache::Add(uint64_t before, std::string_view key, std::string answer) {
  const size_t charge = key.size() + answer.size() + kEntryBytes;
  auto kept = std::make_unique<Kept>(Kept{before, std::move(answer)});
  // Without a handle asked for, the cache deletes it if it cannot keep it.
  const auto status = Insert(*cache_, rocksdb::Slice(key.data(), key.size()), kept.release(), charge);
  status.PermitUncheckedError();
}

}  // namespace kvstore::rocks
