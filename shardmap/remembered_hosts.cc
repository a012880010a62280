#include "shardmap/remembered_hosts.h"

#include <utility>

#include "shardmap/nodes.h"

namespace kvstore {

std::vector<Host> RememberedHosts(ZooKeeper& zookeeper, const std::string& root) {
  std::vector<Host> hosts;
  const auto names = zookeeper.Children(HostsPath(root));
  if (!names.ok()) return hosts;
  for (const std::string& name : *names) {
    if (auto host = Host::Parse(name); host.ok()) hosts.push_back(*std::move(host));
  }
  return hosts;
}

}  // namespace kvstore
