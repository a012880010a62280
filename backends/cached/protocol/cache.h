#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/cached/protocol/guarded_server.h"
#include "backends/cached/protocol/stats.h"
#include "backends/cached/protocol/view_keeper.h"
#include "backends/cached/servers/server.h"
#include "base/metrics_sink.h"
#include "base/mutex.h"
#include "kvstore_api/open.h"

namespace kvstore::cached {

/// Which cache.
enum class CacheKind : uint8_t { kObjects, kMappings };
/// "objects"
std::string_view Name(CacheKind kind);

/// The result of a read for one key.
struct Found {
  std::optional<std::string> value;  ///< The value that the cache has.
  /// Else: set if the reader may fill the cache with what the backend says.
  struct Lease {
    std::shared_ptr<GuardedServer> server;
    std::string key;
    char part = 'v';
    uint64_t number = 0;
  };
  std::optional<Lease> lease;
};

/// The cache of a backend for data of one shape: the protocol of tests/model/cache.pml. Thread-safe.
///
/// **What is promised.** A value that Find returns was in the backend at some moment between the beginning
/// and the end of the call, if all who write go through Write, whatever fails: servers of the cache that die,
/// hang, come back, forget, or can be reached by some only; processes that die or are stopped at any point;
/// ZooKeeper. docs/caches.md lists what is assumed.
///
/// Calls wait for cache servers for CacheOptions::timeout_ms each, whatever the deadline of the caller's
/// CallScope, and check that in between.
class Cache {
 public:
  /// Opens the server at "host:port" that has its guard at this key; it is connected to when it is needed.
  using OpenServer =
      std::function<std::unique_ptr<Server>(const std::string& address, const std::string& guard)>;

  /// view  must outlive this.
  Cache(CacheKind kind, const CacheOptions& options, ViewKeeper& view, OpenServer open);
  ~Cache();

  /// A dataset's key: what is cached of an object, or of all mappings from one ID.
  struct Key {
    uint64_t incarnation = 0;
    uint64_t id = 0;
  };

  /// Looks up some keys, and gives the result of each. A cache that fails, or cannot be trusted, has nothing.
  ///
  /// part  of kRedisParts for mappings, 'v' for objects.
  /// wait  Waits up to 200 ms where another reader is about to fill a key. Not for a caller that has leases.
  std::vector<Found> Find(std::span<const Key> keys, char part, bool wait = true);
  /// A value that the backend has said, for a key whose lease was found.
  struct Filling {
    const Found::Lease* lease = nullptr;  ///< Not null.
    std::string_view value;
  };
  /// Puts values into the cache, each unless its key was written to since Find.
  void Fill(std::span<const Filling> fillings);
  /// Lets others fill the key, because this reader has no value.
  void GiveUp(const Found::Lease& lease);

  /// Makes a write to the backend: `write` is called once, at most, in a CallScope that ends it in time, and
  /// its result is returned. From the moment that it may be seen, no reader gets from the cache what was
  /// before it. Where the key's server cannot be reached, first waits until nobody reads that.
  ///
  /// UNAVAILABLE        without a write, if neither the server nor ZooKeeper can be reached; or in doubt, if
  /// the
  ///                    write was made but took so long that the cache has to be cleared, and cannot be.
  /// DEADLINE_EXCEEDED  without a write, if the time of the call is over before it.
  absl::Status Write(const Key& key, const std::function<absl::Status()>& write);

  /// The dataset is elsewhere from now on, and the backend refuses its reads: what is cached of it is never
  /// returned again. Suspends servers that do not answer. UNAVAILABLE if ZooKeeper cannot be reached.
  absl::Status Leave(uint64_t incarnation);

  /// Forgets everything, as if all servers had lost their memory. As Leave.
  absl::Status Drop();

  /// Samples a key that was written, to compare later what the cache has with what the backend has.
  ///
  /// peek  returns what the backend has, as it would be cached; nullopt: nothing.
  using Peek = std::function<absl::StatusOr<std::optional<std::string>>()>;
  void Check(const Key& key, char part, Peek peek);

  void Describe(MetricsSink& sink) const;
  CacheStats& stats() { return stats_; }

