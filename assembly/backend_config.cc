#include "assembly/backend_config.h"

#include <fmt/format.h>

#include <utility>

namespace kvstore {
namespace {

void AddWithInner(const PlacedBackend& backend, std::vector<PlacedBackend>& all) {
  all.push_back(backend);
  for (const BackendConfig& inner : backend.config->inner) {
    AddWithInner(
        {.config = &inner, .name = backend.name, .path = fmt::format("{}.{}", backend.path, inner.name)},
        all);
  }
}

}  // namespace

std::vector<PlacedBackend> OutermostBackends(const OpenOptions& options) {
  std::vector<PlacedBackend> outermost;
  for (const BackendConfig& config : options.backends) {
    outermost.push_back(
        {.config = &config, .name = config.name, .path = fmt::format("backends.{}", config.name)});
  }
  return outermost;
}

std::vector<PlacedBackend> AllBackends(const OpenOptions& options) {
  std::vector<PlacedBackend> all;
  for (const PlacedBackend& backend : OutermostBackends(options)) AddWithInner(backend, all);
  return all;
}

std::optional<PlacedBackend> FindBackendOfType(const OpenOptions& options, std::string_view type) {
  for (PlacedBackend& backend : AllBackends(options)) {
    if (backend.config->type == type) return std::move(backend);
  }
  return std::nullopt;
}

const MySqlFleetOptions* FindFleet(const OpenOptions& options) {
  const auto fleet = FindBackendOfType(options, kMySql);
  return fleet ? std::any_cast<MySqlFleetOptions>(&fleet->config->options) : nullptr;
}

MySqlFleetOptions* FindFleet(OpenOptions& options) {
  // The options that are found are a part of `options`, which the caller may change.
  return const_cast<MySqlFleetOptions*>(FindFleet(std::as_const(options)));
}

absl::Status WrongOptionsError(const PlacedBackend& backend) {
  return absl::InvalidArgumentError(
      fmt::format("config: {}: its options are not the struct that belongs to type {} (kvstore_api/open.h)",
                  backend.path, backend.config->type));
}

}  // namespace kvstore
