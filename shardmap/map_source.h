#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace kvstore {

/// Where the text of a shard map comes from. Externally synchronised, but for the call of on_change.
class MapSource {
 public:
  virtual ~MapSource() = default;
  /// Returns the text as it is now; nullopt if it is known to be the one that the last successful call has
  /// returned, which saves the transfer. UNAVAILABLE and NOT_FOUND name the place that was read.
  [[nodiscard]] virtual absl::StatusOr<std::optional<std::string>> Read() = 0;
  /// From now on calls `on_change`, from any thread, when the text may have changed since it was last read.
  /// `on_change` must not block. If it is null there are no more calls, and none is running when this
  /// returns.
  virtual void OnChange(std::function<void()> on_change) = 0;
  /// About how long a reader should wait for such a call before it reads again anyway.
  [[nodiscard]] virtual std::chrono::milliseconds poll_interval() const = 0;
  /// A name for people: "ZooKeeper at ..., /kvstore/shards/id".
  [[nodiscard]] virtual std::string name() const = 0;
};

/// Returns a source that is a file. Its poll interval is half a second.
std::unique_ptr<MapSource> OpenFileSource(const std::filesystem::path& file);

}  // namespace kvstore
