#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/dataset.h"
#include "shardops/promote.h"

namespace kvstore::shardops {

/// A host of the maps, and what is wrong with it.
struct HostReport {
  Host host;
  bool master = false;  ///< By the map.
  Pair pair;
  std::string shards;   ///< "db 0-511, mod 0-7"
  absl::Status status;  ///< Why there is no state.
  std::optional<HostState> state;
  absl::Status copy;                  ///< Why it must not be a master (CheckCopyEnded), ...
  absl::Status slave_copy;            ///< ... and why the pair's slave must not.
  uint64_t bytes = 0;                 ///< HostAdmin::ReadSize; asked by Look only.
  std::vector<std::string> problems;  ///< In words, with what to do; none: all is well.
};

/// Asks one host of a pair.
HostReport LookAt(Fleet& fleet, const Pair& pair, bool master);

/// Asks all hosts, in parallel: those with problems first, then as the maps have them. Masters that wait for
/// their slaves are remembered (Remember). UNAVAILABLE only if the maps cannot be read.
absl::StatusOr<std::vector<HostReport>> Look(Fleet& fleet);

/// The same by the copies of the maps in a folder (MapCopy), while ZooKeeper is away: nothing is remembered,
/// and no promotion is proposed. NOT_FOUND if there is no copy.
absl::StatusOr<std::vector<HostReport>> LookByCopies(const Access& access,
                                                     const std::filesystem::path& folder);

/// Compares each host with the maps and the catalog: databases and tables that are missing, databases of
/// shards that are not the host's. What is found, in words; those of Look too.
///
/// datasets  those on these shards.
absl::StatusOr<std::vector<std::string>> Check(Fleet& fleet, std::span<const DatasetSpec> datasets);

}  // namespace kvstore::shardops
