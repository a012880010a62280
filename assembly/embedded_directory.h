#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "backend_api/backend.h"
#include "catalog/catalog.h"

namespace kvstore {

/// The directory of an embedded store, which this object has claimed for this process. A store is opened in
/// this order: the directory, the catalog, which may lie in it, and then the engine, which must know what the
/// catalog says. Externally synchronised.
class EmbeddedDirectory {
 public:
  virtual ~EmbeddedDirectory() = default;
  /// The catalog in the directory, for a store whose catalog is not in ZooKeeper.
  virtual absl::StatusOr<std::unique_ptr<Catalog>> OpenCatalog() = 0;
  /// Opens the engine, which takes over the directory. Must be called only once, after any OpenCatalog.
  ///
  /// contents  of the catalog: they say which datasets are here, or may be.
  ///
  /// Errors are those of kvstore::Open.
  virtual absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const CatalogContents& contents) = 0;
};

}  // namespace kvstore
