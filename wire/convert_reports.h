#pragma once

#include "absl/status/statusor.h"
#include "kvstore/v1/reports.pb.h"
#include "reports/batch.h"
#include "reports/query.h"
#include "reports/reports.h"

/// Conversion between the types of reports and the messages of reports.proto, for client and server.
///
/// Nothing of a message is trusted. A value that the types cannot hold is INVALID_ARGUMENT, and the error
/// names the field: numbers that name nothing in an enum, indexes that point nowhere, columns whose lengths
/// disagree, numbers that are not finite. The checks of the library itself (limits of names, times, queries)
/// are left to it.
namespace kvstore::wire {

// ---- a report ----

void ToWire(const reports::SegmentKey& key, v1::SegmentKey& message);
reports::SegmentKey FromWire(const v1::SegmentKey& message);
void ToWire(const reports::Metric& metric, v1::Metric& message);
absl::StatusOr<reports::Metric> FromWire(const v1::Metric& message);
void ToWire(const reports::Rollup& rollup, v1::Rollup& message);
reports::Rollup FromWire(const v1::Rollup& message);
/// Everything but the metrics, of which a message may have a part only.
void ToWireWithoutMetrics(const reports::ReportInfo& info, v1::Report& message);
void ToWire(const reports::ReportInfo& info, v1::Report& message);
absl::StatusOr<reports::ReportInfo> FromWire(const v1::Report& message);
/// Sets what the request has beside the names of dataset and report.
void ToWire(const reports::ReportChange& change, v1::AlterReportRequest& message);
absl::StatusOr<reports::ReportChange> FromWire(const v1::AlterReportRequest& message);

// ---- points ----

/// Sets what the request has beside the dataset.
void ToWire(const reports::Batch& batch, const reports::WriteBatchOptions& options,
            v1::WritePointsRequest& message);
/// The points of a batch.
///
/// info  the report with the metrics that the message names. NOT_FOUND for one of them that it does not have.
absl::StatusOr<reports::Batch> FromWire(const v1::WritePointsRequest& message,
                                        const reports::ReportInfo& info);

// ---- queries ----

/// Sets what the request has beside the dataset. The limits of a query are not sent: the server has its own.
void ToWire(const reports::Query& query, v1::QueryReportRequest& message);
/// The query, with the limits that a Query has by default.
absl::StatusOr<reports::Query> FromWire(const v1::QueryReportRequest& message);
void ToWire(const reports::ResultSeries& series, v1::QueryReportResponse::Series& message);
/// query  what was asked: it names the metrics, filters and segments that may be answered.
absl::StatusOr<reports::ResultSeries> FromWire(v1::QueryReportResponse::Series& message,
                                               const reports::Query& query);
/// All of a result but its series.
void ToWire(const reports::QueryResult& result, v1::QueryReportResponse::End& message);
/// Sets all of `result` but its series.
void FromWire(const v1::QueryReportResponse::End& message, reports::QueryResult& result);

// ---- upkeep ----

void ToWire(const reports::CompactionResult& result, v1::CompactReportResponse::Result& message);
reports::CompactionResult FromWire(const v1::CompactReportResponse::Result& message);
void ToWire(const reports::RollupResult& result, v1::MakeRollupsResponse::Result& message);
reports::RollupResult FromWire(const v1::MakeRollupsResponse::Result& message);

}  // namespace kvstore::wire
