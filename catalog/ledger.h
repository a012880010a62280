#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvstore {

/// How an operation has what it claims.
enum class ClaimMode : uint8_t {
  kShared,     ///< Beside others that share it, and beside one that updates it.
  kUpdate,     ///< Beside those that share it; one at a time.
  kExclusive,  ///< Alone.
};

/// A part of the store that an operation touches.
struct Claim {
  enum class Kind : uint8_t {
    kDataset,  ///< That it is there, its settings, and where it is.
    kShards,   ///< Which shards of a space are open, and have the tables of datasets.
    kHomes,    ///< Which hosts have those shards.
    kHost,     ///< A host of the fleet, and its role.
  };
  Kind kind = Kind::kDataset;
  ClaimMode mode = ClaimMode::kExclusive;
  std::string name;    ///< Of a dataset or a host; empty: of all.
  bool mod = false;    ///< Shards and homes: mod shards, which have the rows; else ID shards.
  uint32_t first = 0;  ///< Shards and homes: the range.
  uint32_t last = 0;

  static constexpr uint32_t kLastShard = 65'535;

  static Claim Dataset(std::string_view name, ClaimMode mode);
  static Claim Shards(bool mod, uint32_t first, uint32_t last, ClaimMode mode);
  static Claim Homes(bool mod, uint32_t first, uint32_t last, ClaimMode mode);
  static Claim Host(std::string_view name, ClaimMode mode);

  /// Whether two operations cannot have these at the same time.
  bool ConflictsWith(const Claim& other) const;
  /// "dataset 'events'", "shards db 4-7", "the homes of shards mod 0-7", "host MySQL001A".
  std::string ToString() const;
  friend bool operator==(const Claim&, const Claim&) = default;
};

/// Something that an operator, or a program for him, does to datasets, shards or hosts, and that others must
/// not cross.
struct Operation {
  std::string id;         ///< Given by the ledger.
  std::string what;       ///< "open shards db 4-7". Names a lasting one: begun again it is the same one.
  std::string who;        ///< "ann@ops1, process 4711"; empty at Begin: this process.
  uint64_t since_ms = 0;  ///< Given by the ledger.
  /// It is held until it is ended, by whichever process; else it goes with its process, or that one's session
  /// with ZooKeeper.
  bool lasting = false;
  /// Others do not wait for it: who conflicts takes its claims away, and it stops when it looks next (Check).
  bool yields = false;
  std::string go_on;    ///< A lasting one: the commands that go on with it, or give it up.
  std::string process;  ///< ProcessIdentity; given by the ledger.
  std::vector<Claim> claims;
};

class Ledger;

/// An operation that was begun. Ends it when this goes, unless it is a lasting one.
class Held {
 public:
  Held() = default;
  Held(Ledger* ledger, std::string id, bool lasting, std::string before)
      : ledger_(ledger), id_(std::move(id)), lasting_(lasting), before_(std::move(before)) {}
  Held(Held&& other) noexcept { *this = std::move(other); }
  Held& operator=(Held&& other) noexcept;
  ~Held();

  /// Empty: nothing was begun, or it has ended.
  const std::string& id() const { return id_; }
  /// Whether it was begun before: a lasting one, of which this process goes on.
  bool taken_over() const { return !before_.empty(); }
  /// The ID that it had then; who has it by that one does not hold it any more.
  const std::string& before() const { return before_; }
  /// ABORTED: it is not held any more, and must stop. UNAVAILABLE: not known.
  absl::Status Check() const;
  /// Ends it, also a lasting one.
  absl::Status End();
  /// It goes on without this; gives its ID.
  std::string Leave() { return std::exchange(id_, ""); }

 private:
  Ledger* ledger_ = nullptr;
  std::string id_;
  bool lasting_ = false;
  std::string before_;
};

/// What is being done to datasets, shards and hosts, of one process or shared by many: whoever begins names
/// what it touches, in one step with the look at what others have. Thread-safe.
///
/// Errors: UNAVAILABLE if it cannot be reached.
class Ledger {
 public:
  virtual ~Ledger() = default;

