#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/types.h"

/// The interface of a backend to migrations, as source or as target. docs/migrating.md has the protocol that
/// is built on it.
namespace kvstore {

/// The state of a dataset in one backend. Values are stored: never renumber.
enum class EndpointState : uint8_t {
  kAbsent = 0,     ///< The dataset does not exist here.
  kImporting = 1,  ///< A migration's worker fills the dataset; clients are refused.
  kServing = 2,    ///< This is the truth: clients read and write here.
  kFrozen = 3,     ///< Still the truth: reads are served, writes are refused.
  kMoved = 4,      ///< The truth is elsewhere: clients are refused; the worker may keep this copy current.
};
/// "importing"
std::string_view Name(EndpointState state);

/// The smallest thing that is copied as a whole, in one form for all shapes.
///
/// rows      key = enc(row) enc(column) (see unit_key.h), its visible cells, newest first
/// objects   key = be64(id), one cell: the object's timestamp and JSON
/// mappings  key = be64(from) be64(to), one cell: timestamp 0, be64(sequence)
struct Unit {
  std::string key;
  std::vector<Cell> cells;  ///< Empty: the unit is absent.
  friend bool operator==(const Unit&, const Unit&) = default;
};

/// The units with keys in [start, end); if `shard` is set, only those on that shard of a backend that has
/// shards.
struct UnitRange {
  std::string start;
  std::string end;  ///< Empty: no end.
  std::string shard;
  friend bool operator==(const UnitRange&, const UnitRange&) = default;
};

/// An entry of a dirty log, which records that a write touched a unit.
struct DirtyEntry {
  uint32_t log = 0;  ///< Which of the backend's logs, for example that of a shard.
  uint64_t id = 0;   ///< Never used twice in a log.
  /// The unit's key. For rows also enc(row) alone, if the whole row was touched.
  std::string key;
};

/// How much of a dirty log is still to be copied.
struct DirtyLag {
  uint64_t entries = 0;
  uint64_t oldest_ms = 0;  ///< Age of the oldest entry; 0 if there is none or the log does not know.
};

/// Whether the protocol allows a transition from one state to another. The same on all backends; to stay in a
/// state is allowed too.
///
/// captures  whether clients' writes are recorded in the state `from`. A dataset must not be frozen
///           without that, because the other side would never learn of the last writes.
bool MayTransition(EndpointState from, bool captures, EndpointState to);

/// The state of all partitions of a dataset in one backend.
struct EndpointStatus {
  std::map<EndpointState, uint32_t> partitions;  ///< How many partitions are in each state.
  bool capture = false;  ///< Writes are recorded on all partitions that are not absent.
  uint64_t epoch = 0;    ///< The highest of all partitions.
  /// Whether all partitions are in this state.
  bool All(EndpointState state) const { return partitions.size() == 1 && partitions.begin()->first == state; }
  bool Any(EndpointState state) const { return partitions.contains(state); }
};

/// Reads units in order of their keys. Externally synchronised, bounded in memory.
class UnitScan {
 public:
  virtual ~UnitScan() = default;
  /// Returns the next units, about as many as fit a page; an empty page is the end. In a range that
  /// Partitions returned, they are read during this call; in other ranges some may have been read ahead.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Unit>> Next() = 0;
};

/// A dataset in one backend, as a migration sees it. Only the worker of a migration has one. Thread-safe.
///
/// A worker has an epoch, which every change names. Once a later worker has raised the epoch, changes of the
/// earlier one are refused with ABORTED. The check and the change are atomic, so that a worker that was
/// thought dead does no harm.
///
/// The backend itself refuses clients' calls that the state forbids (outcome.h), atomically with what the
/// calls do. A partition is whatever the backend changes at once: a shard, or the whole dataset.
class MigrationEndpoint {
 public:
  virtual ~MigrationEndpoint() = default;

