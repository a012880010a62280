#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore/v1/reports.pb.h"
#include "kvstore_api/kvstore.h"
#include "reports/query.h"

/// What each method of the service does, from its request to its answer. Handlers know nothing of
/// connections.
namespace kvstore::server {

/// What is left to do of a request with many entries, because the dataset of some of them migrates
/// (backend_api/outcome.h).
struct Unfinished {
  /// The entries of a batch of writes for which nothing was done, in ascending order. When the same request
  /// is handled again, with the same answer, only these are carried out. Empty: all of them are.
  std::vector<size_t> places;
  /// The error of the first of them, which the answer has, too; OK: nothing is left.
  absl::Status migrating;
};

absl::Status Handle(KVStore& store, const v1::CreateDatasetRequest& request,
                    v1::CreateDatasetResponse& response);
absl::Status Handle(KVStore& store, const v1::AlterDatasetRequest& request,
                    v1::AlterDatasetResponse& response);
absl::Status Handle(KVStore& store, const v1::DropDatasetRequest& request, v1::DropDatasetResponse& response);
absl::Status Handle(KVStore& store, const v1::GetDatasetRequest& request, v1::GetDatasetResponse& response);
absl::Status Handle(KVStore& store, const v1::ListDatasetsRequest& request,
                    v1::ListDatasetsResponse& response);
absl::Status Handle(KVStore& store, const v1::GetStatsRequest& request, v1::GetStatsResponse& response);

absl::Status Handle(KVStore& store, const v1::GetRowRequest& request, v1::GetRowResponse& response);
absl::Status Handle(KVStore& store, const v1::PutRowRequest& request, v1::PutRowResponse& response);
absl::Status Handle(KVStore& store, const v1::DeleteRowRequest& request, v1::DeleteRowResponse& response);
/// unfinished  Empty at first; null if the caller will not handle the rest again.
absl::Status Handle(KVStore& store, const v1::PutRowsRequest& request, v1::PutRowsResponse& response,
                    Unfinished* unfinished = nullptr);
absl::Status Handle(KVStore& store, const v1::DeleteRowsRequest& request, v1::DeleteRowsResponse& response,
                    Unfinished* unfinished = nullptr);
absl::Status Handle(KVStore& store, const v1::ListPartitionsRequest& request,
                    v1::ListPartitionsResponse& response);

absl::Status Handle(KVStore& store, const v1::CreateObjectRequest& request,
                    v1::CreateObjectResponse& response);
absl::Status Handle(KVStore& store, const v1::GetObjectRequest& request, v1::GetObjectResponse& response);
absl::Status Handle(KVStore& store, const v1::UpdateObjectRequest& request,
                    v1::UpdateObjectResponse& response);
absl::Status Handle(KVStore& store, const v1::DeleteObjectRequest& request,
                    v1::DeleteObjectResponse& response);

absl::Status Handle(KVStore& store, const v1::AddMappingRequest& request, v1::AddMappingResponse& response);
absl::Status Handle(KVStore& store, const v1::RemoveMappingRequest& request,
                    v1::RemoveMappingResponse& response);
absl::Status Handle(KVStore& store, const v1::ListMappingRequest& request, v1::ListMappingResponse& response);
absl::Status Handle(KVStore& store, const v1::CountMappingRequest& request,
                    v1::CountMappingResponse& response);
absl::Status Handle(KVStore& store, const v1::ListObjectsRequest& request, v1::ListObjectsResponse& response,
                    Unfinished* unfinished = nullptr);

absl::Status Handle(KVStore& store, const v1::CreateReportRequest& request,
                    v1::CreateReportResponse& response);
absl::Status Handle(KVStore& store, const v1::AlterReportRequest& request, v1::AlterReportResponse& response);
absl::Status Handle(KVStore& store, const v1::DropReportRequest& request, v1::DropReportResponse& response);
absl::Status Handle(KVStore& store, const v1::ListMetricsRequest& request, v1::ListMetricsResponse& response);
absl::Status Handle(KVStore& store, const v1::DeletePointsRequest& request,
                    v1::DeletePointsResponse& response);
/// Writes one batch of a stream.
absl::Status Handle(KVStore& store, const v1::WritePointsRequest& request, v1::WritePointsResponse& response);

/// Fills the next message of a stream; returns false, with an empty message, when there is none any more. The
/// request must outlive it. Externally synchronised.
///
/// migrating  Set to the error if the dataset migrates and no message was made for that reason: the producer
/// is
///            to be called again. Null: entries whose dataset migrates get the error as their answer, or the
///            stream ends with it.
template <typename Response>
using Producer = std::function<absl::StatusOr<bool>(Response& response, absl::Status* migrating)>;

Producer<v1::GetRowsResponse> Produce(KVStore& store, const v1::GetRowsRequest& request);
Producer<v1::GetObjectsResponse> Produce(KVStore& store, const v1::GetObjectsRequest& request);
Producer<v1::ScanRowsResponse> Produce(KVStore& store, const v1::ScanRowsRequest& request);

// The answers of the following are in memory as a whole until their last message is made. They do all their
// work when they are asked for the first message.

/// Counts so many bytes as held by the caller while the returned object lives; null if there is no room.
using ReserveBytes = std::function<std::shared_ptr<void>(size_t bytes)>;

/// shows  Returns whether the caller may know of a report, by its name.
Producer<v1::ListReportsResponse> Produce(KVStore& store, const v1::ListReportsRequest& request,
                                          std::function<bool(const std::string& report)> shows);
Producer<v1::GetReportResponse> Produce(KVStore& store, const v1::GetReportRequest& request,
                                        const ReserveBytes& reserve);
Producer<v1::QueryReportResponse> Produce(KVStore& store, const v1::QueryReportRequest& request,
                                          const reports::QueryLimits& limits, const ReserveBytes& reserve);
Producer<v1::CompactReportResponse> Produce(KVStore& store, const v1::CompactReportRequest& request);
Producer<v1::MakeRollupsResponse> Produce(KVStore& store, const v1::MakeRollupsRequest& request);

}  // namespace kvstore::server
