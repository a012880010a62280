#include "assembly/backend_opener.h"

#include <fmt/format.h>

namespace kvstore {

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const PlacedBackend& backend,
                                                     const BackendOpenerContext& context) {
  BackendOpener opener(backend, context);
  return context.types.Find(backend.config->type)->open(opener);
}

absl::StatusOr<std::unique_ptr<Backend>> BackendOpener::OpenInner(std::string_view name) const {
  const auto path = fmt::format("{}.{}", backend_.path, name);
  for (const BackendConfig& inner : backend_.config->inner) {
    if (inner.name == name) {
      return OpenBackend({.config = &inner, .name = backend_.name, .path = path}, context_);
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("config: {}: missing; type {} needs a backend there", path, backend_.config->type));
}

}  // namespace kvstore
