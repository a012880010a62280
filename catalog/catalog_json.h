#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/catalog.h"

/// The stored forms of the catalog. Golden tests pin them.
namespace kvstore {

/// Encodes an entry as {"dataset": "...", ..., "incarnation": "...", "state": "active"}, and decodes it.
std::string EncodeCatalogEntry(const CatalogEntry& entry);
absl::StatusOr<CatalogEntry> DecodeCatalogEntry(std::string_view text);

/// Encodes a catalog as {"format": 1, "datasets": [...]}, and decodes it.
std::string EncodeCatalog(const std::vector<CatalogEntry>& entries);
/// EncodeCatalog in two steps, so that a change of one entry need not encode all others again: the text of
/// one entry within the catalog's, ...
std::string EncodeCatalogPart(const CatalogEntry& entry);
/// ... and the catalog's text, of those of all entries.
std::string JoinCatalogParts(const std::vector<std::string_view>& parts);
absl::StatusOr<std::vector<CatalogEntry>> DecodeCatalog(std::string_view text);

/// Reads a file of that form. DATA_LOSS if it does not decode, FAILED_PRECONDITION if a newer version of the
/// program wrote it.
absl::StatusOr<std::vector<CatalogEntry>> ReadCatalogFile(const std::string& path);

}  // namespace kvstore