  /// FAILED_PRECONDITION if another operation has something of it; says which, who is at it since when, and
  /// how to go on. See EndsByItself. A lasting one that is there already is taken over, with these claims
  /// and another ID: who had it before does not hold it any more.
  [[nodiscard]] absl::StatusOr<Held> Begin(Operation operation);
  /// The same, and waits so long for those that end by themselves.
  [[nodiscard]] absl::StatusOr<Held> BeginWithin(const Operation& operation, std::chrono::milliseconds wait);
  /// Begins whatever others hold, for what must not wait: lasting ones stay beside it, the claims of the rest
  /// are taken away, so that they cannot go on unseen.
  [[nodiscard]] absl::StatusOr<Held> BeginOver(Operation operation);
  /// ABORTED: it is not held any more: its session has ended, or somebody took it over or away.
  [[nodiscard]] virtual absl::Status Check(std::string_view id) = 0;
  /// OK if there is none.
  virtual absl::Status End(std::string_view id) = 0;
  /// Ends the lasting one of that name, if there is one.
  absl::Status EndLasting(std::string_view what);
  /// Tries once more to end what could not be ended; does nothing if there is nothing of that.
  virtual void Tidy() {}
  /// What is held now, oldest first.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Operation>> List() = 0;
  /// Takes the claims of an operation away whose process is gone, and gives what it was. NOT_FOUND if there
  /// is none.
  ///
  /// force  Also if its process may live, or it is a lasting one. FAILED_PRECONDITION else.
  absl::StatusOr<Operation> Release(std::string_view id, bool force);

 protected:
  friend class JoinedLedger;
  /// Begins an operation that has all fields but its ID.
  [[nodiscard]] virtual absl::StatusOr<Held> Enter(Operation operation, bool over) = 0;
};

/// What an operation that is to begin meets.
struct LedgerDecision {
  absl::Status refused;           ///< FAILED_PRECONDITION, as Begin gives it.
  std::string same;               ///< ID of the lasting operation that it is; empty: a new one.
  std::vector<std::string> gone;  ///< IDs of those that are taken away.
};
LedgerDecision Decide(const Operation& wanted, std::span<const Operation> held, bool over);

/// Whether an error is a refusal by operations only that end by themselves, soon or with their process.
bool EndsByItself(const absl::Status& status);

/// "'compact dataset events', of ann@ops1, process 4711, since 2026-11-23 00:40:12 UTC (operation 3fa29c1b),"
std::string ToString(const Operation& operation);

/// A ledger of one process, in memory. Lasting operations are begun again by who goes on with them.
class MemoryLedger : public Ledger {
 public:
  absl::Status Check(std::string_view id) override;
  absl::Status End(std::string_view id) override;
  absl::StatusOr<std::vector<Operation>> List() override;

 protected:
  absl::StatusOr<Held> Enter(Operation operation, bool over) override;

 private:
  std::mutex mutex_;
  uint64_t begun_ = 0;                    // guarded by mutex_
  std::map<uint64_t, Operation> by_age_;  // guarded by mutex_
};

/// Two ledgers as one: where the catalog is not kept where the fleet's operators have theirs, what touches
/// shards or hosts is begun in both.
class JoinedLedger : public Ledger {
 public:
  /// own    must outlive it.
  /// fleet  null: there is only one.
  JoinedLedger(Ledger& own, std::unique_ptr<Ledger> fleet) : own_(own), fleet_(std::move(fleet)) {}

  absl::Status Check(std::string_view id) override;
  absl::Status End(std::string_view id) override;
  void Tidy() override;
  absl::StatusOr<std::vector<Operation>> List() override;

 protected:
  absl::StatusOr<Held> Enter(Operation operation, bool over) override;

 private:
  /// What an operation is in the other one.
  struct There {
    std::string id;
    bool lasting = false;
  };
  There FindThere(std::string_view id);

  Ledger& own_;
  const std::unique_ptr<Ledger> fleet_;
  std::mutex mutex_;
  std::map<std::string, There, std::less<>> there_;  // by the ID in the own one; guarded by mutex_
};

}  // namespace kvstore
