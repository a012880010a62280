#pragma once

#include "absl/status/statusor.h"
#include "reports/metadata.h"
#include "reports/query.h"

namespace kvstore::reports {

/// Answers a query. Series are in order of metric, filter, then segments by bytes, or by rank with `top`. All
/// filters of a metric are answered by one pass over its rows, the salts of a report in parallel. The same
/// query on the same points gives the same bits, however they came and wherever they lie.
///
/// INVALID_ARGUMENT names the field; NOT_FOUND the report or the metric; RESOURCE_EXHAUSTED the limit that
/// was passed. The caller's deadline is looked at between rows and chunks (CallScope).
absl::StatusOr<QueryResult> RunQuery(const Metadata& metadata, const Query& query);

}  // namespace kvstore::reports
