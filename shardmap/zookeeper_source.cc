#include "shardmap/zookeeper_source.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "coordination/zookeeper.h"

namespace kvstore {
namespace {

/// The session that sources share. Thread-safe.
class MapSession {
 public:
  explicit MapSession(const ZooKeeperOptions& options)
      : servers_(options.servers),
        zookeeper_(
            options, [this] { Changed(); }, ZooKeeper::Away::kTriesInCalls) {}

  ZooKeeper& zookeeper() { return zookeeper_; }
  const std::string& servers() const { return servers_; }
  /// Calls `on_change` at each event; null: no more, and no call is running when this returns.
  ///
  /// source  Whose call it is; replaces the one before.
  void OnChange(const MapSource* source, std::function<void()> on_change) {
    const MutexLock lock(mutex_);
    on_change_[source] = std::move(on_change);
  }

 private:
  // An event does not say of which node it is. To ask for the version of each of the few nodes costs little.
  void Changed() {
    const MutexLock lock(mutex_);
    for (const auto& [source, on_change] : on_change_) {
      if (on_change) on_change();
    }
  }

  const std::string servers_;
  Mutex mutex_;
  std::map<const MapSource*, std::function<void()>> on_change_ ABSL_GUARDED_BY(mutex_);
  ZooKeeper zookeeper_;  // last, so that its events find the members above alive
};

class ZooKeeperSource : public MapSource {
 public:
  ZooKeeperSource(std::shared_ptr<MapSession> session, std::string path)
      : path_(std::move(path)), session_(std::move(session)) {}
  ~ZooKeeperSource() override { session_->OnChange(this, nullptr); }

  absl::StatusOr<std::optional<std::string>> Read() override {
    // The watch is set before the data is read, so that no change in between is missed.
    auto change = session_->zookeeper().Stat(path_, /*watch=*/true);
    if (!change.ok()) return change.status();
    if (read_ && change->transaction < read_->transaction) {
      // The server of a new session may not have heard yet of what was read in an earlier one.
      if (auto status = session_->zookeeper().Sync(path_); !status.ok()) return status;
      change = session_->zookeeper().Stat(path_, /*watch=*/true);
      if (!change.ok()) return change.status();
    }
    if (read_ == *change) return std::nullopt;
    auto node = session_->zookeeper().Get(path_, /*watch=*/false);
    if (!node.ok()) return node.status();
    read_ = node->change;
    return std::move(node->data);
  }
  void OnChange(std::function<void()> on_change) override { session_->OnChange(this, std::move(on_change)); }
  std::chrono::milliseconds poll_interval() const override { return std::chrono::milliseconds(30'000); }
  std::string name() const override { return fmt::format("ZooKeeper at {}, {}", session_->servers(), path_); }

 private:
  const std::string path_;
  const std::shared_ptr<MapSession> session_;
  std::optional<ZooKeeperChange> read_;  // the state of the text that Read has returned last
};

}  // namespace

std::vector<std::unique_ptr<MapSource>> OpenZooKeeperSources(const ZooKeeperOptions& options,
                                                             const std::vector<std::string>& paths) {
  const auto session = std::make_shared<MapSession>(options);
  std::vector<std::unique_ptr<MapSource>> sources;
  sources.reserve(paths.size());
  for (const std::string& path : paths) sources.push_back(std::make_unique<ZooKeeperSource>(session, path));
  return sources;
}

std::unique_ptr<MapSource> OpenZooKeeperSource(const ZooKeeperOptions& options, const std::string& path) {
  return std::move(OpenZooKeeperSources(options, {path}).front());
}

}  // namespace kvstore
