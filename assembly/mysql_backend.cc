#include "assembly/mysql_backend.h"

#include <utility>

#include "assembly/shared.h"
#include "shardmap/nodes.h"

namespace kvstore {

absl::StatusOr<std::unique_ptr<MySqlBackend>> OpenMySqlBackend(const MySqlFleetOptions& fleet,
                                                               const std::filesystem::path& cache) {
  mysql::MapSources sources{.id_cache = cache.empty() ? cache : MapCopy(cache, ShardSpace::kId),
                            .mod_cache = cache.empty() ? cache : MapCopy(cache, ShardSpace::kMod)};
  if (fleet.zookeeper.servers.empty()) {
    sources.id = OpenFileSource(fleet.id_map);
    sources.mod = OpenFileSource(fleet.mod_map);
  } else {
    auto shared =
        OpenSharedMaps(fleet.zookeeper, {MapPath(fleet.root, ShardSpace::kId),
                                         MapPath(fleet.root, ShardSpace::kMod), WeightsPath(fleet.root)});
    if (!shared.ok()) return shared.status();
    sources.id = std::move((*shared)[0]);
    sources.mod = std::move((*shared)[1]);
    sources.weights = std::move((*shared)[2]);
  }
  return MySqlBackend::Open(std::move(sources), fleet.options, OpenFleetConsumers(fleet),
                            OpenFleetTables(fleet));
}

}  // namespace kvstore
