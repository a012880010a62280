#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "shardmap/shard_range.h"

namespace kvstore::testing::fleet_size {

/// Many servers that pretend to be MariaDB: they speak the handshake, take any password, and answer the few
/// statements of `kv shards status` as pairs that are well. One thread serves all, each on an address of its
/// own of the loopback network.
class FakeHosts {
 public:
  /// count  How many; an even number below 60,000. Hosts 2n and 2n + 1 are a master and its slave.
  explicit FakeHosts(size_t count);
  ~FakeHosts();
  FakeHosts(const FakeHosts&) = delete;
  FakeHosts& operator=(const FakeHosts&) = delete;

  const Host& host(size_t number) const { return hosts_[number]; }
  /// Returns how many connections there have been.
  uint64_t connections() const { return connections_; }
  /// Returns a statement that was not known, and refused; empty if there was none.
  std::string unknown() const;

 private:
  struct Connection {
    int fd = -1;
    size_t host = 0;
    bool greeted = false;
    std::string in;
  };
  /// A result: the names of its columns, and their values for each row.
  struct Result {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;
  };

  void Run();
  void Accept(size_t host);
  /// Returns whether the connection goes on.
  bool OnReadable(Connection& connection);
  bool OnPacket(Connection& connection, std::string_view packet, uint8_t sequence);
  std::string Answer(const Connection& connection, const std::string& statement);
  Result Variables(size_t host, std::string_view list) const;
  std::string Value(size_t host, std::string_view expression) const;

  std::vector<Host> hosts_;
  std::vector<int> listeners_;
  std::map<int, std::unique_ptr<Connection>> open_;
  int epoll_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> connections_{0};
  std::atomic<const std::string*> unknown_{nullptr};
  std::thread thread_;
};

}  // namespace kvstore::testing::fleet_size
