#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "kvstore_api/catalog.h"

namespace kvstore {

/// A catalog in one JSON file, for stores without ZooKeeper. A change writes a new file, syncs it, and
/// renames it over the old one, so that a crash leaves either. Made for tens or hundreds of datasets.
///
///   {"format": 1, "datasets": [{"dataset": "...", ..., "incarnation": "...", "state": "active"}, ...]}
class FileCatalog : public Catalog {
 public:
  explicit FileCatalog(std::filesystem::path path) : path_(std::move(path)) {}

  absl::StatusOr<std::vector<CatalogEntry>> Load() override;
  absl::Status Put(const CatalogEntry& entry) override;
  absl::Status Remove(std::string_view name) override;

 private:
  using Entries = std::map<std::string, CatalogEntry, std::less<>>;
  absl::Status Replace(Entries entries);

  const std::filesystem::path path_;
  Entries entries_;
};

/// The text of a catalog file, and back. Pinned by a golden test.
std::string EncodeCatalog(const std::vector<CatalogEntry>& entries);
absl::StatusOr<std::vector<CatalogEntry>> DecodeCatalog(std::string_view text);

}  // namespace kvstore