  /// Returns the partitions that there are now, as text for Limit; empty if they never change. Makes no
  /// network call: it is what this process knows.
  [[nodiscard]] virtual absl::StatusOr<std::string> Extent() = 0;
  /// Restricts all other calls to these partitions, so that partitions that appear later are left alone until
  /// a worker includes them, between two steps. Must not run beside other calls. INVALID_ARGUMENT for a text
  /// that Extent cannot have returned.
  ///
  /// extent  what Extent returned, to this worker or to an earlier one. Empty, or never called: all
  ///         partitions that there are at each moment.
  [[nodiscard]] virtual absl::Status Limit(const std::string& extent) = 0;

  [[nodiscard]] virtual absl::StatusOr<EndpointStatus> Status() = 0;
  /// Returns a text that changes when acknowledged writes may have been lost: when a host was restarted, or
  /// replaced by another one. Cheap: a round trip to each host.
  [[nodiscard]] virtual absl::StatusOr<std::string> BootId() = 0;
  /// Makes this the epoch of all partitions, also of absent ones. ABORTED if one of them has it already, or a
  /// later one.
  [[nodiscard]] virtual absl::Status RaiseEpoch(uint64_t epoch) = 0;

  /// Brings all partitions to a state; those that are in it already stay. When this returns OK, no client can
  /// still commit what the state forbids, and, if `capture` is set, everything that is committed from now on
  /// is recorded. If it fails halfway, repeat it, or undo it by a transition to the state before.
  /// FAILED_PRECONDITION if MayTransition forbids it.
  ///
  /// capture  Clients' writes are recorded in the dirty log, atomically with the write. For kImporting and
  ///          kMoved it only ensures that everything is ready for that, before a transition to kServing.
  ///          Without it the log is removed, and after a transition to kServing or kAbsent nothing of the
  ///          migration is left.
  [[nodiscard]] virtual absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) = 0;

  /// TransitionTo for partitions that may be in any state, because they appeared since the migration began,
  /// or because their host came back with older data. Each is brought to `state` by a safe path; absent ones
  /// are created, empty. With kMoved, partitions that serve are frozen first, and keep the entries of their
  /// log; partitions that are importing stay so, which is as good.
  ///
  /// state  kImporting, kServing or kMoved.
  [[nodiscard]] virtual absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) = 0;

  /// Returns the first `limit` entries of each dirty log, in order of their IDs. That need not be the order
  /// of commits, so always read from the head again.
  [[nodiscard]] virtual absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) = 0;
  /// Removes exactly these entries.
  [[nodiscard]] virtual absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) = 0;
  [[nodiscard]] virtual absl::StatusOr<DirtyLag> Lag() = 0;

  /// Returns about `wanted` ranges that together contain all units, each once.
  [[nodiscard]] virtual absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) = 0;
  /// Returns the visible content of units as it is now, in the order of `keys`; units that are absent have no
  /// cells.
  ///
  /// as_of  the time (ms) at which cells are judged to be expired or not.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys,
                                                               uint64_t as_of) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range,
                                                                       uint64_t as_of) = 0;
  /// Replaces the units' cells by exactly these, each unit atomically; a unit without cells is removed. Keys
  /// must differ. FAILED_PRECONDITION unless the state is kImporting or kMoved.
  ///
  /// fresh  Nobody but this worker has ever written these keys here: saves reading what is there.
  [[nodiscard]] virtual absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) = 0;

  /// Returns the highest timestamp (ms) that was assigned to a row; 0 for other shapes.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> LastTimestamp() = 0;
  /// Makes all timestamps that are assigned from now on higher than this one.
  [[nodiscard]] virtual absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) = 0;
  /// Objects: returns the next local ID of each shard that has any. Empty for other shapes.
  [[nodiscard]] virtual absl::StatusOr<std::map<uint32_t, uint64_t>> NextLocalIds() = 0;
  /// Makes all local IDs that are assigned from now on at least these, by shard. INVALID_ARGUMENT if a shard
  /// is not open here.
  [[nodiscard]] virtual absl::Status RaiseLocalIds(uint64_t epoch,
                                                   const std::map<uint32_t, uint64_t>& next) = 0;
};

}  // namespace kvstore
