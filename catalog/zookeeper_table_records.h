#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "backend_api/table_records.h"
#include "coordination/zookeeper.h"

namespace kvstore {

/// The records of tables that were made on first use, in ZooKeeper. A record is a node, for a dataset and an
/// engine (with "-" in front; nothing for the default one):
///
///   ROOT/tables/DATASET-INCARNATION[-ENGINE]
///
/// It has a hexadecimal digit for every four shards, the first shard in the lowest bit of the first digit. A
/// bit says whether the table was made on the shard; those after the last digit are 0. Thread-safe.
class ZooKeeperTableRecords : public TableRecords {
 public:
  /// root  The node below which all of the fleet's nodes are.
  ZooKeeperTableRecords(std::shared_ptr<ZooKeeper> zookeeper, std::string root)
      : folder_(std::move(root) + "/tables"), zookeeper_(std::move(zookeeper)) {}

  absl::Status Begin(const DatasetSpec& spec) override;
  absl::StatusOr<std::optional<bool>> Find(const DatasetSpec& spec, uint32_t shard) override;
  absl::StatusOr<Noted> Add(const DatasetSpec& spec, uint32_t shard) override;
  absl::Status End(const DatasetSpec& spec) override;

  /// Whether any dataset has a record.
  absl::StatusOr<bool> HasAny();
  /// Returns all shards on which the table was made; nullopt if the dataset has no record.
  absl::StatusOr<std::optional<std::set<uint32_t>>> Load(const DatasetSpec& spec);

 private:
  std::string NodeOf(const DatasetSpec& spec) const;
  /// Waits until this session sees what other processes have written.
  absl::Status Sync();

  const std::string folder_;
  const std::shared_ptr<ZooKeeper> zookeeper_;
};

}  // namespace kvstore
