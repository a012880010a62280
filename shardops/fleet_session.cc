#include "shardops/fleet_session.h"

#include <utility>

namespace kvstore::shardops {

FleetSession::FleetSession(const FleetOptions& options, const std::string& who,
                           std::function<void(const std::string&)> report)
    : zookeeper_(options.zookeeper, nullptr),
      fleet_{.zookeeper = zookeeper_, .root = options.root, .who = who} {
  if (options.access.ok()) fleet_.access = *options.access;
  if (report) fleet_.report = std::move(report);
}

}  // namespace kvstore::shardops
