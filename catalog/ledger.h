#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kvstore_api/shard_space.h"

namespace kvstore {

/// How an operation shares what it claims with other operations.
enum class ClaimMode : uint8_t {
  kShared,     ///< Together with others that share it, and with one that updates it.
  kUpdate,     ///< Together with others that share it; only one operation updates it at a time.
  kExclusive,  ///< Alone.
};

/// A part of the store that an operation touches.
struct Claim {
  enum class Kind : uint8_t {
    kDataset,  ///< The existence of a dataset, its settings, and the backend that it is on.
    kShards,   ///< The set of open shards of a space, with the tables of datasets in them.
    kHomes,    ///< The assignment of those shards to hosts.
    kHost,     ///< A host of the fleet, and its role.
  };
  Kind kind = Kind::kDataset;
  ClaimMode mode = ClaimMode::kExclusive;
  std::string name;                    ///< The dataset's or host's name; empty: all of them.
  ShardSpace space = ShardSpace::kId;  ///< Shards and homes: the space that they are in.
  uint32_t first = 0;                  ///< Shards and homes: the first and the last shard.
  uint32_t last = 0;

  static constexpr uint32_t kLastShard = 65'535;

  static Claim Dataset(std::string_view name, ClaimMode mode);
  static Claim Shards(ShardSpace space, uint32_t first, uint32_t last, ClaimMode mode);
  static Claim Homes(ShardSpace space, uint32_t first, uint32_t last, ClaimMode mode);
  static Claim Host(std::string_view name, ClaimMode mode);

  /// Whether two operations cannot have these claims at the same time.
  bool ConflictsWith(const Claim& other) const;
  /// "dataset 'events'", "shards db 4-7", "the homes of shards mod 0-7", "host MySQL001A".
  std::string ToString() const;
  friend bool operator==(const Claim&, const Claim&) = default;
};

/// Something that an operator, or a program, does to datasets, shards or hosts, and that conflicting
/// operations must not interrupt.
struct Operation {
  std::string id;  ///< Assigned by the ledger.
  /// "open shards db 4-7". Identifies a lasting operation: begun again under this text it is the same one.
  std::string what;
  std::string who;        ///< "ann@ops1, process 4711"; empty at Begin: Ledger::who.
  uint64_t since_ms = 0;  ///< When it was begun; assigned by the ledger.
  /// The operation is held until some process ends it. One that is not lasting ends with its process, or with
  /// that process' session with ZooKeeper.
  bool lasting = false;
  /// A lasting operation that must not be held yet: if it is, whoever else begins it is just doing so, or was
  /// cut short, and Begin does not take it over. Not stored.
  bool is_new = false;
  /// Conflicting operations do not wait for this one but take its claims away. It stops when it notices
  /// (Check).
  bool yields = false;
  std::string go_on;    ///< A lasting operation: the commands that continue it, or give it up.
  std::string process;  ///< ProcessIdentity; assigned by the ledger.
  std::vector<Claim> claims;
};

class Ledger;

/// An operation that was begun. Destroying this ends it, unless it is a lasting one. Externally synchronised;
/// the ledger must outlive it.
class Held {
 public:
  Held() = default;
  Held(Ledger* ledger, std::string id, bool lasting, std::string before)
      : ledger_(ledger), id_(std::move(id)), lasting_(lasting), before_(std::move(before)) {}
  Held(Held&& other) noexcept { *this = std::move(other); }
  Held& operator=(Held&& other) noexcept;
  ~Held();

  /// The operation's ID; empty if nothing was begun, or it has ended.
  const std::string& id() const { return id_; }
  /// Whether this process continues a lasting operation that was begun before.
  bool taken_over() const { return !before_.empty(); }
  /// The ID under which a lasting operation was held before. Whoever knows it by that ID holds it no more.
  const std::string& before() const { return before_; }
  /// ABORTED: the operation is not held any more, and must stop. UNAVAILABLE: that could not be found out.
  absl::Status Check() const;
  /// Ends the operation, also a lasting one.
  absl::Status End();
  /// Returns the ID of the operation, which is not ended when this is destroyed.
  std::string Detach() { return std::exchange(id_, ""); }

 private:
  Ledger* ledger_ = nullptr;
  std::string id_;
  bool lasting_ = false;
  std::string before_;
};

/// The operations that are being done to datasets, shards and hosts, by one process or by many that share the
/// ledger. An operation begins by claiming what it touches, atomically with the check for conflicting claims.
/// Thread-safe.
///
/// Errors: UNAVAILABLE if the ledger cannot be reached.
class Ledger {
 public:
  virtual ~Ledger() = default;

