#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "coordination/zookeeper.h"
#include "kvstore_api/kvstore.h"
#include "shardops/maps.h"
#include "tests/chaos/command.h"
#include "tests/chaos/log.h"
#include "tests/shardops/pair.h"
#include "tests/support/kv_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing::chaos {

/// What a run is made of, each a process: ZooKeeper, two pairs of MariaDB servers, and three servers with one
/// catalog and three backends:
///
///            near                  far                   mysql
///   a        embedded              remote, of c          both pairs
///   b        remote, of a          remote, of c          both pairs
///   c        remote, of a          embedded              both pairs
///
/// Processes are started by the thread that made this, and end with it: what starts one again is of that
/// thread too. The rest is thread-safe.
class Fleet {
 public:
  static constexpr uint32_t kModShards = 8;
  static constexpr uint32_t kFirstIdShards = 4;
  static constexpr size_t kServers = 3;
  static constexpr size_t kPairs = 2;

  /// Starts all of it, with the schema made. Throws std::runtime_error.
  ///
  /// folder  for the logs of the servers.
  Fleet(Log& log, std::filesystem::path folder);

  /// Where commands run: with `--config` of an operator, or with `--server`.
  std::vector<std::string> ByConfig(size_t operator_number) const;
  std::vector<std::string> ByServer(size_t server) const;
  static constexpr size_t kOperators = 4;

  /// A store of the server for one client.
  std::unique_ptr<KVStore> Connect(size_t server) const;

  // ---- servers ----

  static std::string NameOf(size_t server) { return std::string(1, static_cast<char>('a' + server)); }
  /// Whether its process is there; one that has ended by itself, and was not told to, is a failure.
  bool Runs(size_t server);
  /// kill -9.
  void KillServer(size_t server);
  /// SIGTERM, and waits for its end.
  void StopServer(size_t server);
  /// Starts it again; tried until it serves, in case it needs something that is away. A failure if it does
  /// not within two minutes.
  ///
  /// fail_point  it dies there by itself, should it come by; empty: nowhere.
  void StartServer(size_t server, const std::string& fail_point = {});
  void Signal(size_t server, int signal) const;

  // ---- hosts ----

  ZooKeeperServer& zookeeper() { return zookeeper_server_; }
  ServerPair& pair(size_t i) { return *pairs_.at(i); }
  /// As the maps have them; none while ZooKeeper is away.
  std::optional<shardops::Maps> Maps();
  /// Of the dataset that has the name, by the catalog; 0 if none has, it is being made or dropped, or
  /// ZooKeeper is away.
  uint64_t IncarnationOf(const std::string& dataset);
  /// The server of a host.
  MariaDbServer& ServerOf(const Host& host);
  /// Which of the two pairs a host is of.
  size_t PairOf(const Host& host);

  /// How many ID shards are open: from 0 on.
  uint32_t open_id_shards() const;
  void SetOpenIdShards(uint32_t count);

 private:
  struct Server {
    std::unique_ptr<KvServer> process;
    std::string fail_point;
    bool down = false;
  };
  void WriteConfigs();
  void WriteConfig(const std::string& name, const std::string& near, const std::string& far, bool operates);
  std::string Script(size_t server, const std::string& fail_point) const;

  Log& log_;
  const TempDir dir_;
  const std::filesystem::path folder_;
  ZooKeeperServer zookeeper_server_;
  std::array<std::unique_ptr<ServerPair>, kPairs> pairs_;
  ZooKeeper zookeeper_;
  std::array<Server, kServers> servers_;
  mutable std::mutex mutex_;
  uint32_t open_id_shards_ = kFirstIdShards;  // guarded by mutex_
};

}  // namespace kvstore::testing::chaos
