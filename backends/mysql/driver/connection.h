#pragma once

#include <cppconn/connection.h>
#include <cppconn/prepared_statement.h>
#include <cppconn/resultset.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "backends/mysql/driver/statements.h"
#include "base/clock.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_map.h"

/// One connection to a server. Its calls throw the connector's sql::SQLException, which Fleet::Run catches in
/// one place, so that the code in between needs no error handling and reads as the statements that it runs.
namespace kvstore::mysql {

/// The abilities of a server; read once, when a connection is opened.
struct ServerTraits {
  bool returning = false;     ///< The server knows INSERT ... RETURNING.
  bool flushes_each = false;  ///< A commit is on stable storage before it is acknowledged.
};

class Connection;

/// The rows of a result, one after another. Columns are numbered from 1, as in the connector. A statement may
/// have one result at a time: its next execution changes what an older result reads.
class Rows {
 public:
  /// streams  The connection, if the rows come while they are read (Connection::Stream).
  explicit Rows(sql::ResultSet* result, Connection* streams = nullptr) : result_(result), streams_(streams) {}
  /// Goes on to the next row; false if there is none. Throws if the statement failed after some of its rows.
  bool Next();
  uint64_t Uint(uint32_t column) const { return result_->getUInt64(column); }
  std::string Bytes(uint32_t column) const { return result_->getString(column).asStdString(); }
  std::string Named(const std::string& column) const { return result_->getString(column).asStdString(); }
  bool IsNull(uint32_t column) const { return result_->isNull(column); }

 private:
  std::unique_ptr<sql::ResultSet> result_;
  Connection* streams_;  // null once the result has ended
};

/// One execution of a prepared statement: bind each parameter in order, then call Execute or Query once.
class Call {
 public:
  Call& Bind(uint64_t value);
  Call& Bind(std::string_view bytes);
  /// Runs a statement that has no result, and returns how many rows it changed.
  uint64_t Execute();
  /// Runs a statement that has a result.
  Rows Query();

 private:
  friend class Connection;
  Call(Connection& connection, sql::PreparedStatement& statement, bool writes)
      : connection_(connection), statement_(statement), writes_(writes) {}

  Connection& connection_;
  sql::PreparedStatement& statement_;
  const bool writes_;
  uint32_t bound_ = 0;
};

/// A session with a server. Externally synchronised: any thread may use it, one at a time.
class Connection {
 public:
  /// Connects, checks that the server's version and settings suffice, and sets what this backend relies on
  /// in a session: UTC, strict mode, utf8mb4, repeatable reads, a bounded wait for locks.
  ///
  /// UNAVAILABLE          the host does not answer; or it is offline, or it is read-only and
  ///                      options.any_role is not set: these two are WritesHeldErrors
  ///                      (backend_api/outcome.h).
  /// FAILED_PRECONDITION  the server's version or a setting of it does not suffice.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const Host& host, const MySqlOptions& options);

  /// Returns an execution of a statement, which is prepared on this connection unless it was before.
  ///
  /// count  how many of what the statement repeats: see statements.h.
  Call Prepare(Sql sql, const Table& table, size_t count = 1);
  /// Runs a statement that is given as text and has no result. The text must hold no data of callers: it is
  /// for transactions, sessions and schema.
  void Run(const std::string& text);
  /// Does the same for a statement that has a result.
  Rows Ask(const std::string& text);
  /// Does the same, but for results of any size: the server sends the rows while they are read, and this
  /// process keeps one at a time. Until all rows are read, or the result is destroyed, the connection can be
  /// used for nothing else.
  Rows Stream(const std::string& text);

  /// The table of the statement that was prepared last; nullopt if none was since ForgetTable.
  const std::optional<Table>& last_table() const { return last_table_; }
  /// On how many shards that statement has its table: on the one of last_table, and on the next ones.
  uint32_t last_shards() const { return last_shards_; }
  void ForgetTable() { last_table_.reset(); }
  const ServerTraits& traits() const { return traits_; }
  /// Returns a text that names the server and the time of its start: it differs after a restart, and on
  /// another host. The server is asked once a connection. Empty if the server does not say.
  const std::string& BootId();
  /// Whether the server still answers on this connection. Costs a round trip, which also corrects ServerMs.
  bool Alive();
  /// The server's wall clock, in ms: what the server said when it was asked last, plus the time that has
  /// passed here since. It lags by a round trip and some milliseconds at most, unless the server's clock was
  /// set meanwhile. Costs no round trip.
  uint64_t ServerMs() const { return server_ms_ + Milliseconds(Clock::now() - server_ms_at_); }
  /// Whether a change is being committed, so that a failure now leaves its outcome unknown.
  bool committing() const { return committing_; }
  bool in_transaction() const { return in_transaction_; }
  /// Drops all prepared statements, so that they are prepared again: the server may have dropped them.
  void ForgetStatements();

  using Clock = CoarseClock;
  Clock::time_point opened_at() const { return opened_at_; }
  Clock::time_point used_at = Clock::now();

 private:
  friend class Call;
  friend class Rows;
  friend class Transaction;

  struct Key {
    uint64_t table;  // number of the family, and shard
    uint64_t sql;    // kind of statement, and count
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return key.table * 0x9E3779B97F4A7C15 ^ key.sql * 0xC2B2AE3D27D4EB4F;
    }
  };
  struct Prepared {
    Key key;
    std::unique_ptr<sql::PreparedStatement> statement;
  };

  Connection(std::unique_ptr<sql::Connection> connection, size_t max_statements);
  absl::Status SetUp(const MySqlOptions& options);
  /// Throws if the statement before has failed after some of its rows were sent.
  void CheckEnded();
  /// Takes `now`, which the server has just said, for its time.
  void SetServerMs(uint64_t now);

  const std::unique_ptr<sql::Connection> connection_;
  const std::unique_ptr<sql::Statement> plain_;
  std::unique_ptr<sql::Statement> streaming_;  // made by the first call of Stream
  const size_t max_statements_;
  const Clock::time_point opened_at_ = Clock::now();
  ServerTraits traits_;
  uint64_t server_ms_ = 0;
  Clock::time_point server_ms_at_;
  std::string boot_id_;
  std::optional<Table> last_table_;
  uint32_t last_shards_ = 1;
  bool in_transaction_ = false;
  bool committing_ = false;
  std::list<Prepared> prepared_;  // the most recently used first
  std::unordered_map<Key, std::list<Prepared>::iterator, KeyHash> by_key_;
};

/// A transaction, which its destructor rolls back unless it was committed.
class Transaction {
 public:
  enum class Kind : uint8_t {
    kWrite,
    kSnapshot  ///< Read only: all statements read the shard as it was at one moment.
  };
  Transaction(Connection& connection, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void Commit();

 private:
  Connection& connection_;
  const Kind kind_;
};

}  // namespace kvstore::mysql
