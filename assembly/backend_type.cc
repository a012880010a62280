#include "assembly/backend_type.h"

#include <fmt/format.h>

#include <set>

namespace kvstore {
namespace {

absl::Status CheckNames(const std::vector<BackendConfig>& backends, std::string_view path) {
  std::set<std::string_view> names;
  for (const BackendConfig& backend : backends) {
    if (backend.name.empty())
      return absl::InvalidArgumentError(fmt::format("config: {}: a backend needs a name", path));
    if (!names.insert(backend.name).second) {
      return absl::InvalidArgumentError(
          fmt::format("config: {}: two backends are named '{}'; names must differ", path, backend.name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const BackendType* BackendTypes::Find(std::string_view name) const {
  for (const BackendType& type : types_) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

absl::Status BackendTypes::Check(const OpenOptions& options) const {
  if (auto status = CheckNames(options.backends, "backends"); !status.ok()) return status;
  std::set<std::string_view> seen;
  for (const PlacedBackend& backend : AllBackends(options)) {
    if (auto status = CheckNames(backend.config->inner, backend.path); !status.ok()) return status;
    const std::string& name = backend.config->type;
    const auto refuse = [&](const std::string& problem) {
      return absl::InvalidArgumentError(fmt::format("config: {}.type: {}", backend.path, problem));
    };
    const BackendType* type = Find(name);
    if (type == nullptr) return refuse(UnknownTypeMessage(name));
    if (!seen.insert(type->name).second && type->only_one) return refuse(SecondOfTypeMessage(name));
    if (!type->available.ok()) return type->available;
  }
  return absl::OkStatus();
}

std::string BackendTypes::UnknownTypeMessage(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const BackendType& type : types_) names.push_back(type.name);
  return fmt::format("'{}' is not a type of backend; the types are {}", name, fmt::join(names, ", "));
}

std::string BackendTypes::SecondOfTypeMessage(std::string_view name) {
  return fmt::format("there can be only one backend of type {}", name);
}

}  // namespace kvstore
