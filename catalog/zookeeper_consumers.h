#pragma once

#include <string>

#include "backend_api/consumer_places.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/zookeeper_options.h"

namespace kvstore {

/// The places of consumers in ZooKeeper. A consumer is a node, which has a byte 01 and its position:
///
///   ROOT/consumers/DATASET-INCARNATION/c-NAME
///
/// The version of the node of the dataset counts the consumers that were made, so that two processes which
/// make one at the same time cannot have one too many. A session begins with the first call. Thread-safe.
class ZooKeeperConsumers : public ConsumerPlaces {
 public:
  /// root  The node below which all of the fleet's nodes are.
  ZooKeeperConsumers(const ZooKeeperOptions& options, std::string root)
      : folder_(std::move(root) + "/consumers"),
        zookeeper_(options, nullptr, ZooKeeper::Away::kTriesInCalls) {}

  absl::StatusOr<std::vector<NotedConsumer>> List(const DatasetSpec& spec) override;
  absl::StatusOr<NotedConsumer> Find(const DatasetSpec& spec, std::string_view name) override;
  absl::Status Put(const DatasetSpec& spec, std::string_view name, std::string_view position,
                   std::optional<int32_t> version) override;
  absl::Status Drop(const DatasetSpec& spec, std::string_view name) override;
  absl::Status DropAll(const DatasetSpec& spec) override;

 private:
  /// The node of a dataset, and of a consumer of it.
  std::string NodeOf(const DatasetSpec& spec) const;
  std::string NodeOf(const DatasetSpec& spec, std::string_view name) const;
  absl::Status Create(const DatasetSpec& spec, std::string_view name, const std::string& data);

  const std::string folder_;
  ZooKeeper zookeeper_;
};

}  // namespace kvstore
