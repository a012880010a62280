#include "router/dataset_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvstore {

absl::StatusOr<DatasetDirectory::Found> DatasetDirectory::Find(std::string_view name) const {
  Found found{snapshot_.Load(), nullptr};
  const auto entry = found.snapshot->find(name);
  if (entry == found.snapshot->end()) {
    return absl::NotFoundError(fmt::format("dataset: there is none named '{}'", name));
  }
  found.dataset = entry->second.get();
  return found;
}

absl::StatusOr<DatasetDirectory::Found> DatasetDirectory::Find(std::string_view name, Shape shape) const {
  auto found = Find(name);
  if (!found.ok()) return found;
  const ServedDataset& dataset = *found->dataset;
  if (!dataset.problem.ok()) return dataset.problem;
  if (dataset.spec.shape != shape) {
    return absl::FailedPreconditionError(fmt::format("dataset: '{}' holds {}, this call is for {}", name,
                                                     Name(dataset.spec.shape), Name(shape)));
  }
  return found;
}

std::optional<DatasetDirectory::Where> DatasetDirectory::Locate(std::string_view name) const {
  const auto snapshot = snapshot_.Load();
  const auto entry = snapshot->find(name);
  if (entry == snapshot->end()) return std::nullopt;
  const ServedDataset& dataset = *entry->second;
  return Where{dataset.backend_name, dataset.waits, dataset.spec.durability};
}

std::vector<DatasetSpec> DatasetDirectory::List() const {
  const auto snapshot = snapshot_.Load();
  std::vector<DatasetSpec> specs;
  specs.reserve(snapshot->size());
  for (const auto& [name, dataset] : *snapshot) specs.push_back(dataset->spec);
  std::sort(specs.begin(), specs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return specs;
}

void DatasetDirectory::Publish(std::string_view name, std::shared_ptr<const ServedDataset> dataset) {
  Datasets next = *Load();
  next.insert_or_assign(std::string(name), std::move(dataset));
  Replace(std::move(next));
}

void DatasetDirectory::Unpublish(std::string_view name) {
  const auto now = Load();
  if (now->find(name) == now->end()) return;
  Datasets next = *now;
  next.erase(next.find(name));
  Replace(std::move(next));
}

void DatasetDirectory::Replace(Datasets datasets) {
  snapshot_.Store(std::make_shared<const Datasets>(std::move(datasets)));
}

}  // namespace kvstore
