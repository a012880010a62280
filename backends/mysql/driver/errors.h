#pragma once

#include <cppconn/exception.h>

#include "absl/status/status.h"

/// Turns the connector's exceptions into what the rest of the backend needs to know of them.
namespace kvstore::mysql {

enum class Trouble : uint8_t {
  kConnection,     ///< The connection is unusable, and the outcome of its last statement unknown.
  kConflict,       ///< The transaction lost to another one and was rolled back; it may be retried.
  kStatementGone,  ///< The server has dropped a prepared statement, or has too many: prepare it again.
  kRefused,        ///< The server refused the statement and changed nothing.
};

Trouble Classify(const sql::SQLException& error);

/// Whether the statement's table is missing, or its database.
bool IsMissingTable(const sql::SQLException& error);

/// Whether the statement's table was altered or made after the transaction's snapshot was taken, which has
/// nothing of it.
bool IsTableChanged(const sql::SQLException& error);

/// Whether the statement was refused because the host is read-only.
bool IsReadOnly(const sql::SQLException& error);

/// Whether a MySQL host has closed itself to clients (offline_mode), as it does for a moment while it is
/// fenced.
bool IsOffline(const sql::SQLException& error);

/// Whether the error may mean that a commit failed midway: the change may have been made all the same, or
/// appear when the server restarts.
bool IsCommitFailure(const sql::SQLException& error);

/// Whether the statement was refused because a unique key has the value already.
bool IsDuplicate(const sql::SQLException& error);

/// Translates a refusal, or a connection that could not be made, into our codes. The message has the server's
/// text and number, but no data of callers. Errors of a host that is read-only or offline, or of a frozen
/// dataset, are WritesHeldErrors (backend_api/outcome.h).
absl::Status ToStatus(const sql::SQLException& error);

}  // namespace kvstore::mysql
