#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/backend.h"
#include "base/snapshot.h"
#include "kvstore_api/dataset.h"

namespace kvstore {

/// A dataset that is open here. The store of its shape is set, the others are null.
struct ServedDataset {
  DatasetSpec spec;  ///< Only the name, and no backend, if the catalog's entry cannot be read.
  Backend* backend = nullptr;
  std::string_view backend_name;
  bool waits = false;    ///< Capabilities::waits of the backend.
  absl::Status problem;  ///< Why it could not be opened; then no store is set.
  std::shared_ptr<RowStore> rows;
  std::shared_ptr<ObjectStore> objects;
  std::shared_ptr<MappingStore> mappings;
};

/// The datasets that calls find in this process: an immutable snapshot of the catalog. Finding costs one hash
/// look-up, without a lock that others hold for long. Reading is thread-safe; changes are made by one thread
/// at a time (CatalogKeeper, under its lock).
class DatasetDirectory {
 public:
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Datasets =
      std::unordered_map<std::string, std::shared_ptr<const ServedDataset>, NameHash, std::equal_to<>>;

  /// A dataset, and the snapshot that keeps it alive during a call.
  struct Found {
    std::shared_ptr<const Datasets> snapshot;
    const ServedDataset* dataset;
    const ServedDataset* operator->() const { return dataset; }
  };

  /// Where calls on a dataset go.
  struct Where {
    std::string_view backend;                      ///< The backend's name; valid as long as the router.
    bool waits = false;                            ///< Capabilities::waits.
    Durability durability = Durability::kProcess;  ///< DatasetSpec::durability.
  };

  DatasetDirectory() : snapshot_(std::make_shared<const Datasets>()) {}

  /// NOT_FOUND if there is none of that name. A dataset that could not be opened is found, with its problem.
  absl::StatusOr<Found> Find(std::string_view name) const;
  /// As above; the dataset's problem if it could not be opened, and FAILED_PRECONDITION if it has another
  /// shape.
  absl::StatusOr<Found> Find(std::string_view name, Shape shape) const;
  /// Returns nothing for a dataset that is not known.
  std::optional<Where> Locate(std::string_view name) const;
  /// Returns the specs of all datasets, sorted by name.
  std::vector<DatasetSpec> List() const;
  /// Returns all datasets of this moment. They stay open for as long as the caller holds them.
  std::shared_ptr<const Datasets> Load() const { return snapshot_.Load(); }

  /// Makes calls find the dataset, in place of another one of its name.
  void Publish(std::string_view name, std::shared_ptr<const ServedDataset> dataset);
  /// Makes calls find no dataset of that name.
  void Unpublish(std::string_view name);
  /// Makes calls find these datasets and no others. Calls that found one before keep it until they end.
  void Replace(Datasets datasets);

 private:
  Snapshot<Datasets> snapshot_;
};

}  // namespace kvstore
