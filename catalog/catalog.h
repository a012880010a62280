#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/ledger.h"
#include "kvstore_api/metrics_sink.h"

namespace kvstore {

/// Where a dataset is in its life. A create or drop that a crash cut short is seen here, and finished later.
/// Values are stored: never renumber.
enum class DatasetState : uint8_t { kCreating = 1, kActive = 2, kDropping = 3 };

struct CatalogEntry {
  DatasetSpec spec;
  DatasetState state = DatasetState::kActive;
  /// Of a state that is not kActive: the process that is at it, as Catalog::self gives it.
  std::string owner = {};
  /// While the dataset migrates: the backend on the other side, and its DatasetSpec::engine. Until that ends
  /// the dataset is not altered or dropped.
  std::string other_backend = {};
  std::string other_engine = {};
  friend bool operator==(const CatalogEntry&, const CatalogEntry&) = default;
};

/// The dataset as its other side has it.
DatasetSpec OtherSide(const CatalogEntry& entry);

struct CatalogContents {
  std::vector<CatalogEntry> entries;  ///< By name, ascending.
  int64_t version = 0;                ///< Another one after each change.
};

/// A document beside the catalog.
struct CatalogRecord {
  std::string text;
  int64_t version = 0;  ///< Another one after each change.
};

/// The record of a migration as whoever works at it knows it. A change that names one is made only if the
/// record is at this version still: a worker that another one has overtaken changes nothing any more.
struct RecordFence {
  std::string_view name;  ///< Of the dataset.
  int64_t version = 0;
};

/// The list of datasets with their settings, kept durably, of one process or shared by many. Changes are
/// compare-and-set: they name the version that they were decided on. Externally synchronised, but for
/// `OnChange`'s call and `Describe`.
class Catalog {
 public:
  virtual ~Catalog() = default;

  /// As it is now. DATA_LOSS if what is stored cannot be read, UNAVAILABLE if it cannot be reached.
  [[nodiscard]] virtual absl::StatusOr<CatalogContents> Load() = 0;
  /// As it was when it could be reached last, from a copy on this machine; NOT_FOUND without one.
  [[nodiscard]] virtual absl::StatusOr<CatalogContents> LoadCopy() const = 0;

  /// Adds or replaces the entry of that name, and gives the new version. ABORTED if the catalog has changed
  /// since `version`. Durable when it returns OK; UNAVAILABLE leaves open if it happened.
  ///
  /// fence  ABORTED also if this record is not at its version any more, or is gone; the check and the change
  /// are
  ///        one step. None: no record is looked at.
  [[nodiscard]] virtual absl::StatusOr<int64_t> Put(const CatalogEntry& entry, int64_t version,
                                                    const std::optional<RecordFence>& fence) = 0;
  [[nodiscard]] absl::StatusOr<int64_t> Put(const CatalogEntry& entry, int64_t version) {
    return Put(entry, version, std::nullopt);
  }
  /// The same for taking an entry out. OK if there is none.
  [[nodiscard]] virtual absl::StatusOr<int64_t> Remove(std::string_view name, int64_t version) = 0;

  /// How many datasets of that name are gone, or about to: what other processes may still take the next one
  /// for. 0 where there are no others.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CountDropped(std::string_view) { return 0; }

  /// The record of a dataset's migration; NOT_FOUND if there is none.
  [[nodiscard]] virtual absl::StatusOr<CatalogRecord> GetRecord(std::string_view name) = 0;
  /// Writes it, and gives its new version. ABORTED if it is not at `version` any more; -1: if there is one.
  [[nodiscard]] virtual absl::StatusOr<int64_t> PutRecord(std::string_view name, std::string_view text,
                                                          int64_t version) = 0;
  /// ABORTED if it is not at `version` any more: it is another migration's, or another worker's. OK if there
  /// is none.
  [[nodiscard]] virtual absl::Status RemoveRecord(std::string_view name, int64_t version) = 0;
  /// The names of all, ascending.
  [[nodiscard]] virtual absl::StatusOr<std::vector<std::string>> ListRecords() = 0;

  /// What is being done to datasets, shards and hosts, by all who change this catalog. Thread-safe.
  [[nodiscard]] virtual Ledger& ledger() = 0;
  /// Whether other processes change it too.
  [[nodiscard]] virtual bool shared() const = 0;
  /// This process, as CatalogEntry::owner.
  [[nodiscard]] virtual std::string self() const = 0;
  /// Whether that process still runs. In doubt: yes.
  [[nodiscard]] virtual bool IsAlive(const std::string& owner) = 0;
  /// Calls `on_change`, from any thread, when the catalog may have changed since it was loaded. It must not
  /// block. Null: no more calls; returns when none is running.
  virtual void OnChange(std::function<void()> on_change) = 0;
  /// How long to wait for such a call before loading again anyway.
  [[nodiscard]] virtual std::chrono::milliseconds poll_interval() const = 0;

  virtual void Describe(MetricsSink& sink) const = 0;
};

/// For a start: the catalog as it is now or, where it is shared and cannot be read, its copy on this machine,
/// which the log says. What is wrong with the catalog if there is no copy.
absl::StatusOr<CatalogContents> LoadOrCopy(Catalog& catalog);

}  // namespace kvstore
