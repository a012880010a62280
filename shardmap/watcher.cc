#include "shardmap/watcher.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/files.h"
#include "base/jitter.h"
#include "shardmap/diff.h"
#include "shardmap/mod_shard.h"

namespace kvstore {
namespace {

/// How long the first retry after a failed read waits at most, and every later one.
constexpr std::chrono::milliseconds kFirstRetry{1000};
constexpr std::chrono::milliseconds kLastRetry{16'000};
/// How many changes of one map are logged one by one.
constexpr size_t kLoggedChanges = 20;

absl::StatusOr<ShardMap> ParseChecked(std::string_view text, ShardSpace space, const ShardMap* current) {
  auto map = ShardMap::Parse(text);
  if (!map.ok() || space == ShardSpace::kId) return map;
  absl::Status status = current != nullptr ? ValidateModUpdate(*current, *map) : ValidateModMap(*map);
  if (!status.ok()) return status;
  return map;
}

void LogChanges(const std::string& source, const std::vector<ShardChange>& changes) {
  for (size_t i = 0; i < std::min(changes.size(), kLoggedChanges); ++i)
    spdlog::info("{}: {}", source, changes[i].ToString());
  if (changes.size() > kLoggedChanges)
    spdlog::info("{}: and {} more changes", source, changes.size() - kLoggedChanges);
}

}  // namespace

ShardMapWatcher::ShardMapWatcher(std::unique_ptr<MapSource> source, WatcherOptions options)
    : source_(std::move(source)), options_(std::move(options)) {
  stats_.read_at = std::chrono::steady_clock::now();
}

absl::StatusOr<std::unique_ptr<ShardMapWatcher>> ShardMapWatcher::Start(std::unique_ptr<MapSource> source,
                                                                        WatcherOptions options) {
  std::unique_ptr<ShardMapWatcher> watcher(new ShardMapWatcher(std::move(source), std::move(options)));
  ShardMapWatcher* const self = watcher.get();
  self->source_->OnChange([self] {
    {
      const MutexLock lock(self->mutex_);
      self->wanted_ = true;
    }
    self->changed_.notify_all();
  });
  // The cache is loaded first, because a map of the source must have its number of mod shards.
  const absl::Status cached = self->StartFromCache();
  if (absl::Status status = self->Adopt(self->source_->Read()); !status.ok() && !cached.ok()) return status;
  self->thread_ = std::thread([self] { self->Run(); });
  return watcher;
}

ShardMapWatcher::~ShardMapWatcher() {
  source_->OnChange(nullptr);
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status ShardMapWatcher::StartFromCache() {
  if (options_.cache.empty()) return absl::NotFoundError("there is no cache of the shard map");
  std::ifstream file(options_.cache, std::ios::binary);
  if (!file)
    return absl::NotFoundError(
        fmt::format("there is no cache of the shard map at {}", options_.cache.string()));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto map = ParseChecked(text, options_.space, nullptr);
  if (!map.ok()) {
    spdlog::error("the cached shard map {} is damaged: {}", options_.cache.string(),
                  std::string(map.status().message()));
    return map.status();
  }
  maps_.push_back(std::make_unique<const ShardMap>(*std::move(map)));
  current_.store(maps_.back().get(), std::memory_order_release);
  const MutexLock lock(mutex_);
  stats_.from_cache = true;
  return absl::OkStatus();
}

absl::Status ShardMapWatcher::Adopt(const absl::StatusOr<std::optional<std::string>>& text) {
  if (!text.ok()) {
    const MutexLock lock(mutex_);
    ++stats_.failures;
    ++failed_reads_;
    if (stats_.problem != text.status())
      spdlog::warn("the shard map cannot be read: {}", std::string(text.status().message()));
    return stats_.problem = text.status();
  }
  {
    const MutexLock lock(mutex_);
    failed_reads_ = 0;
    stats_.read_at = std::chrono::steady_clock::now();
    if (!*text) return stats_.problem = verdict_;
  }
  absl::Status verdict = AdoptText(**text);
  const MutexLock lock(mutex_);
  return stats_.problem = verdict_ = std::move(verdict);
}

absl::Status ShardMapWatcher::AdoptText(const std::string& text) {
  const ShardMap* const current = current_.load();
  auto map = ParseChecked(text, options_.space, current);
  if (!map.ok()) {
    const MutexLock lock(mutex_);
    // A bad edit is counted and logged once, however often it is read.
    if (refused_text_ == text) return map.status();
    refused_text_ = text;
    ++stats_.refused;
    // Under the same lock as the count, so that nobody sees one without the other.
    stats_.problem = map.status();
    spdlog::error("{}: refused, {}: {}", source_->name(),
                  current != nullptr ? "the last good map stays in force" : "and there is none in force",
                  std::string(map.status().message()));
    return map.status();
  }
  {
    const MutexLock lock(mutex_);
    stats_.problem = absl::OkStatus();
    refused_text_.clear();
  }
  if (current != nullptr && *map == *current) {
    const MutexLock lock(mutex_);
    if (std::exchange(stats_.from_cache, false)) ++stats_.updates;
    return absl::OkStatus();
  }
  if (current != nullptr) LogChanges(source_->name(), Diff(*current, *map));
  PutInForce(*std::move(map));
  return absl::OkStatus();
}

void ShardMapWatcher::PutInForce(ShardMap map) {
  maps_.push_back(std::make_unique<const ShardMap>(std::move(map)));
  const ShardMap& next = *maps_.back();
  current_.store(&next, std::memory_order_release);
  {
    const MutexLock lock(mutex_);
    ++stats_.updates;
    stats_.from_cache = false;
  }
  if (!options_.cache.empty()) {
    if (auto status = ReplaceFile(options_.cache, next.ToStored()); !status.ok()) {
      spdlog::warn("the shard map cannot be cached: {}", std::string(status.message()));
    }
  }
  if (options_.on_update) options_.on_update(next);
}

void ShardMapWatcher::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    // A map that was refused is read again like any other, since only an edit can mend it.
    const auto poll = Jittered(source_->poll_interval());
    const auto wait =
        failed_reads_ == 0 ? poll : std::min(poll, FullJitter(kFirstRetry, kLastRetry, failed_reads_));
    const auto deadline = std::chrono::steady_clock::now() + wait;
    while (!stopping_ && !wanted_) {
      if (lock.WaitUntil(changed_, deadline)) break;
    }
    if (stopping_) return;
    wanted_ = false;
    lock.Unlock();
    Adopt(source_->Read()).IgnoreError();
    lock.Lock();
  }
}

WatcherStats ShardMapWatcher::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

}  // namespace kvstore
