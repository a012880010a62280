#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "catalog/catalog_json.h"

using namespace kvstore;

/// Any bytes as a catalog, and as an entry of one, are refused, or read back the same after they are written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto entries = DecodeCatalog(text); entries.ok()) {
    const auto again = DecodeCatalog(EncodeCatalog(*entries));
    if (!again.ok() || *again != *entries) std::abort();
  }
  if (const auto entry = DecodeCatalogEntry(text); entry.ok()) {
    const auto again = DecodeCatalogEntry(EncodeCatalogEntry(*entry));
    if (!again.ok() || *again != *entry) std::abort();
  }
  return 0;
}
