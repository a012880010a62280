#include "catalog/zookeeper_consumers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kvstore_api/limits.h"

namespace kvstore {
namespace {

constexpr char kForm = 1;
/// ZooKeeper refuses nodes whose names are "." and "..", which consumers may have.
constexpr std::string_view kNamePrefix = "c-";

absl::Status NoConsumerError(const DatasetSpec& spec, std::string_view name) {
  return absl::NotFoundError(fmt::format("name: '{}' has no consumer named '{}'", spec.name, name));
}

}  // namespace

std::string ZooKeeperConsumers::NodeOf(const DatasetSpec& spec) const {
  return fmt::format("{}/{}-{:016x}", folder_, spec.name, spec.incarnation);
}

std::string ZooKeeperConsumers::NodeOf(const DatasetSpec& spec, std::string_view name) const {
  return fmt::format("{}/{}{}", NodeOf(spec), kNamePrefix, name);
}

absl::StatusOr<std::vector<NotedConsumer>> ZooKeeperConsumers::List(const DatasetSpec& spec) {
  std::vector<NotedConsumer> consumers;
  auto nodes = zookeeper_.Children(NodeOf(spec));
  if (absl::IsNotFound(nodes.status())) return consumers;
  if (!nodes.ok()) return nodes.status();
  std::sort(nodes->begin(), nodes->end());
  for (const std::string& node : *nodes) {
    if (!node.starts_with(kNamePrefix)) continue;
    auto consumer = Find(spec, std::string_view(node).substr(kNamePrefix.size()));
    if (absl::IsNotFound(consumer.status())) continue;  // it was dropped meanwhile
    if (!consumer.ok()) return consumer.status();
    consumers.push_back(*std::move(consumer));
  }
  return consumers;
}

absl::StatusOr<NotedConsumer> ZooKeeperConsumers::Find(const DatasetSpec& spec, std::string_view name) {
  const auto node = zookeeper_.Get(NodeOf(spec, name), /*watch=*/false);
  if (absl::IsNotFound(node.status())) return NoConsumerError(spec, name);
  if (!node.ok()) return node.status();
  if (node->data.empty() || node->data.front() != kForm) {
    return absl::FailedPreconditionError(
        fmt::format("{}: a newer version of KVStore wrote it; use that version", NodeOf(spec, name)));
  }
  return NotedConsumer{.name = std::string(name),
                       .position = node->data.substr(1),
                       .set_ms = node->changed_ms,
                       .version = node->version};
}

absl::Status ZooKeeperConsumers::Create(const DatasetSpec& spec, std::string_view name,
                                        const std::string& data) {
  const std::string above = NodeOf(spec);
  auto others = zookeeper_.List(above);
  if (absl::IsNotFound(others.status())) {
    for (const std::string& missing : {folder_, above}) {
      absl::Status made = zookeeper_.Create(missing, "", /*open=*/true);
      if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    }
    others = zookeeper_.List(above);
  }
  if (!others.ok()) return others.status();
  if (others->names.size() >= kMaxConsumers) {
    return absl::ResourceExhaustedError(
        fmt::format("name: '{}' has {} consumers already, which is the limit; kv consumers list {} shows "
                    "those that are gone",
                    spec.name, kMaxConsumers, spec.name));
  }
  absl::Status made = zookeeper_.Change(
      {{.kind = ZooKeeperStep::Kind::kSet, .path = above, .data = "", .version = others->version},
       {.kind = ZooKeeperStep::Kind::kCreate, .path = NodeOf(spec, name), .data = data, .version = -1}});
  // Another process has made one at the same time, or has ended the keeping of changes.
  if (absl::IsFailedPrecondition(made) || absl::IsAlreadyExists(made) || absl::IsNotFound(made)) {
    return absl::AbortedError(std::string(made.message()));
  }
  return made;
}

absl::Status ZooKeeperConsumers::Put(const DatasetSpec& spec, std::string_view name,
                                     std::string_view position, std::optional<int32_t> version) {
  if (position.size() > kMaxPositionBytes) {
    return absl::ResourceExhaustedError(fmt::format("token: has {} bytes, and {} can be noted of a consumer",
                                                    position.size(), kMaxPositionBytes));
  }
  const std::string data = kForm + std::string(position);
  if (!version) return Create(spec, name, data);
  absl::Status set = zookeeper_.Set(NodeOf(spec, name), data, *version);
  if (absl::IsFailedPrecondition(set) || absl::IsNotFound(set)) {
    return absl::AbortedError(std::string(set.message()));
  }
  return set;
}

absl::Status ZooKeeperConsumers::Drop(const DatasetSpec& spec, std::string_view name) {
  const absl::Status dropped = zookeeper_.Delete(NodeOf(spec, name));
  return absl::IsNotFound(dropped) ? NoConsumerError(spec, name) : dropped;
}

absl::Status ZooKeeperConsumers::DropAll(const DatasetSpec& spec) {
  const std::string above = NodeOf(spec);
  constexpr int kAttempts = 5;
  absl::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto nodes = zookeeper_.Children(above);
    if (absl::IsNotFound(nodes.status())) return absl::OkStatus();
    if (!nodes.ok()) return nodes.status();
    for (const std::string& node : *nodes) {
      status = zookeeper_.Delete(fmt::format("{}/{}", above, node));
      if (!status.ok() && !absl::IsNotFound(status)) return status;
    }
    // It fails if somebody has noted a consumer meanwhile.
    status = zookeeper_.Delete(above);
    if (status.ok() || absl::IsNotFound(status)) return absl::OkStatus();
  }
  return status;
}

}  // namespace kvstore
