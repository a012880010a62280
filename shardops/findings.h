#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kvstore_api/shard_space.h"
#include "shardmap/shard_map.h"

namespace kvstore::shardops {

/// The problems that were found, and the hosts that were not asked.
struct FleetCheck {
  /// A sentence for each problem of a host, each database and each table; empty if all is well.
  std::vector<std::string> problems;
  /// The same for people: one sentence for all shards of a host of which the same is to be said.
  std::vector<std::string> lines;
  /// Hosts that did not answer, so that nothing was compared with them.
  std::vector<Host> not_asked;
};

/// Collects what is found about the shards of hosts, and joins into one line all shards of a host of which
/// the same is said.
class Findings {
 public:
  /// Adds a sentence that stands for itself.
  void Add(std::string text);
  /// Adds a sentence about one shard of a host.
  ///
  /// one   Is said if it is found of that shard only: "database db00003 is missing: kv shards init makes it".
  /// many  Is said of several shards: "their databases are missing: kv shards init makes them".
  void Add(const Host& host, ShardSpace space, uint32_t shard, const std::string& one,
           const std::string& many);

  /// Returns all, in the order in which each was found first. The hosts that were not asked are the caller's
  /// to add.
  FleetCheck Take();

 private:
  /// The finding about some shards of a host.
  struct Group {
    Host host;
    ShardSpace space = ShardSpace::kId;
    std::string one;               ///< About the first of them.
    std::string many;              ///< Empty: `one` is the whole sentence.
    std::vector<uint32_t> shards;  ///< Ascending.
  };

  std::vector<std::string> problems_;
  std::vector<Group> groups_;
  // Where in groups_, by host, space and `many`.
  std::map<std::tuple<Host, ShardSpace, std::string>, size_t> found_;
};

}  // namespace kvstore::shardops
