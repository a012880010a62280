#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"

namespace kvstore {

/// Where the text of a shard map comes from. Externally synchronised, but for the call of on_change.
class MapSource {
 public:
  virtual ~MapSource() = default;
  /// The text as it is now. UNAVAILABLE or NOT_FOUND says where it was looked for.
  [[nodiscard]] virtual absl::StatusOr<std::string> Read() = 0;
  /// Calls `on_change`, from any thread, when the text may have changed since it was read last. It must not
  /// block. Null: no more calls; returns when none is running.
  virtual void OnChange(std::function<void()> on_change) = 0;
  /// How long to wait for such a call before reading again anyway.
  [[nodiscard]] virtual std::chrono::milliseconds poll_interval() const = 0;
  /// For people: "ZooKeeper at ..., /kvstore/shards/id".
  [[nodiscard]] virtual std::string name() const = 0;
};

/// A file, which is read again twice a second.
std::unique_ptr<MapSource> OpenFileSource(const std::filesystem::path& file);

/// A node of ZooKeeper, watched; read again twice a minute too, in case a watch is lost.
std::unique_ptr<MapSource> OpenZooKeeperSource(const ZooKeeperOptions& options, const std::string& path);

}  // namespace kvstore
