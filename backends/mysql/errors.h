#pragma once

#include <cppconn/exception.h>

#include "absl/status/status.h"

/// What went wrong with a statement, told once for all: the connector's exceptions end here.
namespace kvstore::mysql {

enum class Trouble : uint8_t {
  kConnection,     ///< The connection is of no more use, and the fate of its last statement unknown.
  kConflict,       ///< Another transaction was in the way; this one was rolled back and may be repeated.
  kStatementGone,  ///< The server has dropped a prepared statement, or has too many: prepare it again.
  kRefused,        ///< The server says no; nothing was changed.
};

Trouble Classify(const sql::SQLException& error);

/// Whether the statement's table is not there, or not even its database.
bool IsMissingTable(const sql::SQLException& error);

/// Whether the host takes no writes.
bool IsReadOnly(const sql::SQLException& error);

/// Whether the server tells so that a commit failed midway: the change may be there all the same, or come
/// back when the server starts again.
bool IsOfCommit(const sql::SQLException& error);

/// Whether a unique key has the value already.
bool IsDuplicate(const sql::SQLException& error);

/// A refusal, or a connection that could not be made, in our codes.
absl::Status ToStatus(const sql::SQLException& error);

}  // namespace kvstore::mysql
