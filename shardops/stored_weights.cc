#include "shardops/stored_weights.h"

#include "shardmap/nodes.h"

namespace kvstore::shardops {
namespace {

/// The weights as they are stored.
struct StoredWeights {
  absl::StatusOr<ZooKeeperNode> node;  ///< NOT_FOUND if there are none yet.
  ShardWeights weights;
};

absl::StatusOr<StoredWeights> LoadWeights(ZooKeeper& zookeeper, const std::string& root) {
  StoredWeights stored{.node = zookeeper.Get(WeightsPath(root), /*watch=*/false), .weights = {}};
  if (absl::IsNotFound(stored.node.status())) return stored;
  if (!stored.node.ok()) return stored.node.status();
  auto weights = ParseWeights(stored.node->data);
  if (!weights.ok()) return weights.status();
  stored.weights = *std::move(weights);
  return stored;
}

}  // namespace

absl::StatusOr<ShardWeights> ReadWeights(ZooKeeper& zookeeper, const std::string& root) {
  auto stored = LoadWeights(zookeeper, root);
  if (!stored.ok()) return stored.status();
  return std::move(stored->weights);
}

absl::StatusOr<ShardWeights> SetWeight(ZooKeeper& zookeeper, const std::string& root,
                                       const ShardWeight& change) {
  const auto stored = LoadWeights(zookeeper, root);
  if (!stored.ok()) return stored.status();
  ShardWeights weights = WithWeight(stored->weights, change);
  const std::string text = ToJson(weights);
  absl::Status written = stored->node.ok() ? zookeeper.Set(WeightsPath(root), text, stored->node->version)
                                           : zookeeper.Create(WeightsPath(root), text);
  if (!written.ok()) return written;
  return weights;
}

}  // namespace kvstore::shardops
