#include "shardmap/nodes.h"

namespace kvstore {

std::string HostsPath(const std::string& root) { return root + "/hosts"; }

std::string MapPath(const std::string& root, ShardSpace space) {
  return root + (space == ShardSpace::kMod ? "/shards/mod" : "/shards/id");
}

std::string WeightsPath(const std::string& root) { return root + "/shards/weights"; }

std::filesystem::path MapCopy(const std::filesystem::path& folder, ShardSpace space) {
  return folder / (space == ShardSpace::kMod ? "shards-mod.json" : "shards-id.json");
}

std::string HostPath(const std::string& root, const Host& host) {
  return HostsPath(root) + "/" + host.ToString();
}

}  // namespace kvstore
