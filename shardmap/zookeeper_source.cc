#include "shardmap/zookeeper_source.h"

#include <fmt/format.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "coordination/zookeeper.h"

namespace kvstore {
namespace {

using std::chrono::milliseconds;

class ZooKeeperSource : public MapSource {
 public:
  ZooKeeperSource(const ZooKeeperOptions& options, std::string path)
      : path_(std::move(path)), servers_(options.servers), zookeeper_(options, [this] { Changed(); }) {}

  absl::StatusOr<std::string> Read() override {
    auto node = zookeeper_.Get(path_, /*watch=*/true);
    if (!node.ok()) return node.status();
    return std::move(node->data);
  }
  void OnChange(std::function<void()> on_change) override {
    const MutexLock lock(mutex_);
    on_change_ = std::move(on_change);
  }
  milliseconds poll_interval() const override { return milliseconds(30'000); }
  std::string name() const override { return fmt::format("ZooKeeper at {}, {}", servers_, path_); }

 private:
  void Changed() {
    const MutexLock lock(mutex_);
    if (on_change_) on_change_();
  }

  const std::string path_;
  const std::string servers_;
  Mutex mutex_;
  std::function<void()> on_change_ ABSL_GUARDED_BY(mutex_);
  ZooKeeper zookeeper_;  // last, so that its events find the members above alive
};

}  // namespace

std::unique_ptr<MapSource> OpenZooKeeperSource(const ZooKeeperOptions& options, const std::string& path) {
  return std::make_unique<ZooKeeperSource>(options, path);
}

}  // namespace kvstore
