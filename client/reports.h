#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kvstore_api/connect.h"
#include "reports/reports.h"

namespace kvstore::client {

/// Returns the reports of a dataset behind a server, with the same interface as in process. Returns at once,
/// as Connect does, which describes addresses, options and errors.
///
///   auto reports = kvstore::client::ConnectReports("127.0.0.1:7400", {}, "reports");
///   if (!reports.ok()) return reports.status();
///   auto result = (*reports)->Run({.report = "flights", .metrics = {{.name = "departures"}}, ...});
///
/// Queries, compactions and roll-ups run in the server. Over the network the interface differs in this:
/// - Deadlines and retries are those of Connect; Compact and MakeRollups have no deadline without a
///   CallScope, and are not retried.
/// - A batch has at most 100,000 points of a kind and 20 MiB on the wire. One that has no ID is given one, so
///   that a retry does not write it twice.
/// - The limits of a query are the server's. QueryLimits::max_memory_bytes also limits, in this process, the
///   answer. The query's time zone must be one that the server knows by its name.
/// - List, Info and Describe are answered with RESOURCE_EXHAUSTED beyond 512 MiB.
absl::StatusOr<std::unique_ptr<reports::Reports>> ConnectReports(const std::string& address,
                                                                 const ConnectOptions& options,
                                                                 std::string dataset);

/// Returns the reports of a dataset of a store, wherever that is: behind a server (if Connect returned the
/// store) over the same connections, else in this process (LocalReports). The store must outlive what is
/// returned. Cheap.
std::unique_ptr<reports::Reports> OpenReports(KVStore& store, std::string dataset);

}  // namespace kvstore::client
