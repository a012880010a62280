#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/shared_nodes.h"
#include "coordination/zookeeper.h"

/// Reads what processes share in ZooKeeper for a backup, and puts it back.
namespace kvstore {

/// Reads the nodes below a root, those of datasets as of one moment. UNAVAILABLE if ZooKeeper does not
/// answer, or if the catalog changes faster than it can be read.
absl::StatusOr<SharedNodes> ReadSharedNodes(ZooKeeper& zookeeper, const std::string& root);

/// Reads them again and again, for a log. Most of the time it asks for four versions only: others than those
/// of datasets and maps are read anew when one of these has changed, and every ten minutes. Externally
/// synchronised.
class SharedNodesReader {
 public:
  SharedNodesReader(ZooKeeperOptions options, std::string root)
      : zookeeper_(std::move(options), nullptr), root_(std::move(root)) {}

  /// Returns the nodes of now, encoded (EncodeSharedNodes). Errors as of ReadSharedNodes.
  absl::StatusOr<std::string> Text();

 private:
  /// The versions of the nodes that change with the others; -1 for one that is not there.
  absl::StatusOr<std::vector<int64_t>> Versions();

  ZooKeeper zookeeper_;
  const std::string root_;
  std::vector<int64_t> versions_;
  std::chrono::steady_clock::time_point read_at_{};
  std::string text_;
};

/// The result of RestoreSharedNodes.
struct RestoredNodes {
  std::vector<std::string> made;      ///< The paths of the nodes that were missing.
  std::vector<std::string> left_out;  ///< Entries of datasets that did not exist: they were being created or
                                      ///< dropped, or could not be read.
};

/// Puts the nodes of a backup into a ZooKeeper that has lost them. If it was interrupted, call it again.
///
/// FAILED_PRECONDITION, and nothing is changed, if a node is there with other contents, or if there is a
/// dataset that the backup does not have.
absl::StatusOr<RestoredNodes> RestoreSharedNodes(ZooKeeper& zookeeper, const std::string& root,
                                                 const SharedNodes& nodes);

}  // namespace kvstore
