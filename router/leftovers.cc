#include "router/leftovers.h"

#include <algorithm>
#include <cstdint>

#include "backend_api/leftover.h"

namespace kvstore {
namespace {

/// How many leftovers of one name are removed before the create gives up.
constexpr int kAttempts = 10;

/// Whether the catalog names a dataset of that incarnation that exists or is being created.
bool NamesIncarnation(const CatalogContents& contents, uint64_t incarnation) {
  return std::any_of(contents.entries.begin(), contents.entries.end(), [&](const CatalogEntry& entry) {
    return entry.spec.incarnation == incarnation && entry.state != DatasetState::kDropping;
  });
}

}  // namespace

absl::Status CreateWithoutLeftovers(Backend& backend, Catalog& catalog, const DatasetSpec& spec) {
  for (int attempt = 1;; ++attempt) {
    absl::Status created = backend.CreateDataset(spec);
    const auto leftover = LeftoverOf(created);
    if (!leftover || attempt == kAttempts) return created;
    const auto contents = catalog.Load();
    if (!contents.ok()) return contents.status();
    // The leftover may belong to a dataset whose entry cannot be read, so it is kept while there is one.
    if (NamesIncarnation(*contents, *leftover) || !contents->damaged.empty()) return created;
    DatasetSpec dead = spec;
    dead.incarnation = *leftover;
    if (auto status = backend.DropLeftover(dead); !status.ok()) return status;
  }
}

}  // namespace kvstore
