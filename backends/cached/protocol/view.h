#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::cached {

/// Which cache servers all processes use, as ZooKeeper has it for one backend.
struct View {
  uint64_t id = 0;                     ///< Chosen at random when the view was made: no other one has it.
  uint64_t list = 0;                   ///< Counts the lists of servers that there were.
  std::vector<std::string> memcached;  ///< "host:port"
  std::vector<std::string> redis;      ///< "host:port"
  // CacheOptions::lease_ms and quarantine_s, which must be the same for all processes.
  uint64_t lease_ms = 10'000;
  uint64_t quarantine_s = 60;
  /// Those that nobody reads, because a writer could not reach them, by name ("memcached host:port"), and
  /// when that was (ms since 1970).
  std::map<std::string, uint64_t> suspended;
  /// Not 0: nobody reads any cache, because a change of the list is under way, which has this number.
  uint64_t changing = 0;
  /// Meanwhile: the servers of the list before, which writers that know no later one still mark; by name.
  std::vector<std::string> before;

  friend bool operator==(const View&, const View&) = default;
};

/// The key of the guards that belong to a view: several backends may use the same servers.
std::string GuardKey(const View& view);

std::string ToText(const View& view);
/// INVALID_ARGUMENT names the field that is wrong.
absl::StatusOr<View> ParseView(std::string_view text);

}  // namespace kvstore::cached
