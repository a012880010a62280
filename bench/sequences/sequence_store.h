#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bench/sequences/redis_client.h"
#include "kvstore_api/kvstore.h"
#include "kvstore_api/open.h"

/// Stores of user sequences: this one, and those that people use instead.
namespace kvstore::bench {

/// An event of a user.
struct Event {
  std::string_view user;
  std::string_view kind;
  uint64_t timestamp = 0;  ///< Milliseconds; no two of a user and a kind are at the same one.
  std::string_view value;
};

/// A call that fails ends the benchmark, because its figures would mean nothing. Threads have numbers from 0;
/// calls of one thread are externally synchronised.
class SequenceStore {
 public:
  virtual ~SequenceStore() = default;
  virtual void Append(int thread, const Event& event) = 0;
  /// Appends many events at once; called by thread 0.
  virtual void Load(std::span<const Event> events) = 0;
  /// Reads the values of the newest `count` events of a user and a kind; returns how many there are.
  virtual size_t ReadNewest(int thread, std::string_view user, std::string_view kind, uint32_t count) = 0;
  /// Does the same for many users, one by one where a store has no better way; returns how many there are in
  /// all.
  virtual size_t ReadNewestOf(int thread, std::span<const std::string_view> users, std::string_view kind,
                              uint32_t count) {
    size_t found = 0;
    for (const std::string_view user : users) found += ReadNewest(thread, user, kind, count);
    return found;
  }
  /// Returns the client by which a thread can call hashes of the Redis protocol; null if the store has none.
  virtual RedisClient* HashClient(int /*thread*/) { return nullptr; }
  /// Returns the key of a user's hash for that client.
  virtual std::string HashKey(std::string_view user) const { return std::string(user); }
  /// Describes in a few words what an acknowledged Append survives and which data is kept, without which the
  /// figures cannot be compared.
  virtual std::string promise() const = 0;
};

/// Opens the store of rows: a dataset "kv_bench_sequences", which is created and dropped at the end, with a
/// row for each user, a column for each kind and a version for each event.
///
/// store  must outlive it.
absl::StatusOr<std::unique_ptr<SequenceStore>> MakeKvSequences(KVStore& store, Durability durability);

/// The same by the Redis protocol of a server on this machine, with a connection for each thread: the column
/// of a row as a stream.
///
/// store  Another client of the same server; must outlive it.
/// port   Where the server speaks the Redis protocol.
absl::StatusOr<std::unique_ptr<SequenceStore>> MakeRespSequences(KVStore& store, uint16_t port,
                                                                 Durability durability, int threads);

/// Opens RocksDB itself, in this process, with the options, keys and batches of the embedded backend.
absl::StatusOr<std::unique_ptr<SequenceStore>> MakeRocksSequences(Durability durability);

/// Starts a redis-server and connects to it over loopback, with a connection for each thread: a sorted set
/// for each user and kind, by time. All data is in its memory, and in its log of commands.
///
/// UNAVAILABLE if there is no redis-server.
absl::StatusOr<std::unique_ptr<SequenceStore>> MakeRedisSequences(Durability durability, int threads);

/// Opens the table that one would write first, (user, kind, at, value) with the first three as its key, on
/// the first server of a fleet, in the database "db_kv_bench", which is created and dropped; a connection for
/// each thread. It promises what the server is configured for.
absl::StatusOr<std::unique_ptr<SequenceStore>> MakeMariaDbSequences(const MySqlFleetOptions& fleet,
                                                                    int threads);

}  // namespace kvstore::bench
