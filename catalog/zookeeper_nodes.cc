#include "catalog/zookeeper_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"

namespace kvstore {
namespace {

/// How often a catalog is read that others change while it is read.
constexpr int kNodeAttempts = 50;
/// How long SharedNodesReader relies on versions alone.
constexpr std::chrono::minutes kReadAnyway{10};

constexpr const char* kDatasetFolders[] = {"datasets", "dropped", "migrations"};
constexpr const char* kShardNodes[] = {"shards/id", "shards/mod", "shards/weights"};

/// Adds the nodes below a node. ABORTED if one of them goes meanwhile.
absl::Status AddBelow(ZooKeeper& zookeeper, const std::string& root, const std::string& folder,
                      SharedNodes& nodes) {
  const auto names = zookeeper.Children(root + "/" + folder);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    std::string path = folder + "/" + name;
    if (!IsSharedNode(path)) continue;
    auto node = zookeeper.Get(root + "/" + path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) return absl::AbortedError(path);
    if (!node.ok()) return node.status();
    nodes.emplace(std::move(path), std::move(node->data));
  }
  return absl::OkStatus();
}

/// Returns the version of a node; -1 if there is none.
absl::StatusOr<int64_t> VersionOf(ZooKeeper& zookeeper, const std::string& path) {
  const auto node = zookeeper.Get(path, /*watch=*/false);
  if (absl::IsNotFound(node.status())) return -1;
  if (!node.ok()) return node.status();
  return node->version;
}

/// ABORTED if the catalog changes meanwhile.
absl::StatusOr<SharedNodes> ReadOnce(ZooKeeper& zookeeper, const std::string& root) {
  SharedNodes nodes;
  const auto before = VersionOf(zookeeper, root + "/datasets");
  if (!before.ok()) return before.status();
  for (const char* const folder : kDatasetFolders) {
    if (auto status = AddBelow(zookeeper, root, folder, nodes); !status.ok()) return status;
  }
  for (const char* const path : kShardNodes) {
    auto node = zookeeper.Get(fmt::format("{}/{}", root, path), /*watch=*/false);
    if (absl::IsNotFound(node.status())) continue;
    if (!node.ok()) return node.status();
    nodes.emplace(path, std::move(node->data));
  }
  const auto after = VersionOf(zookeeper, root + "/datasets");
  if (!after.ok()) return after.status();
  if (*after != *before) return absl::AbortedError("the catalog");
  return nodes;
}

absl::Status CheckNoOthers(ZooKeeper& zookeeper, const std::string& root, const SharedNodes& nodes) {
  SharedNodes there;
  if (auto status = AddBelow(zookeeper, root, "datasets", there); !status.ok()) return status;
  for (const auto& [path, data] : there) {
    if (nodes.contains(path)) continue;
    return absl::FailedPreconditionError(fmt::format(
        "{}/{}: there is this dataset, which the backup does not have; a catalog is restored only "
        "where there is none (docs/runbook.md says how a single entry is put back)",
        root, path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SharedNodes> ReadSharedNodes(ZooKeeper& zookeeper, const std::string& root) {
  // Makes visible what others wrote before this call.
  if (auto status = zookeeper.Sync(root); !status.ok() && !absl::IsNotFound(status)) return status;
  auto nodes = ReadOnce(zookeeper, root);
  for (int attempt = 1; attempt < kNodeAttempts && absl::IsAborted(nodes.status()); ++attempt) {
    if (auto status = CheckCall(); !status.ok()) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt));
    nodes = ReadOnce(zookeeper, root);
  }
  if (!absl::IsAborted(nodes.status())) return nodes;
  return absl::UnavailableError(fmt::format("{}: the catalog changes faster than it can be read", root));
}

absl::StatusOr<std::vector<int64_t>> SharedNodesReader::Versions() {
  std::vector<int64_t> versions;
  for (const char* const path : {"datasets", kShardNodes[0], kShardNodes[1], kShardNodes[2]}) {
    const auto version = VersionOf(zookeeper_, fmt::format("{}/{}", root_, path));
    if (!version.ok()) return version.status();
    versions.push_back(*version);
  }
  return versions;
}

absl::StatusOr<std::string> SharedNodesReader::Text() {
  // Before the nodes: what changes while they are read is read again by the next call.
  auto versions = Versions();
  if (!versions.ok()) return versions.status();
  const auto now = std::chrono::steady_clock::now();
  if (!text_.empty() && *versions == versions_ && now - read_at_ < kReadAnyway) return text_;
  const auto nodes = ReadSharedNodes(zookeeper_, root_);
  if (!nodes.ok()) return nodes.status();
  text_ = EncodeSharedNodes(*nodes);
  versions_ = *std::move(versions);
  read_at_ = now;
  return text_;
}

absl::StatusOr<RestoredNodes> RestoreSharedNodes(ZooKeeper& zookeeper, const std::string& root,
                                                 const SharedNodes& nodes) {
  constexpr std::string_view kEntryPrefix = "datasets/";
  RestoredNodes restored;
  std::set<std::string> active;
  for (const CatalogEntry& entry : ActiveEntries(nodes))
    active.insert(std::string(kEntryPrefix) + entry.spec.name);
  if (auto status = CheckNoOthers(zookeeper, root, nodes); !status.ok()) return status;
  // Entries last: a dataset that is there has its shard map and the record of its migration.
  std::vector<std::string> entries;
  std::vector<std::string> missing;
  for (const auto& [path, data] : nodes) {
    const bool is_entry = path.starts_with(kEntryPrefix);
    if (is_entry && !active.contains(path)) {
      restored.left_out.push_back(path);
      continue;
    }
    const auto node = zookeeper.Get(root + "/" + path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) {
      (is_entry ? entries : missing).push_back(path);
    } else if (!node.ok()) {
      return node.status();
    } else if (node->data != data) {
      return absl::FailedPreconditionError(fmt::format(
          "{}/{}: is there, and is not what the backup has; a catalog is restored only where there "
          "is none",
          root, path));
    }
  }
  missing.insert(missing.end(), entries.begin(), entries.end());
  for (const std::string& path : missing) {
    Reached("restore-node");
    if (auto status = zookeeper.Create(root + "/" + path, nodes.at(path)); !status.ok()) return status;
    restored.made.push_back(path);
  }
  if (entries.empty()) return restored;
  // Processes that follow the catalog see this version.
  if (auto status = zookeeper.Set(root + "/datasets", "", -1); !status.ok()) return status;
  return restored;
}

}  // namespace kvstore
