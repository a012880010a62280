#include "shardmap/nodes.h"

#include <utility>

namespace kvstore {
namespace {

std::string HostsPath(const std::string& root) { return root + "/hosts"; }

}  // namespace

std::string MapPath(const std::string& root, bool mod) { return root + (mod ? "/shards/mod" : "/shards/id"); }

std::filesystem::path MapCopy(const std::filesystem::path& folder, bool mod) {
  return folder / (mod ? "shards-mod.json" : "shards-id.json");
}

std::string HostPath(const std::string& root, const Host& host) {
  return HostsPath(root) + "/" + host.ToString();
}

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
