#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/mysql/connection.h"
#include "kvstore_api/dataset.h"

/// Locks of a server that have names, and belong to a connection: with it they go. What takes a Connection
/// throws sql::SQLException.
namespace kvstore::mysql {

/// What becomes of a connection that has a lock for longer than a second.
enum class Holder : uint8_t {
  kEnds,  ///< It is ended: who had it was taken for dead, or stopped, and must not go on.
  kStays  ///< It keeps it, and the lock is not got.
};

/// Some locks, for as long as it lives.
class ServerLock {
 public:
  ServerLock(Connection& connection, std::vector<std::string> names, Holder holder);
  ~ServerLock();
  ServerLock(const ServerLock&) = delete;
  ServerLock& operator=(const ServerLock&) = delete;
  /// Whether all were got.
  bool held() const { return held_; }

 private:
  bool Get(const std::string& name, Holder holder);

  Connection& connection_;
  const std::vector<std::string> names_;
  size_t got_ = 0;  // of names_, the first
  bool held_ = false;
};

/// Of who makes, renames or removes tables of a dataset on a shard.
std::string TablesLock(const DatasetSpec& spec, uint32_t shard);
/// Of who makes tables in a shard's database, and of who takes them away to another host.
std::string ShardLock(const std::string& database);

/// Keeps other workers from changing the tables of a dataset on a shard, for as long as it lives. One that
/// had it before loses its connection to the server.
class MoveLock : public ServerLock {
 public:
  MoveLock(Connection& connection, const DatasetSpec& spec, uint32_t shard)
      : ServerLock(connection, {TablesLock(spec, shard)}, Holder::kEnds) {}
};

}  // namespace kvstore::mysql