  /// Returns in whose name operations are begun that do not say it: "ann@ops1, process 4711".
  virtual std::string who() const;
  /// Begins an operation. FAILED_PRECONDITION if another one has a conflicting claim; the message says which,
  /// who runs it since when, and what to do. EndsByItself tells whether waiting helps. A lasting operation
  /// that is held already is taken over, with these claims and a new ID; whoever held it before holds it no
  /// more. ALREADY_EXISTS in place of that if it must be new (Operation::is_new).
  [[nodiscard]] absl::StatusOr<Held> Begin(Operation operation);
  /// As Begin, but retries for up to `wait`, and no longer than the thread's call may take (call_scope.h),
  /// while all conflicting operations end by themselves.
  [[nodiscard]] absl::StatusOr<Held> BeginWithin(const Operation& operation, std::chrono::milliseconds wait);
  /// Begins an operation that must not wait, whatever others hold. Conflicting operations that last stay held
  /// beside it; the others lose their claims, so that they notice and stop.
  [[nodiscard]] absl::StatusOr<Held> BeginOver(Operation operation);
  /// ABORTED: the operation is not held any more, because its session has ended, or because somebody has
  /// taken it over or taken its claims away.
  [[nodiscard]] virtual absl::Status Check(std::string_view id) = 0;
  /// Ends an operation. OK if there is none of that ID.
  virtual absl::Status End(std::string_view id) = 0;
  /// Ends the lasting operation of that name (Operation::what). OK if there is none.
  absl::Status EndLasting(std::string_view what);
  /// Retries to end operations whose end failed. Costs nothing if there are none.
  virtual void RetryEnds() {}
  /// The operations that are held now, oldest first.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Operation>> List() = 0;
  /// Takes away the claims of an operation whose process is gone, and returns the operation. NOT_FOUND if
  /// there is none of that ID.
  ///
  /// force  Also if its process may be alive, or it is lasting; without it these are FAILED_PRECONDITION.
  absl::StatusOr<Operation> Release(std::string_view id, bool force);

 protected:
  friend class JoinedLedger;
  /// Claims what an operation touches. All of its fields but the ID are set.
  ///
  /// over  As BeginOver.
  [[nodiscard]] virtual absl::StatusOr<Held> AcquireClaims(Operation operation, bool over) = 0;
};

/// The result of comparing an operation's claims with those that are held.
struct LedgerDecision {
  absl::Status refused;           ///< FAILED_PRECONDITION, as Begin returns it; OK: it may begin.
  std::string same;               ///< The ID of the lasting operation that this one continues; empty: none.
  std::vector<std::string> gone;  ///< The IDs of operations that lose their claims.
};
LedgerDecision Decide(const Operation& wanted, std::span<const Operation> held, bool over);

/// Whether an error of Begin is due only to operations that end by themselves, soon or with their process.
bool EndsByItself(const absl::Status& status);

/// "'compact dataset events', of ann@ops1, process 4711, since 2026-11-23 00:40:12 UTC (operation 3fa29c1b),"
std::string ToString(const Operation& operation);

/// A ledger of one process, in memory. After a restart, whoever continues a lasting operation begins it
/// again.
class MemoryLedger : public Ledger {
 public:
  absl::Status Check(std::string_view id) override;
  absl::Status End(std::string_view id) override;
  absl::StatusOr<std::vector<Operation>> List() override;

 protected:
  absl::StatusOr<Held> AcquireClaims(Operation operation, bool over) override;

 private:
  Mutex mutex_;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // how many operations were begun
  std::map<uint64_t, Operation> by_age_ ABSL_GUARDED_BY(mutex_);
};

/// Two ledgers as one, for a catalog that is not kept where the fleet's operators keep their ledger:
/// operations on shards or hosts are begun in both.
class JoinedLedger : public Ledger {
 public:
  /// own    the catalog's ledger; must outlive this.
  /// fleet  the fleet's ledger; null: there is none.
  JoinedLedger(Ledger& own, std::unique_ptr<Ledger> fleet) : own_(own), fleet_(std::move(fleet)) {}

  absl::Status Check(std::string_view id) override;
  absl::Status End(std::string_view id) override;
  void RetryEnds() override;
  absl::StatusOr<std::vector<Operation>> List() override;

 protected:
  absl::StatusOr<Held> AcquireClaims(Operation operation, bool over) override;

 private:
  /// An operation's counterpart in the fleet's ledger.
  struct Counterpart {
    std::string id;  // empty: it has none
    bool lasting = false;
  };
  Counterpart FindCounterpart(std::string_view id);

  Ledger& own_;
  const std::unique_ptr<Ledger> fleet_;
  Mutex mutex_;
  // By the ID in own_.
  std::map<std::string, Counterpart, std::less<>> counterparts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore
