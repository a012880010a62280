#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/local_id_floors.h"
#include "backend_api/unit.h"

/// How a whole dataset is read, as units: to copy it, to compare it, to export it, to back it up.
///
///     auto reader = backend.OpenUnits(spec);
///     auto snapshot = (*reader)->Snapshot(std::chrono::minutes(30));
///     for (const UnitRange& range : *(*snapshot)->Partitions(8)) {  // which eight threads may share
///       auto scan = (*snapshot)->Scan(range, as_of);
///       for (auto page = (*scan)->Next(); page.ok() && !page->empty(); page = (*scan)->Next()) Keep(*page);
///     }
namespace kvstore {

/// Reads units in order of their keys. Externally synchronised, bounded in memory. A scan must not outlive
/// the view that it came from.
class UnitScan {
 public:
  virtual ~UnitScan() = default;
  /// Returns the next units, about as many as fit a page; an empty page is the end. In a range that
  /// Partitions returned, they are read during this call; in other ranges some may have been read ahead.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Unit>> Next() = 0;
};

/// The units of a dataset in one backend: as they are at each moment (UnitReader), or as they were at one
/// moment (UnitSnapshot). Thread-safe.
///
/// `as_of` is the time (ms) at which cells are judged to be expired or not, by the dataset's present
/// settings. The backend's own time is used in place of a later one.
class UnitView {
 public:
  virtual ~UnitView() = default;

  /// Returns about `wanted` ranges that together contain all units, each once.
  [[nodiscard]] virtual absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) = 0;
  /// Returns the visible content of units, in the order of `keys`; units that are absent have no cells.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys,
                                                               uint64_t as_of) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range,
                                                                       uint64_t as_of) = 0;
};

/// A consistent view of a dataset: all reads return what was stored when the snapshot was taken, whatever is
/// written, deleted, created or dropped beside it. Its destructor releases it. It may outlive its reader, and
/// must be destroyed before its backend. Thread-safe.
///
/// **What is one moment.** An embedded store is seen at one moment as a whole. In a fleet, all shards of one
/// host are seen at one moment, but each host at its own: their snapshots begin in parallel, some
/// milliseconds apart, so that of two writes to different hosts the later one may be in the snapshot and the
/// earlier one not. Nothing holds commits on all masters at once; that would stop clients' writes. Each
/// host's snapshot has a position in that host's binary log (a GTID). A reader that recorded these positions
/// could apply the logs to the copy up to one later point in time; this is not done yet.
///
/// **Expired cells.** A snapshot keeps cells from being deleted, not from expiring: a cell whose time to live
/// ends while the snapshot is held may be missing, even if `as_of` is earlier.
///
/// **When it expires.** Reads, also of scans that are under way, fail with ABORTED once the snapshot is lost,
/// and say why: its time is over; a shard has another master, or the connection to its host was lost (only
/// reads of that host's shards fail then); the dataset was dropped, or has migrated to another backend. What
/// was read before is right, but what is left cannot be read any more: a whole copy begins again, with
/// another snapshot.
///
/// **What it costs.** The backend keeps what was overwritten or deleted since, which takes space and slows
/// other reads of such data, and in a fleet one connection of each host's pool. At most a quarter of a pool
/// is used in this way. Reads of shards of one host wait for each other.
class UnitSnapshot : public UnitView {};

/// Returns the ABORTED error of a snapshot that has expired.
///
/// why  "its time of 60 s is over"
absl::Status SnapshotExpiredError(std::string_view why);
/// Returns when a snapshot expires that is taken now: after `max_age`, or after a hundred years if that is
/// longer.
std::chrono::steady_clock::time_point SnapshotEnd(std::chrono::seconds max_age);

/// The units of a dataset as they are: each is of one moment, but those that are read one after another may
/// be of different moments. Thread-safe.
///
/// Backend::OpenUnits gives one for any dataset, whether it migrates or not. Its calls are refused while
/// those of clients are (outcome.h). The reader of a MigrationEndpoint reads the dataset in all states; if a
/// unit is written while it is read, that reader may return a part of it, because the dirty log then names
/// the unit (change_capture.h).
class UnitReader : public UnitView {
 public:
  /// Takes a snapshot of the dataset.
  ///
  /// max_age  It expires after this time. If it is not read meanwhile, a fleet's hosts end their parts after
  ///          this time without a read, so that one that was forgotten holds a host's resources for at most
  ///          twice this time.
  ///
  /// UNAVAILABLE         a host cannot be reached.
  /// RESOURCE_EXHAUSTED  a host has as many snapshots as its pool of connections allows.
  /// UNIMPLEMENTED       the readers of migrations, and of backends behind another server, take none.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<UnitSnapshot>> Snapshot(std::chrono::seconds max_age);

  // The units themselves do not tell the following. A copy must be given it (UnitWriter::RaiseTimestamp and
  // RaiseLocalIds) before clients write to the copy.

  /// Returns the highest timestamp (ms) that was assigned to a row; 0 for other shapes.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> LastTimestamp() = 0;
  /// Returns the lowest local IDs that may be assigned next; a default one for other shapes than objects.
  [[nodiscard]] virtual absl::StatusOr<LocalIdFloors> NextLocalIds() = 0;
};

}  // namespace kvstore
