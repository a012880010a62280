#include "bench/sequences_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <utility>

#include "bench/report.h"

namespace kvstore::bench {
namespace {

constexpr std::array<std::string_view, 4> kKinds = {"click", "view", "save", "search"};
constexpr std::array<const char*, 3> kPaths = {"newest_50", "fan_out_100", "append"};
constexpr size_t kValueBytes = 64;
constexpr uint32_t kNewest = 50;
constexpr size_t kFanOut = 100;
constexpr uint32_t kNewestOfMany = 10;
constexpr size_t kLoadBatch = 1000;
constexpr uint64_t kFirstMs = 1'700'000'000'000;

using Random = std::mt19937_64;

std::string MakeValue(Random& random) {
  std::string value;
  while (value.size() < kValueBytes) value += fmt::format("{:016x}", random());
  return value;
}

/// Users, and time that goes on.
class World {
 public:
  World(uint64_t users, int threads) {
    for (uint64_t i = 0; i < users; ++i) users_.push_back(fmt::format("user:{:08}", i));
    for (int t = 0; t < threads; ++t) random_.emplace_back(t + 1);
  }

  Random& RandomOf(int thread) { return random_[static_cast<size_t>(thread)]; }
  std::string_view User(Random& random) const { return users_[random() % users_.size()]; }
  static std::string_view Kind(Random& random) { return kKinds.at(random() % kKinds.size()); }
  uint64_t Now() { return kFirstMs + now_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::vector<std::string> users_;
  std::vector<Random> random_;  // of each thread
  std::atomic<uint64_t> now_{0};
};

/// The same events for all.
void Load(World& world, std::span<const std::unique_ptr<SequenceStore>> stores, uint64_t events) {
  Random& random = world.RandomOf(0);
  std::vector<std::string> values;
  std::vector<Event> batch;
  for (uint64_t loaded = 0; loaded < events; loaded += batch.size()) {
    values.clear();
    batch.clear();
    values.reserve(kLoadBatch);
    while (batch.size() < std::min<uint64_t>(kLoadBatch, events - loaded)) {
      values.push_back(MakeValue(random));
      batch.push_back({world.User(random), World::Kind(random), world.Now(), values.back()});
    }
    for (const auto& store : stores) store->Load(batch);
  }
}

Operation MakeOperation(World& world, SequenceStore& store, std::string_view path) {
  if (path == "append") {
    return [&](int thread) {
      Random& random = world.RandomOf(thread);
      const std::string value = MakeValue(random);
      store.Append(thread, {world.User(random), World::Kind(random), world.Now(), value});
      return "append";
    };
  }
  if (path == "newest_50") {
    return [&](int thread) {
      Random& random = world.RandomOf(thread);
      const std::string_view user = world.User(random);
      store.ReadNewest(thread, user, World::Kind(random), kNewest);
      return "newest_50";
    };
  }
  return [&](int thread) {
    Random& random = world.RandomOf(thread);
    std::array<std::string_view, kFanOut> users;
    for (std::string_view& user : users) user = world.User(random);
    store.ReadNewestOf(thread, users, World::Kind(random), kNewestOfMany);
    return "fan_out_100";
  };
}

/// All stores were told the same, and say the same.
absl::Status CheckAlike(World& world, std::span<const std::unique_ptr<SequenceStore>> stores) {
  Random& random = world.RandomOf(0);
  for (int i = 0; i < 100; ++i) {
    const std::string_view user = world.User(random);
    const std::string_view kind = World::Kind(random);
    const size_t first = stores.front()->ReadNewest(0, user, kind, kNewest);
    for (const auto& store : stores) {
      const size_t there = store->ReadNewest(0, user, kind, kNewest);
      const size_t of_many = store->ReadNewestOf(0, {&user, 1}, kind, kNewest);
      if (there == first && of_many == first) continue;
      return absl::DataLossError(fmt::format("{} of {}: one has {} events, another {}", kind, user, first,
                                             there == first ? of_many : there));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SequenceStore>> MakePeer(const std::string& name, const MySqlFleet* fleet,
                                                        const SequencesOptions& options) {
  if (name == "rocksdb") return MakeRocksSequences(options.durability);
  if (name == "redis") return MakeRedisSequences(options.durability, options.load.threads);
  if (name != "mariadb") {
    return absl::InvalidArgumentError(fmt::format("peers: '{}' is none of rocksdb, redis and mariadb", name));
  }
  if (fleet == nullptr) {
    return absl::InvalidArgumentError(
        "peers: mariadb: --config names no MySQL servers; ./dev up starts some");
  }
  return MakeMariaDbSequences(*fleet, options.load.threads);
}

}  // namespace

absl::StatusOr<std::vector<SequencesPath>> BenchSequences(KVStore& store, const MySqlFleet* fleet,
                                                          const SequencesOptions& options) {
  for (const std::string& path : options.paths) {
    if (std::find(kPaths.begin(), kPaths.end(), path) == kPaths.end()) {
      return absl::InvalidArgumentError(
          fmt::format("paths: '{}' is none of newest_50, fan_out_100 and append", path));
    }
  }
  std::vector<std::unique_ptr<SequenceStore>> stores;
  std::vector<std::string> names = {"kvstore"};
  auto ours = MakeKvSequences(store, options.durability);
  if (!ours.ok()) return ours.status();
  stores.push_back(*std::move(ours));
  for (const std::string& name : options.peers) {
    auto peer = MakePeer(name, fleet, options);
    if (!peer.ok()) return peer.status();
    stores.push_back(*std::move(peer));
    names.push_back(name);
  }
  World world(options.users, options.load.threads);
  Load(world, stores, options.events);
  if (auto status = CheckAlike(world, stores); !status.ok()) return status;

  std::vector<SequencesPath> results;
  for (const char* const path : kPaths) {
    if (!Wanted(options.paths, path)) continue;
    std::vector<Operation> operations;
    for (const auto& one : stores) operations.push_back(MakeOperation(world, *one, path));
    auto rounds = RunByTurns(options.load, operations);
    SequencesPath result{.path = path};
    for (size_t i = 0; i < stores.size(); ++i) {
      result.sides.push_back({.name = names[i],
                              .promise = stores[i]->promise(),
                              .rounds = rounds[i],
                              .ratio = Ratio(rounds[0], rounds[i])});
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace kvstore::bench
