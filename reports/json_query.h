#pragma once

#include "json/json_fields.h"
#include "reports/query.h"

namespace kvstore::reports {

/// Reads the fields of a query_report. Mistakes are left in `fields`.
Query ReadQuery(JsonFields& fields);
/// {"series", "partial", "missing" (if there is any), "cost"}
Json ResultToJson(const QueryResult& result);

}  // namespace kvstore::reports
