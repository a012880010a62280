#include "catalog/catalog.h"

#include <spdlog/spdlog.h>

#include <string>

namespace kvstore {

DatasetSpec OtherSide(const CatalogEntry& entry) {
  DatasetSpec spec = entry.spec;
  spec.backend = entry.other_backend;
  spec.engine = entry.other_engine;
  return spec;
}

absl::StatusOr<CatalogContents> LoadOrCopy(Catalog& catalog) {
  auto contents = catalog.Load();
  if (contents.ok() || !catalog.shared()) return contents;
  auto copy = catalog.LoadCopy();
  if (absl::IsNotFound(copy.status())) return contents;
  spdlog::warn("the catalog cannot be read, its copy on this machine is used: {}",
               std::string(contents.status().message()));
  return copy;
}

}  // namespace kvstore
