#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/metrics_sink.h"
#include "catalog/ledger.h"
#include "kvstore_api/dataset.h"

namespace kvstore {

/// The state of a dataset's entry. It shows a create or drop that a crash cut short, which is finished later.
/// Values are stored: never renumber.
enum class DatasetState : uint8_t { kCreating = 1, kActive = 2, kDropping = 3 };

struct CatalogEntry {
  DatasetSpec spec;
  DatasetState state = DatasetState::kActive;
  /// While the dataset is created or dropped: the process that does it, as Catalog::self returns it.
  std::string owner = {};
  /// While the dataset migrates: the backend on the other side, and the engine there (DatasetSpec::engine).
  /// The dataset cannot be altered or dropped until the migration has ended.
  std::string other_backend = {};
  std::string other_engine = {};
  friend bool operator==(const CatalogEntry&, const CatalogEntry&) = default;
};

/// The dataset as the other side of its migration has it.
DatasetSpec OtherSide(const CatalogEntry& entry);

/// An entry that cannot be read. Nothing is known of its dataset but the name.
struct DamagedEntry {
  std::string name;
  std::string problem;  ///< "ZooKeeper at ..., /kvstore/datasets/events: ..."
};

struct CatalogContents {
  std::vector<CatalogEntry> entries;       ///< By name, ascending.
  int64_t version = 0;                     ///< Differs after each change.
  std::vector<DamagedEntry> damaged = {};  ///< By name, ascending. Their datasets exist all the same.
};

/// DATA_LOSS if the dataset has an entry that cannot be read.
absl::Status CheckReadable(const CatalogContents& contents, std::string_view dataset);
/// FAILED_PRECONDITION if any entry cannot be read, for a caller who must know all datasets.
///
/// refused  begins the message: "dataset: none can be created"
absl::Status CheckAllReadable(const CatalogContents& contents, std::string_view refused);

/// The record of a migration, a document that is stored beside the catalog.
struct CatalogRecord {
  std::string text;
  int64_t version = 0;  ///< Differs after each change.
};

/// The version of a migration's record that a worker knows. A change that names a fence is made only if the
/// record is still at this version, so that a worker that another one has overtaken changes nothing any more.
struct RecordFence {
  std::string_view name;  ///< The dataset's.
  int64_t version = 0;
};

/// The list of datasets with their settings, stored durably, of one process or shared by many. Changes are
/// compare-and-set: they name the version that they were decided on. Externally synchronised, except for
/// `ledger`, `Describe`, and the call that `OnChange` asks for.
class Catalog {
 public:
  virtual ~Catalog() = default;

  /// Returns the catalog as it is now. DATA_LOSS if what is stored does not decode, unless that is the
  /// entries of some datasets only; UNAVAILABLE if it cannot be reached.
  [[nodiscard]] virtual absl::StatusOr<CatalogContents> Load() = 0;
  /// Returns the catalog as it was when it was last loaded, from a copy on this machine; NOT_FOUND without
  /// one.
  [[nodiscard]] virtual absl::StatusOr<CatalogContents> LoadCopy() const = 0;

  /// Adds or replaces the entry of that name, and returns the catalog's new version. ABORTED if the catalog
  /// has changed since `version`. The change is durable when this returns OK; after UNAVAILABLE it may or may
  /// not have been made.
  ///
  /// fence  ABORTED also if this record is gone, or at another version; the check and the change are atomic.
  ///        None: no record is checked.
  [[nodiscard]] virtual absl::StatusOr<int64_t> Put(const CatalogEntry& entry, int64_t version,
                                                    const std::optional<RecordFence>& fence) = 0;
  [[nodiscard]] absl::StatusOr<int64_t> Put(const CatalogEntry& entry, int64_t version) {
    return Put(entry, version, std::nullopt);
  }
  /// Removes an entry, with the same results as Put. OK if there is none.
  [[nodiscard]] virtual absl::StatusOr<int64_t> Remove(std::string_view name, int64_t version) = 0;

  /// How many datasets of that name were dropped, or are being dropped: other processes may still mistake the
  /// next one for one of them. 0 where there are no other processes.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CountDropped(std::string_view) { return 0; }

  /// The record of a dataset's migration; NOT_FOUND if there is none.
  [[nodiscard]] virtual absl::StatusOr<CatalogRecord> GetRecord(std::string_view name) = 0;
  /// Writes a record, and returns its new version. ABORTED if it is not at `version` any more. With -1 the
  /// record is created: ABORTED if there is one.
  [[nodiscard]] virtual absl::StatusOr<int64_t> PutRecord(std::string_view name, std::string_view text,
                                                          int64_t version) = 0;
  /// Removes a record. ABORTED if it is not at `version` any more, because it belongs to another worker or
  /// another migration. OK if there is none.
  [[nodiscard]] virtual absl::Status RemoveRecord(std::string_view name, int64_t version) = 0;
  /// The names of all datasets that have a record, ascending.
  [[nodiscard]] virtual absl::StatusOr<std::vector<std::string>> ListRecords() = 0;

  /// The operations of everybody who changes this catalog, on datasets, shards and hosts. Thread-safe.
  [[nodiscard]] virtual Ledger& ledger() = 0;
  /// Whether other processes change the catalog too.
  [[nodiscard]] virtual bool shared() const = 0;
  /// The name of this process for CatalogEntry::owner.
  [[nodiscard]] virtual std::string self() const = 0;
  /// Whether that process still runs. True if that cannot be found out.
  [[nodiscard]] virtual bool IsAlive(const std::string& owner) = 0;
  /// Makes the catalog call `on_change`, from any thread, when it may have changed since it was loaded. The
  /// call must not block. Null: no more calls; returns once none is running.
  virtual void OnChange(std::function<void()> on_change) = 0;
  /// How long to wait for such a call before the catalog should be loaded anyway.
  [[nodiscard]] virtual std::chrono::milliseconds poll_interval() const = 0;

  virtual void Describe(MetricsSink& sink) const = 0;
};

/// Returns the catalog for the start of a process: as it is now or, if it is shared and cannot be read, its
/// copy on this machine, with a warning in the log. The error of the catalog if there is no copy either.
absl::StatusOr<CatalogContents> LoadOrCopy(Catalog& catalog);

}  // namespace kvstore