  /// Suspends a server, by name, and returns when nobody reads it any more. Makes nothing of one that is
  /// suspended. Errors as of ViewKeeper.
  absl::Status Suspend(const std::string& server);
  /// The servers of the view in force.
  std::vector<std::shared_ptr<GuardedServer>> Servers(const KnownView& view);
  CacheKind kind() const { return kind_; }

 private:
  struct Sample {
    Key key;
    char part = 'v';
    Peek peek;
    std::chrono::steady_clock::time_point due;
    bool again = true;  // a second look, a minute later, is to come
  };

  const Ring& RingOf(const KnownView& view) const;
  const std::vector<std::string>& AddressesOf(const View& view) const;
  std::shared_ptr<GuardedServer> ServerAt(const View& view, const std::string& address);
  std::shared_ptr<GuardedServer> ServerOf(const KnownView& view, const Key& key);
  /// One attempt of Find for the keys at `places`, which are all on one server. Returns those for which
  /// somebody else has the lease.
  std::vector<size_t> FindOn(const KnownView& view, const std::shared_ptr<GuardedServer>& server,
                             std::span<const Key> keys, const std::vector<size_t>& places, char part,
                             bool lease, std::vector<Found>& found);
  /// A mark on a server.
  struct Mark {
    std::shared_ptr<GuardedServer> server;
    std::string key;
    uint64_t number = 0;
    uint64_t version = 0;
  };
  /// A key that may be written now.
  struct MarkedKey {
    std::chrono::nanoseconds longest;  ///< How long the write may take,
    BootClock::time_point since;       ///< from this time on.
    std::optional<Mark> mark;          ///< Nullopt: nobody reads the key's server, or there is none.
  };
  /// The most marks that are kept in mind to be removed, or set again.
  static constexpr size_t kMaxMarks = 10'000;
  /// A server that is not trusted yet.
  struct Quarantine {
    std::string guard;  ///< Its text.
    BootClock::time_point since;
  };
  /// A mark that stays, because its write may happen yet.
  struct Doubted {
    Key key;
    Mark mark;                    ///< Without a server if there was none to mark.
    BootClock::time_point due;    ///< When it is set again at the latest.
    BootClock::time_point until;  ///< When nothing can happen any more.
  };
  /// Marks the key where it is now.
  absl::StatusOr<MarkedKey> MarkKey(const Key& key);
  /// Removes a mark, now or later.
  void Unmark(Mark mark);
  /// Keeps a key marked that may be written yet.
  void Doubt(const Key& key, std::optional<Mark> mark);
  /// Returns the view, after it was asked for if it does not hold any more.
  absl::StatusOr<std::shared_ptr<const KnownView>> ViewThatHolds();
  /// Changes the guards of all servers; those that cannot be reached are suspended.
  absl::Status ChangeAll(const std::function<void(Guard&)>& change);
  /// Waits until a server has been suspended for so long that nobody reads it; returns whether it still is.
  absl::StatusOr<bool> AwaitSuspension(const std::string& server);

  void Run();
  void LookAfter(const KnownView& view, GuardedServer& server);
  /// Removes marks that could not be removed before, and sets those again that must stay and were lost.
  void LookAfterMarks(const KnownView& view);
  /// Sets a mark in doubt again if it is time for that; returns whether the server was asked.
  bool SetAgain(const KnownView& view, Doubted& doubt);
  void CheckSamples();
  void Compare(const Sample& sample);

  const CacheKind kind_;
  const CacheOptions options_;
  ViewKeeper& view_;
  const OpenServer open_;
  CacheStats stats_;
  mutable Mutex servers_mutex_;
  // By the view's ID and the address.
  std::map<std::pair<uint64_t, std::string>, std::shared_ptr<GuardedServer>> servers_
      ABSL_GUARDED_BY(servers_mutex_);
  Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Sample> samples_ ABSL_GUARDED_BY(mutex_);
  std::vector<Mark> unmarks_ ABSL_GUARDED_BY(mutex_);
  std::vector<Doubted> doubts_ ABSL_GUARDED_BY(mutex_);
  std::map<const GuardedServer*, Quarantine> quarantines_;  // of the thread alone
  std::thread thread_;
};

}  // namespace kvstore::cached
