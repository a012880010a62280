#include "bench/sequences/sequences_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/harness/report.h"
#include "bench/sequences/sequence_load.h"

namespace kvstore::bench {
namespace {

constexpr std::array<const char*, 5> kPaths = {"newest_50", "fan_out_100", "append", "get_hash_10",
                                               "set_hash_10"};

bool IsOfHashes(std::string_view path) { return path == "get_hash_10" || path == "set_hash_10"; }

Operation MakeOperation(SequenceLoad& load, SequenceStore& store, std::string_view path) {
  if (path == "append") return [&](int thread) { return load.Append(store, thread); };
  if (path == "newest_50") return [&](int thread) { return load.ReadNewest(store, thread); };
  if (path == "get_hash_10") return [&](int thread) { return load.GetHash(store, thread); };
  if (path == "set_hash_10") return [&](int thread) { return load.SetHash(store, thread); };
  return [&](int thread) { return load.FanOut(store, thread); };
}

absl::StatusOr<std::unique_ptr<SequenceStore>> MakePeer(const std::string& name,
                                                        const MySqlFleetOptions* fleet,
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

absl::StatusOr<std::vector<SequencesPath>> BenchSequences(KVStore& store, const MySqlFleetOptions* fleet,
                                                          const SequencesOptions& options) {
  for (const std::string& path : options.paths) {
    if (std::find(kPaths.begin(), kPaths.end(), path) == kPaths.end()) {
      return absl::InvalidArgumentError(
          fmt::format("paths: '{}' is none of {}", path, fmt::join(kPaths, ", ")));
    }
  }
  std::vector<std::unique_ptr<SequenceStore>> stores;
  std::vector<std::string> names = {"kvstore"};
  auto ours = options.resp_port == 0
                  ? MakeKvSequences(store, options.durability)
                  : MakeRespSequences(store, options.resp_port, options.durability, options.load.threads);
  if (!ours.ok()) return ours.status();
  stores.push_back(*std::move(ours));
  for (const std::string& name : options.peers) {
    auto peer = MakePeer(name, fleet, options);
    if (!peer.ok()) return peer.status();
    stores.push_back(*std::move(peer));
    names.push_back(name);
  }
  const bool have_hashes = std::all_of(stores.begin(), stores.end(),
                                       [](const auto& one) { return one->HashClient(0) != nullptr; });
  for (const std::string& path : options.paths) {
    if (have_hashes || !IsOfHashes(path)) continue;
    return absl::InvalidArgumentError(fmt::format(
        "paths: '{}' needs stores that speak the Redis protocol: --door resp, --peers redis", path));
  }
  SequenceLoad load(options.users, options.load.threads);
  load.Load(stores, options.events);
  if (auto status = load.CheckAlike(stores); !status.ok()) return status;

  const auto is_wanted = [&](const char* path) {
    return Wanted(options.paths, path) && (have_hashes || !IsOfHashes(path));
  };
  if (std::any_of(kPaths.begin(), kPaths.end(),
                  [&](const char* path) { return IsOfHashes(path) && is_wanted(path); })) {
    for (const auto& one : stores) load.SetHashes(*one);
  }
  std::vector<SequencesPath> results;
  for (const char* const path : kPaths) {
    if (!is_wanted(path)) continue;
    std::vector<Operation> operations;
    for (const auto& one : stores) operations.push_back(MakeOperation(load, *one, path));
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
