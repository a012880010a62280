#include "client/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "backend_api/outcome.h"
#include "client/caller.h"
#include "client/client.h"
#include "client/outcome.h"
#include "client/report_answers.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "wire/convert.h"
#include "wire/convert_reports.h"

namespace kvstore::client {
namespace {

using reports::Batch;
using reports::CompactionResult;
using reports::MetricListing;
using reports::MetricPage;
using reports::Query;
using reports::QueryResult;
using reports::ReportChange;
using reports::ReportDescription;
using reports::ReportInfo;
using reports::RollupResult;
using Stub = v1::Reports::StubInterface;

/// Random bytes as a batch's ID, which is text.
std::string NewBatchId() {
  std::string text;
  for (const char c : NewRequestId()) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

/// The reports of a dataset behind a server. Thread-safe.
class RemoteReports : public reports::Reports {
 public:
  RemoteReports(std::shared_ptr<Caller> caller, std::string dataset)
      : caller_(std::move(caller)), dataset_(std::move(dataset)) {}

  absl::Status Create(const ReportInfo& info) override;
  absl::Status Alter(std::string_view report, const ReportChange& change) override;
  absl::Status Drop(std::string_view report) override;
  absl::StatusOr<std::vector<std::string>> List() override;
  absl::StatusOr<ReportInfo> Info(std::string_view report, const std::vector<std::string>& metrics) override;
  absl::StatusOr<ReportDescription> Describe(std::string_view report,
                                             const std::optional<std::vector<std::string>>& metrics) override;
  absl::StatusOr<MetricPage> ListMetrics(std::string_view report, const MetricListing& listing) override;
  absl::StatusOr<uint64_t> Write(const Batch& batch, const reports::WriteBatchOptions& options) override;
  absl::StatusOr<QueryResult> Run(const Query& query) override;
  absl::StatusOr<uint64_t> Delete(std::string_view report, const std::vector<std::string>& metrics,
                                  reports::TimeSpan span) override;
  absl::StatusOr<CompactionResult> Compact(std::string_view report) override;
  absl::StatusOr<RollupResult> MakeRollups(std::string_view report) override;

 private:
  /// Reads a stream of answers, from the beginning again when it is lost, within the call's deadline.
  ///
  /// Collector  one of report_answers.h. Each attempt has a new one, made of `arguments`.
  template <typename Collector, typename Request, typename Response, typename... Arguments>
  absl::StatusOr<typename Collector::Answer> ReadAll(std::unique_ptr<grpc::ClientReaderInterface<Response>> (
                                                         Stub::*method)(grpc::ClientContext*, const Request&),
                                                     const Request& request, const Arguments&... arguments);
  absl::StatusOr<ReportDescription> Get(v1::GetReportRequest& request, std::string_view report);
  /// One attempt to write a batch.
  grpc::Status WriteOnce(grpc::ClientContext& context, const v1::WritePointsRequest& request,
                         v1::WritePointsResponse& response);
  /// Makes a call that may last, and whose last message has the result.
  template <typename Result, typename Request, typename Response>
  absl::StatusOr<Result> Work(std::unique_ptr<grpc::ClientReaderInterface<Response>> (Stub::*method)(
                                  grpc::ClientContext*, const Request&),
                              std::string_view report);

  const std::shared_ptr<Caller> caller_;
  const std::string dataset_;
};

template <typename Collector, typename Request, typename Response, typename... Arguments>
absl::StatusOr<typename Collector::Answer> RemoteReports::ReadAll(
    std::unique_ptr<grpc::ClientReaderInterface<Response>> (Stub::*method)(grpc::ClientContext*,
                                                                           const Request&),
    const Request& request, const Arguments&... arguments) {
  std::optional<Collector> collector;
  absl::Status invalid;
  const absl::Status status = caller_->Repeat([&](Caller::Try& attempt) {
    collector.emplace(arguments...);
    const auto stream = (caller_->Reports().*method)(&attempt.Context(), request);
    for (Response response; stream->Read(&response);) {
      invalid = collector->Take(response);
      if (invalid.ok()) continue;
      attempt.Context().TryCancel();
      static_cast<void>(stream->Finish());
      return grpc::Status::OK;
    }
    return stream->Finish();
  });
  if (!status.ok()) return status;
  if (invalid.ok()) {
    auto answer = collector->Finish();
    if (answer.ok()) return answer;
    invalid = answer.status();
  }
  if (absl::IsResourceExhausted(invalid)) return invalid;
  return caller_->InvalidAnswerError(std::string(invalid.message()));
}

// ---- reports ----

absl::Status RemoteReports::Create(const ReportInfo& info) {
  v1::CreateReportRequest request;
  request.set_dataset(dataset_);
  wire::ToWire(info, *request.mutable_report());
  v1::CreateReportResponse response;
  return caller_->Call(request, response);
}

absl::Status RemoteReports::Alter(std::string_view report, const ReportChange& change) {
  v1::AlterReportRequest request;
  request.set_dataset(dataset_);
  request.set_report(std::string(report));
  wire::ToWire(change, request);
  v1::AlterReportResponse response;
  return caller_->Call(request, response);
}

absl::Status RemoteReports::Drop(std::string_view report) {
  v1::DropReportRequest request;
  request.set_dataset(dataset_);
  request.set_report(std::string(report));
  v1::DropReportResponse response;
  return caller_->Call(request, response);
}

absl::StatusOr<std::vector<std::string>> RemoteReports::List() {
  v1::ListReportsRequest request;
  request.set_dataset(dataset_);
  return ReadAll<NamesCollector>(&Stub::ListReports, request);
}

absl::StatusOr<ReportDescription> RemoteReports::Get(v1::GetReportRequest& request, std::string_view report) {
  request.set_dataset(dataset_);
  request.set_report(std::string(report));
  return ReadAll<ReportCollector>(&Stub::GetReport, request, request);
}

absl::StatusOr<ReportInfo> RemoteReports::Info(std::string_view report,
                                               const std::vector<std::string>& metrics) {
  v1::GetReportRequest request;
  for (const std::string& metric : metrics) request.add_metrics(metric);
  auto described = Get(request, report);
  if (!described.ok()) return described.status();
  return std::move(described->info);
}

absl::StatusOr<ReportDescription> RemoteReports::Describe(
    std::string_view report, const std::optional<std::vector<std::string>>& metrics) {
  v1::GetReportRequest request;
  request.set_all_metrics(!metrics.has_value());
  request.set_segment_values(true);
  if (metrics) {
    for (const std::string& metric : *metrics) request.add_metrics(metric);
  }
  return Get(request, report);
}

absl::StatusOr<MetricPage> RemoteReports::ListMetrics(std::string_view report, const MetricListing& listing) {
  v1::ListMetricsRequest request;
  request.set_dataset(dataset_);
  request.set_report(std::string(report));
  request.set_prefix(listing.prefix);
  request.set_after(listing.after);
  request.set_limit(static_cast<uint32_t>(std::min<size_t>(listing.limit, UINT32_MAX)));
  v1::ListMetricsResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  auto page = MetricsOf(request, response);
  if (page.ok()) return page;
  return caller_->InvalidAnswerError(std::string(page.status().message()));
}

// ---- points ----

grpc::Status RemoteReports::WriteOnce(grpc::ClientContext& context, const v1::WritePointsRequest& request,
                                      v1::WritePointsResponse& response) {
  const auto stream = caller_->Reports().WritePoints(&context);
  // If the server has ended the call already, Finish says why.
  const bool answered = stream->Write(request) && stream->WritesDone() && stream->Read(&response);
  grpc::Status status = stream->Finish();
  if (status.ok() && !answered)
    return {grpc::StatusCode::INTERNAL, "the server ended a batch without an answer"};
  return status;
}

absl::StatusOr<uint64_t> RemoteReports::Write(const Batch& batch, const reports::WriteBatchOptions& options) {
  if (batch.size() == 0) return 0;
  v1::WritePointsRequest request;
  request.set_dataset(dataset_);
  wire::ToWire(batch, options, request);
  if (request.batch().empty()) request.set_batch(NewBatchId());
  if (auto status = CheckSize(request); !status.ok()) return status;
  const auto deadline = caller_->Deadline();
  const CallScope scope(CallLimits{.deadline = deadline});
  bool in_doubt = false;
  for (int count = 0;; ++count) {
    v1::WritePointsResponse response;
    // By its ID the batch can be written again, whatever became of an attempt.
    absl::Status status = caller_->Repeat([&](Caller::Try& attempt) {
      response.Clear();
      grpc::Status ended = WriteOnce(attempt.Context(), request, response);
      in_doubt = in_doubt || (!ended.ok() && attempt.outcome().empty());
      return ended;
    });
    if (status.ok() && response.has_error()) status = wire::FromWire(response.error());
    if (status.ok()) {
      if (response.written() == batch.size()) return response.written();
      return MarkInDoubt(caller_->InvalidAnswerError("answered another number of points than it was given"));
    }
    const bool repeats = IsInDoubt(status) && absl::IsUnavailable(status);
    in_doubt = in_doubt || IsInDoubt(status);
    if (!repeats || !caller_->Pause(count, deadline)) return in_doubt ? MarkInDoubt(status) : status;
  }
}

absl::StatusOr<uint64_t> RemoteReports::Delete(std::string_view report,
                                               const std::vector<std::string>& metrics,
                                               reports::TimeSpan span) {
  v1::DeletePointsRequest request;
  request.set_dataset(dataset_);
  request.set_report(std::string(report));
  for (const std::string& metric : metrics) request.add_metrics(metric);
  request.set_from(span.from);
  request.set_to(span.to);
  v1::DeletePointsResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  return response.rows();
}

absl::StatusOr<QueryResult> RemoteReports::Run(const Query& query) {
  v1::QueryReportRequest request;
  request.set_dataset(dataset_);
  wire::ToWire(query, request);
  return ReadAll<AnswerCollector>(&Stub::QueryReport, request, query);
}

// ---- upkeep ----

template <typename Result, typename Request, typename Response>
absl::StatusOr<Result> RemoteReports::Work(std::unique_ptr<grpc::ClientReaderInterface<Response>> (
                                               Stub::*method)(grpc::ClientContext*, const Request&),
                                           std::string_view report) {
  if (auto status = CheckCall(); !status.ok()) return status;
  Request request;
  request.set_dataset(dataset_);
  request.set_report(std::string(report));
  grpc::ClientContext context;
  const CallLimits& limits = CallScope::Current();
  caller_->Prepare(context, limits.deadline);
  const CancelWatch watch(context, limits.cancelled);
  const auto stream = (caller_->Reports().*method)(&context, request);
  std::optional<Result> result;
  for (Response response; stream->Read(&response);) {
    if (response.has_result()) result = wire::FromWire(response.result());
  }
  const grpc::Status status = stream->Finish();
  if (!status.ok()) return caller_->Classify(status, OutcomeOf(context), /*writes=*/false).status;
  if (!result) return caller_->InvalidAnswerError("ended the work without its result");
  return *result;
}

absl::StatusOr<CompactionResult> RemoteReports::Compact(std::string_view report) {
  return Work<CompactionResult>(&Stub::CompactReport, report);
}

absl::StatusOr<RollupResult> RemoteReports::MakeRollups(std::string_view report) {
  return Work<RollupResult>(&Stub::MakeRollups, report);
}

}  // namespace

absl::StatusOr<std::unique_ptr<reports::Reports>> ConnectReports(const std::string& address,
                                                                 const ConnectOptions& options,
                                                                 std::string dataset) {
  auto caller = Caller::Open(address, options);
  if (!caller.ok()) return caller.status();
  return std::make_unique<RemoteReports>(*std::move(caller), std::move(dataset));
}

std::unique_ptr<reports::Reports> OpenReports(KVStore& store, std::string dataset) {
  if (const auto* client = dynamic_cast<Client*>(&store))
    return std::make_unique<RemoteReports>(client->caller(), std::move(dataset));
  return reports::LocalReports(store, std::move(dataset));
}

}  // namespace kvstore::client
