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
#include "backends/mysql/options.h"
#include "backends/mysql/statements.h"
#include "base/clock.h"
#include "shardmap/shard_map.h"

/// One connection to a server. Its calls throw sql::SQLException, which Fleet::Run catches: the code in
/// between reads as the statements that it runs.
namespace kvstore::mysql {

/// What a server is like, read once a connection.
struct ServerTraits {
  bool returning = false;     ///< Knows INSERT ... RETURNING.
  bool flushes_each = false;  ///< A commit is on stable storage before it is answered.
};

/// The rows of a result, one after another. Columns count from 1, as in the connector. At most one result
/// of a statement at a time: the next execution changes what an older one reads.
class Rows {
 public:
  explicit Rows(sql::ResultSet* result) : result_(result) {}
  bool Next() { return result_->next(); }
  uint64_t Uint(uint32_t column) const { return result_->getUInt64(column); }
  std::string Bytes(uint32_t column) const { return result_->getString(column).asStdString(); }
  std::string Named(const std::string& column) const { return result_->getString(column).asStdString(); }
  bool IsNull(uint32_t column) const { return result_->isNull(column); }

 private:
  std::unique_ptr<sql::ResultSet> result_;
};

class Connection;

/// One execution of a prepared statement: bind each parameter in order, then run it once.
class Call {
 public:
  Call& Bind(uint64_t value);
  Call& Bind(std::string_view bytes);
  /// Runs a statement without a result; how many rows it changed.
  uint64_t Execute();
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

/// Externally synchronised; any thread may use it, one at a time.
class Connection {
 public:
  /// Connects, checks that the server will do, and sets what a session of ours relies on: UTC, strict mode,
  /// utf8mb4, repeatable reads, a bounded wait for locks. UNAVAILABLE or FAILED_PRECONDITION says why not.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const Host& host, const MySqlOptions& options);

  /// A statement, prepared on this connection if it is not yet.
  Call Prepare(Sql sql, const Table& table, size_t count = 1);
  /// Runs text that holds no data of callers: transactions, schema.
  void Run(const std::string& text);
  /// The same, with a result.
  Rows Ask(const std::string& text);

  /// That of the statement that was prepared last; none before the first since ForgetTable.
  const std::optional<Table>& last_table() const { return last_table_; }
  void ForgetTable() { last_table_.reset(); }
  const ServerTraits& traits() const { return traits_; }
  /// Since when which server runs: another text after a restart, and of another host. Asked for once.
  const std::string& Boot();
  /// Whether the server still answers on it: a round trip, which sets ServerMs right too.
  bool Alive();
  /// The server's wall clock, in ms: what it said when it was asked last, and what has passed here since.
  /// Late by no more than a round trip and some milliseconds, unless its clock was set since. No round trip.
  uint64_t ServerMs() const { return server_ms_ + Milliseconds(Clock::now() - server_ms_at_); }
  /// Whether a failure now leaves open if something was changed: a change is being committed.
  bool committing() const { return committing_; }
  bool in_transaction() const { return in_transaction_; }
  /// Forgets the prepared statements; the server may have dropped them.
  void ForgetStatements();

  using Clock = CoarseClock;
  Clock::time_point opened_at() const { return opened_at_; }
  Clock::time_point used_at = Clock::now();

 private:
  friend class Call;
  friend class Transaction;

  struct Key {
    uint64_t table;  // family and shard
    uint64_t sql;    // kind and count
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return key.table * 0x9E3779B97F4A7C15 ^ key.sql * 0xC2B2AE3D27D4EB4F;
    }
  };
  struct Kept {
    Key key;
    std::unique_ptr<sql::PreparedStatement> statement;
  };

  Connection(std::unique_ptr<sql::Connection> connection, size_t max_statements);
  absl::Status SetUp(const MySqlOptions& options);
  /// The server has just said that.
  void SetServerMs(uint64_t now);

  const std::unique_ptr<sql::Connection> connection_;
  const std::unique_ptr<sql::Statement> plain_;
  const size_t max_statements_;
  const Clock::time_point opened_at_ = Clock::now();
  ServerTraits traits_;
  uint64_t server_ms_ = 0;
  Clock::time_point server_ms_at_;
  std::string boot_;
  std::optional<Table> last_table_;
  bool in_transaction_ = false;
  bool committing_ = false;
  std::list<Kept> kept_;  // the one used last comes first
  std::unordered_map<Key, std::list<Kept>::iterator, KeyHash> by_key_;
};

/// A transaction: rolled back at its end unless it was committed.
class Transaction {
 public:
  enum class Kind : uint8_t { kWrite, kSnapshot };
  /// kSnapshot: all statements read one state of the shard.
  Transaction(Connection& connection, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void Commit();

 private:
  Connection& connection_;
};

}  // namespace kvstore::mysql
