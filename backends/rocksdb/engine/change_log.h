#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace kvstore::rocks {

class Engine;
struct FamilySettings;

/// A place in a change log: what is before it was read.
struct ChangePlace {
  uint64_t generation = 0;  ///< The ID of the generation in which `number` was, or is to be, assigned.
  uint64_t number = 0;      ///< The entry to go on with,
  uint32_t unit = 0;        ///< and how many of its units were read.
  friend bool operator==(const ChangePlace&, const ChangePlace&) = default;
};

/// A unit that a write has touched.
struct TouchedUnit {
  std::string key;     ///< The unit's key; for rows also enc(row) alone, if the whole row was deleted.
  uint64_t at_ms = 0;  ///< When the write was made. Never decreases from one entry to the next.
  ChangePlace after;   ///< The place after it.
};

/// The units that clients' writes have touched, in order, for those who follow a dataset (kv changes). In a
/// column family of the log's own:
///
///   be64(number)  be64(time in ms) { varint32(size) unit key }...
///   00            be64(incarnation of the dataset) { be64(ID of a generation) be64(its first number) }...
///   00 00         be64(the first number that is kept)
///   00 00 00      { varint32(size) consumer be64(generation) be64(number) be32(unit) be64(set, in ms) }...
///
/// An entry is added in the same batch as the data that it is about, one for each batch. Unlike a DirtyLog it
/// has any number of readers, each with a place of its own, and entries stay until they are older than
/// FamilySettings::keep_changes_ms and every consumer has passed them, or the log is larger than
/// EngineOptions::changes_bytes.
///
/// **Nothing is skipped.** Numbers are taken before the batches that have them are written, and batches end
/// in any order, so a reader goes no further than to the first one that has not ended (the horizon). A
/// write that failed may still be in the database's write-ahead log, and appear at the next start; so the
/// horizon stays before it until a later write has succeeded, for which the database has begun another log.
///
/// **Nothing is read that is not there.** After a power failure the last entries may be gone, together with
/// the data, and their numbers are assigned again. So each run of a process that writes begins a generation,
/// with a random ID, in the same batch as its first entry. A place beyond the end of its generation is
/// refused, as is one whose generation is not known. The trim is noted, and synced, before the entries go.
///
/// Thread-safe.
class ChangeLog {
 public:
  /// The name of the log's column family: "events$changes". No dataset can have such a name.
  static std::string FamilyName(std::string_view dataset);

  /// Opens the log of a dataset; creates it if there is none, or only that of an earlier dataset of that
  /// name.
  static absl::StatusOr<std::shared_ptr<ChangeLog>> Open(Engine& engine,
                                                         std::shared_ptr<FamilySettings> settings);
  ~ChangeLog();
  ChangeLog(const ChangeLog&) = delete;
  ChangeLog& operator=(const ChangeLog&) = delete;

  rocksdb::ColumnFamilyHandle* handle() const { return handle_; }

  // ---- writing ----

  /// A write that is under way. The caller holds the lock of what it writes, from before Begin until after
  /// End, so that the entries of a unit have the order of its writes.
  struct Writing {
    uint64_t number = 0;
    uint64_t at_ms = 0;
  };
  Writing Begin();
  /// Adds the entry to the batch of the write.
  ///
  /// units  as AppendUnit made it.
  absl::Status Add(rocksdb::WriteBatch& batch, const Writing& writing, std::string_view units);
  static void AppendUnit(std::string& units, std::string_view key);
  /// Says what became of a write.
  enum class Outcome : uint8_t { kWritten, kNothing, kInDoubt };
  /// Must follow each Begin.
  ///
  /// bytes  how large the entry is, about.
  void End(const Writing& writing, size_t bytes, Outcome outcome);

  // ---- reading ----

  /// The result of Read.
  struct Page {
    std::vector<TouchedUnit> units;
    ChangePlace next;  ///< Where to go on; the place that was asked for if there is nothing after it.
    /// All writes that were made by then (ms) are in this page or before it; 0 if the page ends before the
    /// horizon.
    uint64_t complete_until_ms = 0;
  };
  /// Returns the units after a place, as many as there are, `limit` at most, and about as many as have
  /// `max_bytes` of keys. OUT_OF_RANGE if some of what was after the place is not here any more.
  absl::StatusOr<Page> Read(const ChangePlace& from, size_t limit, size_t max_bytes);
  /// The place of the oldest entry that is here.
  ChangePlace Oldest() const;
  /// A place after which is every write that is acknowledged from now on, and maybe some that were before.
  ChangePlace Newest() const;

