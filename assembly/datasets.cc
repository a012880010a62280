#include "assembly/datasets.h"

namespace kvstore {

std::vector<DatasetSpec> DatasetsOf(const std::vector<CatalogEntry>& entries, std::string_view backend) {
  std::vector<DatasetSpec> specs;
  for (const CatalogEntry& entry : entries) {
    if (entry.state == DatasetState::kActive && entry.spec.backend == backend) specs.push_back(entry.spec);
  }
  return specs;
}

}  // namespace kvstore
