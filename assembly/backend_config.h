#pragma once

#include <any>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/open.h"

/// Looks into the backends of a store's configuration, those behind others included.
namespace kvstore {

/// A backend, and where it stands in the configuration.
struct PlacedBackend {
  /// Points into the OpenOptions that it was found in; never null.
  const BackendConfig* config = nullptr;
  /// The name of the outermost backend around it, or its own if there is none: the name that datasets have
  /// for their backend.
  std::string name;
  /// For messages: "backends.NAME", and "backends.NAME.FIELD" for one that stands for a field of that one.
  std::string path;
};

/// The backends that datasets can name, in the order of the configuration.
std::vector<PlacedBackend> OutermostBackends(const OpenOptions& options);
std::vector<PlacedBackend> OutermostBackends(const OpenOptions&& options) = delete;

/// The same and the backends behind them, each after the one that stands in front of it.
std::vector<PlacedBackend> AllBackends(const OpenOptions& options);
std::vector<PlacedBackend> AllBackends(const OpenOptions&& options) = delete;

/// The first backend of this type; nullopt if there is none.
std::optional<PlacedBackend> FindBackendOfType(const OpenOptions& options, std::string_view type);
std::optional<PlacedBackend> FindBackendOfType(const OpenOptions&& options, std::string_view type) = delete;

/// The options of the store's fleet of MySQL servers; null if it has none. They live as long as `options`.
const MySqlFleetOptions* FindFleet(const OpenOptions& options);
MySqlFleetOptions* FindFleet(OpenOptions& options);
const MySqlFleetOptions* FindFleet(const OpenOptions&& options) = delete;

/// The INVALID_ARGUMENT of OptionsOf.
absl::Status WrongOptionsError(const PlacedBackend& backend);

/// The options of a backend, as the struct of its type; its defaults if none were given. INVALID_ARGUMENT if
/// they are another struct.
template <typename Options>
absl::StatusOr<Options> OptionsOf(const PlacedBackend& backend) {
  const std::any& given = backend.config->options;
  if (!given.has_value()) return Options();
  const auto* options = std::any_cast<Options>(&given);
  if (options == nullptr) return WrongOptionsError(backend);
  return *options;
}

}  // namespace kvstore
