#pragma once

#include "json/json_fields.h"
#include "reports/query.h"

namespace kvstore::reports {

/// Reads the fields of a query_report. Mistakes are left in `fields`.
Query ReadQuery(JsonFields& fields);
/// {"series", "partial", "missing" (if there is any), "cost"}, and "parts" for a query that explains itself.
Json ResultToJson(const Query& query, const QueryResult& result);

}  // namespace kvstore::reports
