#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/catalog.h"

/// The part of ZooKeeper's contents that backups have: the settings of datasets, which hosts have which
/// shards, the records of migrations. Golden tests pin the form.
namespace kvstore {

/// The contents of nodes by their paths below the root:
///
///   datasets/NAME, dropped/NAME, migrations/NAME   those of the catalog (zookeeper_catalog.h)
///   shards/id, shards/mod, shards/weights          the shard maps, and the weights of new objects
///
/// They leave out what is in progress at a moment, such as operations and sessions.
using SharedNodes = std::map<std::string, std::string>;

/// The name that the nodes have as a file of a backup.
inline constexpr char kSharedNodesFile[] = "zookeeper.json";

/// Whether a node of this path below the root is one of those.
bool IsSharedNode(std::string_view path);

/// Encodes nodes as {"format": 1, "nodes": {"datasets/events": "..."}}.
std::string EncodeSharedNodes(const SharedNodes& nodes);
/// Decodes them; anybody may have written the text. DATA_LOSS if it does not decode or has a path of another
/// form; FAILED_PRECONDITION if a newer version wrote it.
absl::StatusOr<SharedNodes> DecodeSharedNodes(std::string_view text);

/// Returns the entries of the datasets that exist, by name. Leaves out those that were being created or
/// dropped, and those that cannot be read.
///
/// unreadable  receives a line "datasets/NAME: ERROR" for each entry that cannot be read. May be null.
std::vector<CatalogEntry> ActiveEntries(const SharedNodes& nodes,
                                        std::vector<std::string>* unreadable = nullptr);

}  // namespace kvstore
