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

/// Handlers carry out the methods of the service, each from its request to its answer. They know nothing of
/// connections.
namespace kvstore::server {

/// How many bytes of answers of a batch are read before a message is sent. Requests of other callers wait
/// while a message is written.
inline constexpr size_t kBatchMessageBytes = size_t{256} << 10;

/// The part of a request with many entries that is still to be done, because the dataset of some of them
/// migrates (backend_api/outcome.h).
struct Unfinished {
  /// The entries of a batch of writes for which nothing was done, in ascending order. When the same request
  /// is handled again, with the same answer, only these are carried out. Empty: all of them are.
  std::vector<size_t> places;
  /// The error of the first of them, which the answer has, too; OK: nothing is left.
  absl::Status migrating;
};

// Each line of the table has a `Handle(KVStore&, const Request&, Response&)`, which carries out that
// operation of the store. For a batch, `unfinished` is empty at first; it is null if the caller will not
// handle the rest again.
#define KV_UNARY(name, right, quick) \
  absl::Status Handle(KVStore& store, const v1::name##Request& request, v1::name##Response& response);
#define KV_BATCH(name, right, quick)                                                                  \
  absl::Status Handle(KVStore& store, const v1::name##Request& request, v1::name##Response& response, \
                      Unfinished* unfinished = nullptr);
#define KV_SPECIAL(name, right, quick)  // special_handlers.h
#include "backend_api/operations.def"

/// Writes one batch of a stream.
absl::Status Handle(KVStore& store, const v1::WritePointsRequest& request, v1::WritePointsResponse& response);

/// Fills the next message of a stream; returns false, with an empty message, when there is none any more. The
/// request must outlive it. Externally synchronised.
///
/// migrating  Set to the error if the dataset migrates and no message was made for that reason, or to one of
/// NothingYetError (server/call/change_feed.h): the producer is to be called again. Null: entries whose
/// dataset migrates get the error as their answer, or the stream ends with it.
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
