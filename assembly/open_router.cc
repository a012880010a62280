#include "assembly/open_router.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "assembly/backend_config.h"
#include "assembly/backend_opener.h"
#include "assembly/backend_type.h"
#include "assembly/shared.h"

namespace kvstore {
namespace {

constexpr char kCatalogCopy[] = "catalog-copy.json";

/// Whether the catalog's ledger of operations is also the one of the fleet's operators.
bool SharesLedger(const OpenOptions& options, const MySqlFleetOptions& fleet) {
  return options.coordination && options.coordination->root == fleet.root &&
         options.coordination->zookeeper.servers == fleet.zookeeper.servers;
}

absl::Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("data: cannot create the folder {}: {}", folder.string(), error.message()));
}

/// The backend whose engine keeps its data in OpenOptions::data; nullopt if there is none.
std::optional<PlacedBackend> FindEmbedded(const OpenOptions& options, const BackendTypes& types) {
  for (PlacedBackend& backend : AllBackends(options)) {
    if (types.Find(backend.config->type)->open_directory) return std::move(backend);
  }
  return std::nullopt;
}

/// Opens the backends, the one named `last` last.
absl::StatusOr<Router::Backends> OpenBackends(const BackendOpenerContext& context, std::string_view last) {
  std::vector<PlacedBackend> order = OutermostBackends(context.options);
  std::stable_partition(order.begin(), order.end(),
                        [&](const PlacedBackend& backend) { return backend.name != last; });
  Router::Backends backends;
  for (const PlacedBackend& backend : order) {
    auto opened = OpenBackend(backend, context);
    if (!opened.ok()) return opened.status();
    backends.emplace(backend.name, *std::move(opened));
  }
  return backends;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KVStore>> Open(const OpenOptions& options) { return OpenRouter(options); }

absl::StatusOr<std::unique_ptr<Router>> OpenRouter(const OpenOptions& options, const BackendTypes& types) {
  if (auto status = types.Check(options); !status.ok()) return status;
  const std::optional<PlacedBackend> embedded = FindEmbedded(options, types);
  if (!embedded && !options.coordination) {
    return absl::InvalidArgumentError(
        "config: backends: needs a backend of type rocksdb, which holds the catalog, or the field zookeeper");
  }
  std::unique_ptr<EmbeddedDirectory> directory;
  if (embedded) {
    auto claimed = types.Find(embedded->config->type)->open_directory(*embedded, options);
    if (!claimed.ok()) return claimed.status();
    directory = *std::move(claimed);
  } else if (auto status = MakeFolder(options.data); !status.ok()) {
    // Without an embedded engine the directory holds only copies, so that several processes may share it.
    return status;
  }
  auto catalog = options.coordination ? OpenSharedCatalog(*options.coordination, options.data / kCatalogCopy)
                                      : directory->OpenCatalog();
  if (!catalog.ok()) return catalog.status();
  auto contents = LoadOrCopy(**catalog);
  if (!contents.ok()) return contents.status();
  // The embedded engine reads its logs when it opens, which takes long: in vain if another backend fails.
  auto backends =
      OpenBackends({.options = options, .types = types, .contents = *contents, .directory = directory.get()},
                   embedded ? embedded->name : "");
  if (!backends.ok()) return backends.status();
  std::unique_ptr<Ledger> ledger;
  if (const MySqlFleetOptions* fleet = FindFleet(options); fleet && !SharesLedger(options, *fleet)) {
    ledger = OpenFleetLedger(*fleet);
  }
  return Router::Open(*std::move(catalog), *contents, *std::move(backends), options.default_backend,
                      std::move(ledger));
}

}  // namespace kvstore
