#include "shardmap/map_source.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/files.h"

namespace kvstore {
namespace {

using std::chrono::milliseconds;

class FileSource : public MapSource {
 public:
  explicit FileSource(std::filesystem::path file) : file_(std::move(file)) {}

  absl::StatusOr<std::string> Read() override {
    errno = 0;
    std::ifstream in(file_, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    if (!in) return FileError(file_, "read", errno);
    return text;
  }
  void OnChange(std::function<void()>) override {}
  milliseconds poll_interval() const override { return milliseconds(500); }
  std::string name() const override { return file_.string(); }

 private:
  const std::filesystem::path file_;
};

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
    const std::lock_guard lock(mutex_);
    on_change_ = std::move(on_change);
  }
  milliseconds poll_interval() const override { return milliseconds(30'000); }
  std::string name() const override { return fmt::format("ZooKeeper at {}, {}", servers_, path_); }

 private:
  void Changed() {
    const std::lock_guard lock(mutex_);
    if (on_change_) on_change_();
  }

  const std::string path_;
  const std::string servers_;
  std::mutex mutex_;
  std::function<void()> on_change_;  // guarded by mutex_
  ZooKeeper zookeeper_;              // last: its events use what is above
};

}  // namespace

std::unique_ptr<MapSource> OpenFileSource(const std::filesystem::path& file) {
  return std::make_unique<FileSource>(file);
}

std::unique_ptr<MapSource> OpenZooKeeperSource(const ZooKeeperOptions& options, const std::string& path) {
  return std::make_unique<ZooKeeperSource>(options, path);
}

}  // namespace kvstore
