#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"

namespace kvstore {

/// Where a dataset is in its life. A create or drop that a crash cut short is seen here, and finished at the
/// next start. Values are stored: never renumber.
enum class DatasetState : uint8_t { kCreating = 1, kActive = 2, kDropping = 3 };

struct CatalogEntry {
  DatasetSpec spec;
  DatasetState state = DatasetState::kActive;
  friend bool operator==(const CatalogEntry&, const CatalogEntry&) = default;
};

/// The list of datasets with their settings, kept durably. Externally synchronised: the router holds a lock.
class Catalog {
 public:
  virtual ~Catalog() = default;
  /// All entries by name, ascending. DATA_LOSS if what is stored cannot be read.
  [[nodiscard]] virtual absl::StatusOr<std::vector<CatalogEntry>> Load() = 0;
  /// Adds or replaces the entry of that name; durable when it returns OK, unchanged when it does not.
  [[nodiscard]] virtual absl::Status Put(const CatalogEntry& entry) = 0;
  /// OK if there is none.
  [[nodiscard]] virtual absl::Status Remove(std::string_view name) = 0;
};

}  // namespace kvstore
