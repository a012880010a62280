#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/kvstore.h"
#include "tests/chaos/registers.h"
#include "tests/support/random.h"

namespace kvstore::testing::chaos {

/// Where a key is, should its dataset be on MySQL.
struct Place {
  bool mod = false;
  uint32_t shard = 0;
};

/// A dataset under test, and what its clients were told. Thread-safe.
class Tenant {
 public:
  /// churned  Operators drop and create it: it may not be there.
  Tenant(DatasetSpec spec, uint32_t keys, bool churned)
      : spec_(std::move(spec)), keys_(keys), churned_(churned), registers_(keys) {}
  virtual ~Tenant() = default;

  const DatasetSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  bool churned() const { return churned_; }
  uint32_t keys() const { return keys_; }
  Registers& registers() { return registers_; }

  /// One call of a client; what came of it is noted. The status is that of the call.
  virtual absl::Status Step(KVStore& store, Random& random) = 0;
  /// Reads every key; the first error.
  virtual absl::Status ReadAll(KVStore& store) = 0;
  /// Writes every key; the first error.
  virtual absl::Status WriteAll(KVStore& store) = 0;
  /// Where a key is; none if that is not known.
  virtual std::optional<Place> PlaceOf(uint32_t key) const = 0;

  /// It was created, and is this one.
  void Created(uint64_t incarnation);
  /// It is being dropped: all keys are deleted. EndDrop says how that ended.
  struct Dropping {
    Registers::Clock::time_point begin;
    std::vector<Registers::Pending> keys;
  };
  Dropping BeginDrop();
  enum class Drop { kDone, kRefused, kUnknown };
  /// incarnation  of the dataset that has the name now; 0: none has, or it is not known. If that was created
  ///              while the drop was under way, an earlier one was dropped, and none of this one's keys.
  void EndDrop(const Dropping& drop, Drop how, uint64_t incarnation);

  /// Something that must not be, found by a client: an object that is another one.
  std::optional<std::string> mistake() const;

 protected:
  /// Notes how a write ended.
  absl::Status Note(const Registers::Pending& pending, const absl::Status& status);
  void Mistake(const std::string& what);

 private:
  const DatasetSpec spec_;
  const uint32_t keys_;
  const bool churned_;
  Registers registers_;
  struct Birth {
    Registers::Clock::time_point time;
    uint64_t incarnation = 0;
  };
  mutable std::mutex mutex_;
  std::optional<std::string> mistake_;  // the first; guarded by mutex_
  std::vector<Birth> births_;           // guarded by mutex_
};

/// Single columns of rows.
class RowsTenant : public Tenant {
 public:
  static constexpr uint32_t kRows = 16;
  static constexpr uint32_t kColumns = 2;
  /// Behind those of the clients: of imports only.
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
  /// Whether as many versions are there as the settings say, of those that are written now; an error says
  /// what is not as they say.
  absl::Status CheckSettings(KVStore& store);

 private:
  absl::Status Read(KVStore& store, uint32_t key);

  const uint32_t mod_shards_;
};

/// Objects: each is a key, from its creation on.
class ObjectsTenant : public Tenant {
 public:
  static constexpr uint32_t kKeys = 12000;

  explicit ObjectsTenant(DatasetSpec spec) : Tenant(std::move(spec), kKeys, false) {}

  absl::Status Step(KVStore& store, Random& random) override;
  absl::Status ReadAll(KVStore& store) override;
  absl::Status WriteAll(KVStore& store) override;
  std::optional<Place> PlaceOf(uint32_t key) const override;
  /// An announced loss at a shard: what was created there may be gone, and its ID be given again.
  void MayGiveAgain(uint32_t key);

 private:
  struct Made {
    uint64_t id = 0;  ///< 0: not known.
    bool may_be_given_again = false;
  };
  absl::Status Create(KVStore& store);
  absl::Status Read(KVStore& store, uint32_t key);
  absl::Status Patch(KVStore& store, uint32_t key);
  absl::Status Delete(KVStore& store, uint32_t key);
  uint64_t IdOf(uint32_t key) const;
  /// One that was created; none if there is none.
  std::optional<uint32_t> Any(Random& random) const;

  mutable std::mutex objects_mutex_;
  std::vector<Made> made_;                // by key
  std::map<uint64_t, uint32_t> keys_of_;  // by ID
};

/// Entries of mappings, whose sequence is the value.
class MappingsTenant : public Tenant {
 public:
  static constexpr uint32_t kPerShard = 2;  ///< IDs that have entries.
  static constexpr uint32_t kEntries = 4;   ///< Of each.
  static constexpr uint32_t kMaxShards = 64;

  /// open  how many ID shards are open.
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
