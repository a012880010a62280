#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "kvstore_api/kvstore.h"
#include "kvstore_api/shard_space.h"
#include "tests/chaos/registers.h"
#include "tests/support/random.h"

namespace kvstore::testing::chaos {

/// The shard of a key while its dataset is on MySQL.
struct Place {
  ShardSpace space = ShardSpace::kId;
  uint32_t shard = 0;
};

/// A dataset under test, and the history of what its clients were told. Thread-safe.
class Tenant {
 public:
  /// churned  Whether operators drop and create the dataset, so that it may be missing.
  Tenant(DatasetSpec spec, uint32_t keys, bool churned)
      : spec_(std::move(spec)), keys_(keys), churned_(churned), registers_(keys) {}
  virtual ~Tenant() = default;

  const DatasetSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  bool churned() const { return churned_; }
  uint32_t keys() const { return keys_; }
  Registers& registers() { return registers_; }

  /// Makes one call of a client and records its outcome. Returns the call's status.
  virtual absl::Status Step(KVStore& store, Random& random) = 0;
  /// Reads every key; returns the first error.
  virtual absl::Status ReadAll(KVStore& store) = 0;
  /// Writes every key; returns the first error.
  virtual absl::Status WriteAll(KVStore& store) = 0;
  /// Returns the shard of a key; nullopt if it is not known.
  virtual std::optional<Place> PlaceOf(uint32_t key) const = 0;

  /// Records that the dataset was created, with this incarnation.
  void Created(uint64_t incarnation);
  /// A drop of the dataset in flight, as a delete of each of its keys.
  struct Dropping {
    Registers::Clock::time_point begin;
    std::vector<Registers::Pending> keys;
  };
  Dropping BeginDrop();
  enum class Drop { kDone, kRefused, kUnknown };
  /// Records how a drop ended.
  ///
  /// incarnation  The incarnation of the dataset that has the name now; 0 if there is none, or it is not
  /// known. If that
  ///              dataset was created while the drop was in flight, an earlier one was dropped, and none of
  ///              its keys.
  void EndDrop(const Dropping& drop, Drop how, uint64_t incarnation);

  /// Returns the first thing that a client found and that must not be, such as an object that is another one.
  std::optional<std::string> mistake() const;

 protected:
  /// Records how a write ended, and returns `status`.
  absl::Status RecordOutcome(const Registers::Pending& pending, const absl::Status& status);
  void RecordMistake(const std::string& what);

 private:
  const DatasetSpec spec_;
  const uint32_t keys_;
  const bool churned_;
  Registers registers_;
  struct Birth {
    Registers::Clock::time_point time;
    uint64_t incarnation = 0;
  };
  mutable Mutex mutex_;
  std::optional<std::string> mistake_ ABSL_GUARDED_BY(mutex_);  // the first one
  std::vector<Birth> births_ ABSL_GUARDED_BY(mutex_);
};

/// A dataset of rows. Each column of a row is a key.
class RowsTenant : public Tenant {
 public:
  static constexpr uint32_t kRows = 16;
  static constexpr uint32_t kColumns = 2;
  /// The keys after those of the clients are written by imports only.
  static constexpr uint32_t kImported = 8;
  static constexpr uint32_t kKeys = kRows * kColumns + kImported;

  RowsTenant(DatasetSpec spec, bool churned, uint32_t mod_shards)
      : Tenant(std::move(spec), kKeys, churned), mod_shards_(mod_shards) {}

  absl::Status Step(KVStore& store, Random& random) override;
  absl::Status ReadAll(KVStore& store) override;
  absl::Status WriteAll(KVStore& store) override;
  std::optional<Place> PlaceOf(uint32_t key) const override;

  absl::Status Put(KVStore& store, uint32_t key);
  static std::string RowOf(uint32_t key);
  static std::string ColumnOf(uint32_t key);
  /// Writes new versions, and checks that as many remain as the dataset's settings say. DATA_LOSS says what
  /// differs.
  absl::Status CheckSettings(KVStore& store);

 private:
  absl::Status Read(KVStore& store, uint32_t key);

  const uint32_t mod_shards_;
};

/// A dataset of objects. Each object is a key, from its creation on.
class ObjectsTenant : public Tenant {
 public:
  static constexpr uint32_t kKeys = 12000;

  explicit ObjectsTenant(DatasetSpec spec) : Tenant(std::move(spec), kKeys, false) {}

  absl::Status Step(KVStore& store, Random& random) override;
  absl::Status ReadAll(KVStore& store) override;
  absl::Status WriteAll(KVStore& store) override;
  std::optional<Place> PlaceOf(uint32_t key) const override;
  /// Records an announced loss at the object's shard: the object may be lost, and its ID be assigned again.
  void MayReuseId(uint32_t key);

 private:
  struct Made {
    uint64_t id = 0;  ///< 0 if it is not known.
    bool may_be_reused = false;
  };
  absl::Status Create(KVStore& store);
  absl::Status Read(KVStore& store, uint32_t key);
  absl::Status Patch(KVStore& store, uint32_t key);
  absl::Status Delete(KVStore& store, uint32_t key);
  uint64_t IdOf(uint32_t key) const;
  /// Returns a random object that was created, rather one of the latest; nullopt if there is none.
  std::optional<uint32_t> Any(Random& random) const;

  mutable Mutex objects_mutex_;
  std::vector<Made> made_ ABSL_GUARDED_BY(objects_mutex_);                // by key
  std::map<uint64_t, uint32_t> keys_of_ ABSL_GUARDED_BY(objects_mutex_);  // by ID
};

/// A dataset of mappings. Each entry is a key, and its sequence is the value.
class MappingsTenant : public Tenant {
 public:
  static constexpr uint32_t kPerShard = 2;  ///< How many IDs of each shard have entries.
  static constexpr uint32_t kEntries = 4;   ///< How many entries each of these IDs has.
  static constexpr uint32_t kMaxShards = 64;

  /// open  Returns how many ID shards are open.
  MappingsTenant(DatasetSpec spec, std::function<uint32_t()> open)
      : Tenant(std::move(spec), kMaxShards * kPerShard * kEntries, false), open_(std::move(open)) {}

  absl::Status Step(KVStore& store, Random& random) override;
  absl::Status ReadAll(KVStore& store) override;
  absl::Status WriteAll(KVStore& store) override;
  std::optional<Place> PlaceOf(uint32_t key) const override;

 private:
  static uint64_t FromOf(uint32_t key);
  absl::Status Add(KVStore& store, uint32_t key);
  absl::Status List(KVStore& store, uint32_t key);
  uint32_t Used() const { return open_() * kPerShard * kEntries; }

  const std::function<uint32_t()> open_;
};

}  // namespace kvstore::testing::chaos