  // ---- consumers ----

  struct Consumer {
    std::string name;
    /// Where it is. Nothing: some of what was after that is not here any more.
    std::optional<ChangePlace> place;
    uint64_t set_ms = 0;
    uint64_t lag_ms = 0;  ///< How old the oldest entry after it is; 0: there is none.
  };
  /// Keeps what is after the place until the consumer of that name has another one. OUT_OF_RANGE as Read;
  /// RESOURCE_EXHAUSTED for a new name if there are kMaxConsumers.
  absl::Status SetConsumer(std::string_view name, const ChangePlace& place);
  /// NOT_FOUND if there is none.
  absl::Status DropConsumer(std::string_view name);
  /// Returns all consumers, by name.
  absl::StatusOr<std::vector<Consumer>> Consumers() const;

  /// Removes entries that are too old, or too many; but not the last one. Called by writers now and then, and
  /// by the first one of a process; for those that must not wait (PromptScope), by the trimmer's thread.
  absl::Status Trim();

 private:
  struct Generation {
    uint64_t id = 0;
    uint64_t first = 0;
  };
  struct Taken {
    uint64_t at_ms = 0;
    bool has_ended = false;
  };
  struct Doubt {
    uint64_t number = 0;
    uint64_t until = 0;  // it is ended by the success of a write of this number or a later one
  };

  struct Noted {
    ChangePlace place;
    uint64_t set_ms = 0;
  };
  using AllNoted = std::map<std::string, Noted, std::less<>>;

  ChangeLog(Engine& engine, std::shared_ptr<FamilySettings> settings, rocksdb::ColumnFamilyHandle* handle);

  /// Returns the text of one of the log's own keys; empty if there is none.
  absl::StatusOr<std::string> Get(std::string_view key) const;
  /// Reads what is stored. False if it is of another dataset.
  absl::StatusOr<bool> Load();
  /// Makes a log of a family that has nothing.
  absl::Status Create();
  std::string EncodedGenerations() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Begins the generation of this run, if there is none yet.
  void BeginGeneration() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// OUT_OF_RANGE unless everything after the place is here.
  absl::Status Check(const ChangePlace& place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The place of an entry of which nothing was read.
  ChangePlace PlaceOf(uint64_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t Next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return first_open_ + open_.size(); }
  void MarkEnded(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::StatusOr<AllNoted> DecodeConsumers(std::string_view stored);
  /// Stores the consumers in place of those that there are.
  absl::Status StoreConsumers(AllNoted consumers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(trim_mutex_);
  /// Returns the first number that some consumer has not passed; UINT64_MAX if there is none.
  uint64_t FirstWanted() const;
  absl::Status TrimAlone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(trim_mutex_);
  /// Returns the first number whose entry stays, between `first` and `last`.
  absl::StatusOr<uint64_t> FirstToKeep(uint64_t first, uint64_t last) const;

  Engine& engine_;
  const std::shared_ptr<FamilySettings> settings_;
  rocksdb::ColumnFamilyHandle* const handle_;

  mutable Mutex mutex_;
  std::vector<Generation> generations_ ABSL_GUARDED_BY(mutex_);  // ascending
  bool has_own_ ABSL_GUARDED_BY(mutex_) = false;                 // the last one is this run's
  bool own_is_stored_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t first_open_ ABSL_GUARDED_BY(mutex_) = 1;  // all numbers before it have ended
  std::deque<Taken> open_ ABSL_GUARDED_BY(mutex_);   // first_open_ and those after it that were taken
  std::deque<Doubt> in_doubt_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_at_ms_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // added since the last Trim
  AllNoted consumers_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> oldest_{1};  // no entry before it is kept
  Mutex trim_mutex_;                 // held by whoever trims, or changes consumers_; before mutex_
};

}  // namespace kvstore::rocks
