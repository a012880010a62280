#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/catalog.h"

/// The stored forms of the catalog. Pinned by golden tests.
namespace kvstore {

/// One entry: {"dataset": "...", ..., "incarnation": "...", "state": "active"}, and back.
std::string EncodeCatalogEntry(const CatalogEntry& entry);
absl::StatusOr<CatalogEntry> DecodeCatalogEntry(std::string_view text);

/// All of them: {"format": 1, "datasets": [...]}, and back.
std::string EncodeCatalog(const std::vector<CatalogEntry>& entries);
absl::StatusOr<std::vector<CatalogEntry>> DecodeCatalog(std::string_view text);

/// A file of that form. DATA_LOSS if it does not decode, FAILED_PRECONDITION if a newer version wrote it.
absl::StatusOr<std::vector<CatalogEntry>> ReadCatalogFile(const std::string& path);

}  // namespace kvstore
