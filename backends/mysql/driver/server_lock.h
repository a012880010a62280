#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/mysql/driver/connection.h"
#include "kvstore_api/dataset.h"

/// Named locks of a server (GET_LOCK). A lock belongs to a connection and is released when that ends.
/// Functions that take a Connection throw sql::SQLException.
namespace kvstore::mysql {

/// Says what happens to another connection that still has a lock after a wait of one second.
enum class Holder : uint8_t {
  kEnds,  ///< The server kills it: its owner was taken for dead, or stopped, and must not go on.
  kStays  ///< It keeps the lock, which is not acquired.
};

/// Holds some locks for as long as it lives.
class ServerLock {
 public:
  ServerLock(Connection& connection, std::vector<std::string> names, Holder holder);
  ~ServerLock();
  ServerLock(const ServerLock&) = delete;
  ServerLock& operator=(const ServerLock&) = delete;
  /// Whether all locks were acquired.
  bool held() const { return held_; }

 private:
  bool Acquire(const std::string& name, Holder holder);

  Connection& connection_;
  const std::vector<std::string> names_;
  size_t acquired_ = 0;  // so many locks, the first of names_, were acquired
  bool held_ = false;
};

/// Returns the name of the lock under which tables of a dataset are made, renamed and removed on a shard.
std::string TablesLock(const DatasetSpec& spec, uint32_t shard);
/// Returns the name of the lock under which tables are made in a shard's database, and under which a move
/// takes them away to another host.
std::string ShardLock(const std::string& database);

/// Keeps other migration workers from changing the tables of a dataset on a shard, for as long as it lives. A
/// worker that still has the lock after a second loses its connection to the server.
class MigrationLock : public ServerLock {
 public:
  MigrationLock(Connection& connection, const DatasetSpec& spec, uint32_t shard)
      : ServerLock(connection, {TablesLock(spec, shard)}, Holder::kEnds) {}
};

}  // namespace kvstore::mysql
