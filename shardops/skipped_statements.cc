#include "shardops/skipped_statements.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

namespace kvstore::shardops {
namespace {

using mysql::Connection;
using mysql::Rows;

/// The source's name in the GTIDs of skipped statements, and the GTIDs that it has used.
struct Numbers {
  std::string name;  ///< "UUID:tag"
  GtidSet used;      ///< All transactions that it has.
};

Numbers ReadNumbers(Connection& source) {
  Rows rows = source.Ask("SELECT @@server_uuid, @@GLOBAL.gtid_executed");
  rows.Next();
  return {fmt::format("{}:{}", rows.Bytes(1), kSkippedTag), GtidSet(rows.Bytes(2))};
}

/// Gives the next transaction of a session a GTID. Without this, or at the end of its life, the server
/// chooses.
class NextGtid {
 public:
  NextGtid(Connection& connection, const std::string& name, uint64_t number) : connection_(connection) {
    connection_.Run(fmt::format("SET SESSION gtid_next = '{}:{}'", name, number));
  }
  ~NextGtid() {
    try {
      connection_.Run("SET SESSION gtid_next = 'AUTOMATIC'");
    } catch (const sql::SQLException&) {
      // The session has ended.
    }
  }
  NextGtid(const NextGtid&) = delete;
  NextGtid& operator=(const NextGtid&) = delete;

 private:
  Connection& connection_;
};

}  // namespace

absl::Status SkippedStatements::Load() {
  if (loaded_) return absl::OkStatus();
  absl::Status status = target_->WithConnection([&](Connection& connection) {
    Rows rows = connection.Ask("SELECT @@GLOBAL.gtid_executed");
    if (rows.Next()) skipped_ = GtidSet(rows.Bytes(1));
    return absl::OkStatus();
  });
  loaded_ = status.ok();
  target_failed_ = !status.ok();
  return status;
}

absl::Status SkippedStatements::Skip(const std::string& name, uint64_t number) {
  if (auto status = Load(); !status.ok()) return status;
  if (skipped_.LowestMissing(name, number) != number) return absl::OkStatus();
  absl::Status status = target_->WithConnection([&](Connection& connection) {
    const NextGtid next(connection, name, number);
    connection.Run("COMMIT");
    return absl::OkStatus();
  });
  if (status.ok()) skipped_.Add(GtidSet(fmt::format("{}:{}", name, number)));
  target_failed_ = !status.ok();
  return status;
}

absl::Status SkippedStatements::Reserve(size_t count) {
  if (source_.engine() == Engine::kMariaDb || target_ == nullptr) return absl::OkStatus();
  return source_.WithConnection([&](Connection& connection) -> absl::Status {
    const Numbers numbers = ReadNumbers(connection);
    uint64_t number = 0;
    for (size_t i = 0; i < count; ++i) {
      number = numbers.used.LowestMissing(numbers.name, number + 1);
      if (auto status = Skip(numbers.name, number); !status.ok()) return status;
    }
    return absl::OkStatus();
  });
}

absl::Status SkippedStatements::Run(Connection& source, const std::vector<std::string>& statements) {
  if (source_.engine() == Engine::kMariaDb) {
    source.Run("SET SESSION skip_replication = 1");
    for (const std::string& statement : statements) source.Run(statement);
    source.Run("SET SESSION skip_replication = 0");
    return absl::OkStatus();
  }
  for (const std::string& statement : statements) {
    if (target_ == nullptr) {
      source.Run(statement);
      continue;
    }
    // The numbers are read anew for each statement: with one that the source has used, the statement would
    // not be run at all, and a shard would be taken for one that nobody can use any more. Nobody else uses a
    // number in between, as the source is claimed and replicates from nobody.
    const Numbers numbers = ReadNumbers(source);
    const uint64_t number = numbers.used.LowestMissing(numbers.name);
    if (auto status = Skip(numbers.name, number); !status.ok()) return status;
    const NextGtid next(source, numbers.name, number);
    source.Run(statement);
  }
  return absl::OkStatus();
}

absl::Status SkippedStatements::RunOutsideCopies(Connection& source,
                                                 const std::vector<std::string>& statements) {
  if (source_.engine() == Engine::kMariaDb) return Run(source, statements);
  for (const std::string& statement : statements) source.Run(statement);
  return absl::OkStatus();
}

}  // namespace kvstore::shardops
