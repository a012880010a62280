#include "catalog/catalog.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

namespace kvstore {

DatasetSpec OtherSide(const CatalogEntry& entry) {
  DatasetSpec spec = entry.spec;
  spec.backend = entry.other_backend;
  spec.engine = entry.other_engine;
  return spec;
}

absl::Status CheckReadable(const CatalogContents& contents, std::string_view dataset) {
  const auto damaged = std::find_if(contents.damaged.begin(), contents.damaged.end(),
                                    [&](const DamagedEntry& entry) { return entry.name == dataset; });
  if (damaged == contents.damaged.end()) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("dataset: the catalog's entry of '{}' cannot be read: {}; other datasets are not affected: "
                  "docs/runbook.md, 'The entry of a dataset cannot be read'",
                  dataset, damaged->problem));
}

absl::Status CheckAllReadable(const CatalogContents& contents, std::string_view refused) {
  if (contents.damaged.empty()) return absl::OkStatus();
  const DamagedEntry& damaged = contents.damaged.front();
  return absl::FailedPreconditionError(
      fmt::format("{} while the catalog's entry of '{}' cannot be read: {}: docs/runbook.md, 'The entry of a "
                  "dataset cannot be read'",
                  refused, damaged.name, damaged.problem));
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
