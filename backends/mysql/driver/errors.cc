#include "backends/mysql/driver/errors.h"

#include <fmt/format.h>

#include "backend_api/outcome.h"
#include "backends/mysql/driver/tables.h"

namespace kvstore::mysql {
namespace {

// Error numbers of the servers (1000..) and of the client library (2000..2999), as the connector reports
// them.
enum Code : int {
  kTooManyConnections = 1040,
  kDatabaseAccessDenied = 1044,
  kAccessDenied = 1045,
  kUnknownDatabase = 1049,
  kServerShutdown = 1053,
  kDuplicateEntry = 1062,
  kTableFull = 1114,
  kTableAccessDenied = 1142,
  kNoSuchTable = 1146,
  kTooManyUserConnections = 1203,
  kLockWaitTimeout = 1205,
  kDeadlock = 1213,
  kUserLimitReached = 1226,  // MAX_USER_CONNECTIONS of the user, for example
  kUnknownStatement = 1243,
  kOptionPreventsStatement = 1290,
  kTruncatedValue = 1292,
  kQueryInterrupted = 1317,
  kIncorrectValue = 1366,
  kIncorrectValueFor = 1411,
  kTableDefinitionChanged = 1412,
  kTooManyStatements = 1461,
  kAutoIncrementFailed = 1467,
  kReadOnlyTransaction = 1792,
  kReadOnlyMode = 1836,
  kConnectionKilled = 1927,    // of MariaDB
  kOfflineMode = 3032,         // of MySQL, which accepts no clients then, and ends those that are there
  kSessionKilled = 3169,       // of MySQL
  kDisconnectedAsIdle = 4031,  // of MySQL, which says so before it ends a connection at wait_timeout
  kRecordChanged = 1020,
  kDiskFull = 1021,
  kErrorOnWrite = 1026,
  kErrorDuringCommit = 1180,
  kErrorDuringRollback = 1181,
  kLoggingImpossible = 1598,
  kClientFirst = 2000,
  kClientLast = 2999,
  kClientNoStatement = 2030,
};

/// Whether the server's text quotes the value that it refused. That is a caller's data, which must not get
/// into the log by way of an error.
bool QuotesData(int code) {
  return code == kDuplicateEntry || code == kTruncatedValue || code == kIncorrectValue ||
         code == kIncorrectValueFor;
}

}  // namespace

Trouble Classify(const sql::SQLException& error) {
  const int code = error.getErrorCode();
  switch (code) {
    case kDeadlock:
    case kLockWaitTimeout:
    case kRecordChanged:
      return Trouble::kConflict;
    case kUnknownStatement:
    case kTooManyStatements:
      return Trouble::kStatementGone;
    case kServerShutdown:
    case kConnectionKilled:
    case kSessionKilled:
    case kDisconnectedAsIdle:
    case kQueryInterrupted:
      return Trouble::kConnection;
    default:
      return code >= kClientFirst && code <= kClientLast ? Trouble::kConnection : Trouble::kRefused;
  }
}

bool IsMissingTable(const sql::SQLException& error) {
  return error.getErrorCode() == kNoSuchTable || error.getErrorCode() == kUnknownDatabase;
}

bool IsTableChanged(const sql::SQLException& error) {
  return error.getErrorCode() == kTableDefinitionChanged;
}

bool IsDuplicate(const sql::SQLException& error) { return error.getErrorCode() == kDuplicateEntry; }

bool IsOffline(const sql::SQLException& error) { return error.getErrorCode() == kOfflineMode; }

bool IsReadOnly(const sql::SQLException& error) {
  switch (error.getErrorCode()) {
    case kOptionPreventsStatement:
    case kReadOnlyTransaction:
    case kReadOnlyMode:
      return true;
    default:
      return false;
  }
}

bool IsCommitFailure(const sql::SQLException& error) {
  switch (error.getErrorCode()) {
    case kErrorOnWrite:
    case kErrorDuringCommit:
    case kErrorDuringRollback:
    case kLoggingImpossible:
      return true;
    default:
      return false;
  }
}

absl::Status ToStatus(const sql::SQLException& error) {
  const int code = error.getErrorCode();
  const std::string text = QuotesData(code) ? fmt::format("the server refused a value (error {})", code)
                                            : fmt::format("{} (error {})", error.what(), code);
  // Nothing was written, and the shard map may soon name another host: the router retries.
  if (IsReadOnly(error))
    return WritesHeldError(text + "; the host does not take writes, it may have been demoted");
  if (IsOffline(error))
    return WritesHeldError(text + "; the host takes no calls, it is being demoted or maintained");
  if (code == kSignalled && text.find(kFrozenMessage) != std::string::npos) return WritesHeldError(text);
  switch (code) {
    case kTooManyConnections:
    case kTooManyUserConnections:
    case kUserLimitReached:
    case kTooManyStatements:
    case kTableFull:
    case kDiskFull:
    case kAutoIncrementFailed:
      return absl::ResourceExhaustedError(text);
    case kUnknownDatabase:
    case kNoSuchTable:
    case kDatabaseAccessDenied:
    case kAccessDenied:
    case kTableAccessDenied:
      return absl::FailedPreconditionError(text);
    default:
      if (Classify(error) == Trouble::kRefused) return absl::InternalError(text);
      return absl::UnavailableError(text);
  }
}

}  // namespace kvstore::mysql
