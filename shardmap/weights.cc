#include "shardmap/weights.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/jitter.h"
#include "shardmap/shard_map.h"

namespace kvstore {
namespace {

using Json = nlohmann::json;

absl::StatusOr<ShardWeight> ParseOne(const Json& entry, size_t index) {
  const auto invalid = [&](const std::string& why) {
    return absl::InvalidArgumentError(fmt::format("weights: entry {}: {}", index, why));
  };
  if (!entry.is_object() || entry.size() != 2 || !entry.contains("range") || !entry.contains("weight")) {
    return invalid("must be an object of range and weight");
  }
  const Json& range = entry["range"];
  if (!range.is_array() || range.size() != 2 || !range[0].is_number_unsigned() ||
      !range[1].is_number_unsigned()) {
    return invalid("range: must be [FIRST, LAST]");
  }
  const auto first = range[0].get<uint64_t>();
  const auto last = range[1].get<uint64_t>();
  if (first > last || last > ShardMap::kMaxShard) {
    return invalid(fmt::format("range: {}-{} is not within 0-{}", first, last, ShardMap::kMaxShard));
  }
  const Json& weight = entry["weight"];
  if (!weight.is_number_unsigned() || weight.get<uint64_t>() > ShardWeight::kMax) {
    return invalid(fmt::format("weight: must be a number within 0-{}", ShardWeight::kMax));
  }
  return ShardWeight{static_cast<uint32_t>(first), static_cast<uint32_t>(last), weight.get<uint32_t>()};
}

}  // namespace

absl::StatusOr<ShardWeights> ParseWeights(std::string_view json) {
  const Json list = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return absl::InvalidArgumentError("weights: must be a JSON array");
  ShardWeights weights;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto weight = ParseOne(list[i], i);
    if (!weight.ok()) return weight.status();
    weights.push_back(*weight);
  }
  return weights;
}

std::string ToJson(const ShardWeights& weights) {
  Json list = Json::array();
  for (const ShardWeight& one : weights) {
    list.push_back({{"range", {one.first, one.last}}, {"weight", one.weight}});
  }
  return list.dump();
}

ShardWeights WithWeight(const ShardWeights& weights, const ShardWeight& change) {
  ShardWeights next;
  // 1 is the weight of shards without an entry.
  if (change.weight != 1) next.push_back(change);
  for (const ShardWeight& one : weights) {
    if (one.first < change.first)
      next.push_back({one.first, std::min(one.last, change.first - 1), one.weight});
    if (one.last > change.last) next.push_back({std::max(one.first, change.last + 1), one.last, one.weight});
  }
  std::sort(next.begin(), next.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return next;
}

WeightsWatcher::WeightsWatcher(std::unique_ptr<MapSource> source, ShardWeights initial,
                               std::function<void(const ShardWeights&)> on_update)
    : source_(std::move(source)),
      on_update_(std::move(on_update)),
      weights_(std::make_shared<const ShardWeights>(std::move(initial))) {
  if (source_ == nullptr) return;
  source_->OnChange([this] {
    {
      const MutexLock lock(mutex_);
      wanted_ = true;
    }
    changed_.notify_all();
  });
  Reload();
  thread_ = std::thread([this] { Run(); });
}

WeightsWatcher::~WeightsWatcher() {
  if (source_ == nullptr) return;
  source_->OnChange(nullptr);
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<const ShardWeights> WeightsWatcher::weights() const {
  const MutexLock lock(mutex_);
  return weights_;
}

void WeightsWatcher::Reload() {
  const auto text = source_->Read();
  if (text.ok() && !*text) return;  // it has not changed
  auto parsed = text.ok() ? ParseWeights(**text) : absl::StatusOr<ShardWeights>(text.status());
  MutexLock lock(mutex_);
  if (!parsed.ok()) {
    if (text.ok() && refused_ != **text) {
      refused_ = **text;
      spdlog::error("{}: refused, those before stay in force: {}", source_->name(),
                    std::string(parsed.status().message()));
    }
    return;
  }
  refused_.clear();
  if (*parsed == *weights_) return;
  weights_ = std::make_shared<const ShardWeights>(*std::move(parsed));
  spdlog::info("{}: new weights: {}", source_->name(), ToJson(*weights_));
  const std::shared_ptr<const ShardWeights> now = weights_;
  lock.Unlock();
  if (on_update_) on_update_(*now);
}

void WeightsWatcher::Run() {
  for (;;) {
    Reload();
    MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + Jittered(source_->poll_interval());
    while (!stopping_ && !wanted_) {
      if (lock.WaitUntil(changed_, deadline)) break;
    }
    wanted_ = false;
    if (stopping_) return;
  }
}

}  // namespace kvstore
