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

/// What a migration needs of a backend, on either side. docs/migrating.md tells the protocol that is built on
/// it.
namespace kvstore {

/// Where a dataset stands in one backend. Values are stored: never renumber.
enum class EndpointState : uint8_t {
  kAbsent = 0,     ///< There is nothing.
  kImporting = 1,  ///< Filled by a migration's worker; clients are refused.
  kServing = 2,    ///< The truth.
  kFrozen = 3,     ///< Still the truth: reads are served, writes refused.
  kMoved = 4,      ///< The truth is elsewhere: clients are refused; the worker may keep it current.
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
  std::vector<Cell> cells;  ///< None: the unit is absent.
  friend bool operator==(const Unit&, const Unit&) = default;
};

/// A part of all units: those with keys in [start, end), on one shard if the backend has shards and `shard`
/// names one.
struct UnitRange {
  std::string start;
  std::string end;  ///< Empty: no end.
  std::string shard;
  friend bool operator==(const UnitRange&, const UnitRange&) = default;
};

/// One entry of a dirty log: a write touched the unit.
struct DirtyEntry {
  uint32_t log = 0;  ///< Which of the backend's logs, a shard's say.
  uint64_t id = 0;   ///< Never given twice in a log.
  std::string key;   ///< Of a unit; rows: or enc(row) alone, where all of a row was touched.
};

struct DirtyLag {
  uint64_t entries = 0;
  uint64_t oldest_ms = 0;  ///< Age of the oldest entry; 0 if there is none or the log does not know.
};

/// How one backend stands, all of its partitions together.
struct EndpointStatus {
  std::map<EndpointState, uint32_t> partitions;  ///< How many are in each state.
  bool capture = false;                          ///< On all that are there.
  uint64_t epoch = 0;                            ///< The highest.
  /// Whether all are in this state.
  bool All(EndpointState state) const { return partitions.size() == 1 && partitions.begin()->first == state; }
  bool Any(EndpointState state) const { return partitions.contains(state); }
};

/// Walks units in order of their keys. Externally synchronised, bounded in memory.
class UnitScan {
 public:
  virtual ~UnitScan() = default;
  /// The next units, about as many as fit a page; an empty page is the end. In a range of Partitions they
  /// were read during this call; in others some may have been read ahead.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Unit>> Next() = 0;
};

/// A dataset in one backend, as a migration sees it. Only the worker of a migration has one. Thread-safe.
///
/// A worker has an epoch. What changes something names it, and is refused with ABORTED once a later worker
/// has raised it: the check and the change are atomic, so that a worker that was thought dead does no harm.
///
/// Clients' calls are refused by the backend itself, atomically with what they do, as the state says:
/// moved.h. A partition is whatever the backend changes at once: a shard, or all.
class MigrationEndpoint {
 public:
  virtual ~MigrationEndpoint() = default;

  /// Which partitions there are now, as text for Limit; empty where they are always the same. Asks nobody: it
  /// is what this process knows.
  [[nodiscard]] virtual absl::StatusOr<std::string> Extent() = 0;
  /// From now on all else here speaks of these partitions only, which Extent gave, to this worker or to one
  /// before it: what appears later is left alone until a worker takes it in between two steps. Empty, or not
  /// called: of all that there are at each moment. INVALID_ARGUMENT for a text that is none. Not beside other
  /// calls.
  [[nodiscard]] virtual absl::Status Limit(const std::string& extent) = 0;

  [[nodiscard]] virtual absl::StatusOr<EndpointStatus> Status() = 0;
  /// Another text when what was acknowledged before may be gone: another host, or one that was restarted.
  /// Cheap: a round trip to each host.
  [[nodiscard]] virtual absl::StatusOr<std::string> Boot() = 0;
  /// Makes this the epoch of all partitions; ABORTED if one has it, or a later one. Works on what is absent.
  [[nodiscard]] virtual absl::Status RaiseEpoch(uint64_t epoch) = 0;

  /// Sweeps all partitions to a state; those that are there already are left. When it returns OK, no client
  /// can still commit what the state forbids, and what is committed from now on is captured, if `capture`
  /// says so. A sweep that failed halfway is repeated, or undone by one to the state before. Legal ways are
  /// those of the protocol: FAILED_PRECONDITION for others.
  ///
  /// capture  Writes of clients are recorded in the dirty log, atomically with the write. For kImporting and
  ///          kMoved it says that all is ready to do so, before kServing is entered. Without it the log is
  ///          removed; with kServing or kAbsent nothing of the migration is left.
  [[nodiscard]] virtual absl::Status Enter(uint64_t epoch, EndpointState state, bool capture) = 0;

  /// The same for partitions that may stand anywhere: that appeared since the migration began, or whose host
  /// came back with less than it had. They are brought to the state on whichever way is safe; what is absent
  /// is made, empty. Of a side that must not serve, kMoved: whatever serves there is frozen first, and what
  /// its log has stays in it; what is importing is left so, which is as good.
  ///
  /// state  kImporting, kServing or kMoved.
  [[nodiscard]] virtual absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) = 0;

  /// The first `limit` entries of each dirty log. Order is that of IDs, which need not be that of commits:
  /// begin at the head again each time.
  [[nodiscard]] virtual absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) = 0;
  /// Removes exactly these.
  [[nodiscard]] virtual absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) = 0;
  [[nodiscard]] virtual absl::StatusOr<DirtyLag> Lag() = 0;

  /// About so many ranges that together are all units, each once.
  [[nodiscard]] virtual absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) = 0;
  /// The units' visible content now, in the order asked; of what is not there, without cells.
  ///
  /// as_of  the time (ms) by which cells are expired or not.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys,
                                                               uint64_t as_of) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range,
                                                                       uint64_t as_of) = 0;
  /// Makes the units have exactly these cells, each unit atomically; one without cells is removed. Keys must
  /// differ. FAILED_PRECONDITION unless importing or moved.
  ///
  /// fresh  nothing was put under these keys before but by this worker since it began: saves looking for what
  ///        there is.
  [[nodiscard]] virtual absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) = 0;

  /// The highest timestamp (ms) that was assigned to a row; other shapes: 0.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> LastTimestamp() = 0;
  /// Timestamps assigned from now on are higher.
  [[nodiscard]] virtual absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) = 0;
  /// Objects: the next local ID of each shard that has any; other shapes: none.
  [[nodiscard]] virtual absl::StatusOr<std::map<uint32_t, uint64_t>> NextLocalIds() = 0;
  /// Local IDs given from now on are at least these. INVALID_ARGUMENT if a shard is not open here.
  [[nodiscard]] virtual absl::Status RaiseLocalIds(uint64_t epoch,
                                                   const std::map<uint32_t, uint64_t>& next) = 0;
};

}  // namespace kvstore
