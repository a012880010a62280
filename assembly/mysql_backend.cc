#include "assembly/mysql_backend.h"

#include <utility>

#include "assembly/shared.h"
#include "shardmap/nodes.h"

namespace kvstore {

absl::StatusOr<std::unique_ptr<MySqlBackend>> OpenMySqlBackend(const MySqlFleetOptions& fleet,
                                                               const std::filesystem::path& cache) {
  const bool shared = !fleet.zookeeper.servers.empty();
  const auto source = [&](const std::filesystem::path& file,
                          const char* node) -> absl::StatusOr<std::unique_ptr<MapSource>> {
    if (shared) return OpenSharedMap(fleet.zookeeper, fleet.root + node);
    return OpenFileSource(file);
  };
  auto id = source(fleet.id_map, "/shards/id");
  if (!id.ok()) return id.status();
  auto mod = source(fleet.mod_map, "/shards/mod");
  if (!mod.ok()) return mod.status();
  absl::StatusOr<std::unique_ptr<MapSource>> weights = nullptr;
  if (shared) weights = source({}, "/shards/weights");
  if (!weights.ok()) return weights.status();
  return MySqlBackend::Open({.id = *std::move(id),
                             .mod = *std::move(mod),
                             .weights = *std::move(weights),
                             .id_cache = cache.empty() ? cache : MapCopy(cache, /*mod=*/false),
                             .mod_cache = cache.empty() ? cache : MapCopy(cache, /*mod=*/true)},
                            fleet.options);
}

}  // namespace kvstore
