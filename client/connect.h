#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/options.h"
#include "kvstore_api/kvstore.h"

namespace kvstore {

/// The store behind a server, by the same interface as in process (`kvstore::Open`). Returns at once: the
/// server is connected to when it is needed, and again when a connection is lost.
///
/// address  "host:port", "[ipv6]:port" or "unix:/path".
///
/// INVALID_ARGUMENT for an address that is none, a file of the TLS options that cannot be read, a token that
/// is not printable ASCII (a byte order mark before it is left out), and one that would leave this machine
/// without encryption, but for ConnectOptions::plain_token.
///
///   auto store = kvstore::Connect("127.0.0.1:7400");
///   if (!store.ok()) return store.status();
///   auto row = (*store)->GetRow("events", "user:7", {});
///
/// What the network adds to the interface:
/// - A call takes as long as its CallScope allows (call_scope.h), else ConnectOptions::deadline_ms: then
///   DEADLINE_EXCEEDED. Scans and Compact have no deadline without a CallScope.
/// - A connection that is lost, and a server that turns calls away because it has too many, are tried again
///   until the deadline, with growing pauses. Writes too: each has a request ID, by which the server knows it
///   again. If it was restarted meanwhile it cannot: UNAVAILABLE, the write may or may not have happened;
///   but an object is created once in that case also.
/// - Pages end at kMaxWireBytes. A scan that loses its server goes on by itself behind the last row.
/// - UpdateObject with a transform runs it here, and writes if nobody else did meanwhile; else again.
/// - UNAUTHENTICATED and PERMISSION_DENIED.
/// - A server that answers something other than what it was asked (more or fewer entries, another object, a
/// page
///   that does not go on): INTERNAL. What it answers with is not believed in any other way either: it takes
///   no more memory than a few times kMaxAnswerBytes, and is not decompressed.
absl::StatusOr<std::unique_ptr<KVStore>> Connect(const std::string& address,
                                                 const ConnectOptions& options = {});

}  // namespace kvstore
