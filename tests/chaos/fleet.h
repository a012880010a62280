#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
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

/// The processes of a run: ZooKeeper, two pairs of MariaDB servers, and three kvstore servers with one
/// catalog and three backends:
///
///            near                  far                   mysql
///   a        embedded              remote, of c          both pairs
///   b        remote, of a          remote, of c          both pairs
///   c        remote, of a          embedded              both pairs
///
/// The processes are started by the thread that made this, and are killed when it ends. Functions that start
/// a process again must therefore be called by that thread. The others are thread-safe.
class Fleet {
 public:
  static constexpr uint32_t kModShards = 8;
  static constexpr uint32_t kFirstIdShards = 4;
  static constexpr size_t kServers = 3;
  static constexpr size_t kPairs = 2;

  /// Starts all processes and creates the shards. Throws std::runtime_error if that fails.
  ///
  /// folder  Where the logs of the servers go.
  Fleet(Log& log, std::filesystem::path folder);

  /// Return the beginning of a command of `kv`: with the configuration of an operator, or for a server.
  std::vector<std::string> ByConfig(size_t operator_number) const;
  std::vector<std::string> ByServer(size_t server) const;
  static constexpr size_t kOperators = 4;

  /// Connects a client to a server.
  std::unique_ptr<KVStore> Connect(size_t server) const;

  // ---- servers ----

  static std::string NameOf(size_t server) { return std::string(1, static_cast<char>('a' + server)); }
  /// Whether the server's process runs. If it has ended by itself, and not at a fail point, that is a failure
  /// of the run.
  bool Runs(size_t server);
  /// kill -9.
  void KillServer(size_t server);
  /// Sends SIGTERM and waits until the server has ended; calls `meanwhile` again and again until then, unless
  /// it is null.
  void StopServer(size_t server, const std::function<void()>& meanwhile = nullptr);
  /// Starts a server again, and retries until it serves, since it may need something that is away. It is a
  /// failure of the run if it does not serve within two minutes.
  ///
  /// fail_point  The fail point at which the server kills itself if it reaches it; empty for none.
  void StartServer(size_t server, const std::string& fail_point = {});
  void Signal(size_t server, int signal) const;

  // ---- hosts ----

  ZooKeeperServer& zookeeper() { return zookeeper_server_; }
  ServerPair& pair(size_t i) { return *pairs_.at(i); }
  /// Loads the maps; nullopt while ZooKeeper is away.
  std::optional<shardops::Maps> Maps();
  /// Returns the incarnation of the dataset that has the name by the catalog; 0 if there is none, it is being
  /// created or dropped, or ZooKeeper is away.
  uint64_t IncarnationOf(const std::string& dataset);
  /// Returns the server that listens at a host's address.
  MariaDbServer& ServerOf(const Host& host);
  /// Returns the number of the pair that a host belongs to.
  size_t PairOf(const Host& host);

  /// Returns how many ID shards are open; they are 0 to that number less 1.
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
  mutable Mutex mutex_;
  uint32_t open_id_shards_ ABSL_GUARDED_BY(mutex_) = kFirstIdShards;
};

}  // namespace kvstore::testing::chaos
