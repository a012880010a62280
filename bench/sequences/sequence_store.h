#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"
#include "registry/open.h"

/// Who keeps user sequences: this store, and what people use instead.
namespace kvstore::bench {

/// What a user did.
struct Event {
  std::string_view user;
  std::string_view kind;
  uint64_t timestamp = 0;  ///< Milliseconds; no two of a user and a kind are at the same one.
  std::string_view value;
};

/// Calls end the benchmark if they fail: its figures would mean nothing. Threads have numbers from 0; calls
/// of one thread are externally synchronised.
class SequenceStore {
 public:
  virtual ~SequenceStore() = default;
  virtual void Append(int thread, const Event& event) = 0;
  /// By thread 0, many at once.
  virtual void Load(std::span<const Event> events) = 0;
  /// The values of the newest `count` of a user and a kind; returns how many there are.
  virtual size_t ReadNewest(int thread, std::string_view user, std::string_view kind, uint32_t count) = 0;
  /// The same of many users; returns how many there are in all. One by one, where a store has no better way.
  virtual size_t ReadNewestOf(int thread, std::span<const std::string_view> users, std::string_view kind,
                              uint32_t count) {
    size_t found = 0;
    for (const std::string_view user : users) found += ReadNewest(thread, user, kind, count);
    return found;
  }
  /// What an answer to Append promises, and what is kept, in a few words: without it figures do not compare.
  virtual std::string promise() const = 0;
};

/// Rows of a dataset that is made for it, "kv_bench_sequences", and dropped at the end: the user's, a column
/// a kind, a version an event.
///
/// store  must outlive it.
absl::StatusOr<std::unique_ptr<SequenceStore>> MakeKvSequences(KVStore& store, Durability durability);

/// RocksDB itself, in this process, with the options, keys and batches of the embedded backend.
absl::StatusOr<std::unique_ptr<SequenceStore>> MakeRocksSequences(Durability durability);

/// A redis-server of its own, over loopback, a connection a thread: a sorted set for each user and kind, by
/// time. All is in its memory, and in its log of commands.
///
/// UNAVAILABLE if there is no redis-server.
absl::StatusOr<std::unique_ptr<SequenceStore>> MakeRedisSequences(Durability durability, int threads);

/// A table as one would write it first, (user, kind, at, value) with a key of the first three, on the first
/// server of a fleet, in the database "db_kv_bench", which is made and dropped; a connection a thread. It
/// promises what the server is configured for.
absl::StatusOr<std::unique_ptr<SequenceStore>> MakeMariaDbSequences(const MySqlFleet& fleet, int threads);

}  // namespace kvstore::bench
