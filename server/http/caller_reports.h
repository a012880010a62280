#pragma once

#include <memory>
#include <string>

#include "reports/reports.h"
#include "server/call/call.h"
#include "server/http/held_memory.h"

namespace kvstore::server {

/// Returns the reports of a dataset as one call of one caller sees them: those that the caller may read, and
/// within the server's limits of queries. The right of the call itself was checked. The others must outlive
/// it.
///
/// principal  Null: everybody may do everything.
/// memory     Counts what is read.
std::unique_ptr<reports::Reports> ReportsOfCaller(Core& core, std::shared_ptr<const Principal> principal,
                                                  std::string dataset, HeldMemory& memory);

}  // namespace kvstore::server
