#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "shardmap/weights.h"

/// The weights of shards in ZooKeeper, ROOT/shards/weights, which all processes of the fleet watch.
namespace kvstore::shardops {

/// Returns the weights; none if there is no node yet. INVALID_ARGUMENT if the node has something else.
absl::StatusOr<ShardWeights> ReadWeights(ZooKeeper& zookeeper, const std::string& root);

/// Sets the weight of some shards, and returns all weights as they are then. FAILED_PRECONDITION, and nothing
/// is changed, if somebody else changes the weights at the same moment; ALREADY_EXISTS if that made the first
/// ones.
absl::StatusOr<ShardWeights> SetWeight(ZooKeeper& zookeeper, const std::string& root,
                                       const ShardWeight& change);

}  // namespace kvstore::shardops
