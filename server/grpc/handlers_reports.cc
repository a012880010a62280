#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/outcome.h"
#include "reports/reports.h"
#include "server/grpc/handlers.h"
#include "server/grpc/report_pieces.h"
#include "wire/convert_reports.h"

namespace kvstore::server {
namespace {

using reports::LocalReports;

/// Returns the error of a call that consists of several calls on data. That one of these was refused because
/// its dataset migrates does not say that nothing was done, so the call must not be made again elsewhere.
absl::Status ErrorOf(const absl::Status& status) {
  if (!IsMigrating(status) || IsInDoubt(status)) return status;
  return {status.code(), status.message()};
}

template <typename Strings>
std::vector<std::string> ToVector(const Strings& list) {
  return {list.begin(), list.end()};
}

/// Makes a producer out of what makes the whole answer, and cuts it into messages.
///
/// make  Returns the pieces as a shared pointer; called once.
template <typename Response, typename Make>
Producer<Response> InPieces(const Make& make) {
  using Pieces = typename decltype(make())::value_type;
  return [make, pieces = Pieces()](Response& response, absl::Status*) mutable -> absl::StatusOr<bool> {
    if (!pieces) {
      auto made = make();
      if (!made.ok()) return ErrorOf(made.status());
      pieces = *std::move(made);
    }
    return pieces->Fill(response);
  };
}

/// Makes a producer of one message, whose result is what `make` returns.
template <typename Response, typename Make>
Producer<Response> AsOne(const Make& make) {
  return [make, done = false](Response& response, absl::Status*) mutable -> absl::StatusOr<bool> {
    if (std::exchange(done, true)) return false;
    const auto result = make();
    if (!result.ok()) return ErrorOf(result.status());
    wire::ToWire(*result, *response.mutable_result());
    return true;
  };
}

/// Pieces whose memory is counted as long as they are there.
template <typename Pieces>
struct Held : Pieces {
  using Pieces::Pieces;
  std::shared_ptr<void> room;
};

template <typename Pieces, typename Answer>
absl::StatusOr<std::shared_ptr<Held<Pieces>>> Hold(Answer answer, const ReserveBytes& reserve) {
  auto pieces = std::make_shared<Held<Pieces>>(std::move(answer));
  const size_t bytes = pieces->memory();
  pieces->room = reserve(bytes);
  if (pieces->room) return pieces;
  return absl::ResourceExhaustedError(fmt::format(
      "the answer has {} bytes, and there is no room for them beside what the caller has in flight", bytes));
}

}  // namespace

// ---- reports ----

absl::Status Handle(KVStore& store, const v1::CreateReportRequest& request, v1::CreateReportResponse&) {
  const auto info = wire::FromWire(request.report());
  if (!info.ok()) return info.status();
  return ErrorOf(LocalReports(store, request.dataset())->Create(*info));
}

absl::Status Handle(KVStore& store, const v1::AlterReportRequest& request, v1::AlterReportResponse&) {
  const auto change = wire::FromWire(request);
  if (!change.ok()) return change.status();
  return ErrorOf(LocalReports(store, request.dataset())->Alter(request.report(), *change));
}

absl::Status Handle(KVStore& store, const v1::DropReportRequest& request, v1::DropReportResponse&) {
  return ErrorOf(LocalReports(store, request.dataset())->Drop(request.report()));
}

Producer<v1::ListReportsResponse> Produce(KVStore& store, const v1::ListReportsRequest& request,
                                          std::function<bool(const std::string& report)> shows) {
  return InPieces<v1::ListReportsResponse>(
      [&store, &request, shows = std::move(shows)]() -> absl::StatusOr<std::shared_ptr<NamePieces>> {
        auto names = LocalReports(store, request.dataset())->List();
        if (!names.ok()) return names.status();
        std::erase_if(*names, [&](const std::string& name) { return !shows(name); });
        return std::make_shared<NamePieces>(*std::move(names));
      });
}

Producer<v1::GetReportResponse> Produce(KVStore& store, const v1::GetReportRequest& request,
                                        const ReserveBytes& reserve) {
  return InPieces<v1::GetReportResponse>(
      [&store, &request, reserve]() -> absl::StatusOr<std::shared_ptr<Held<DescriptionPieces>>> {
        const auto reports = LocalReports(store, request.dataset());
        const std::vector<std::string> metrics = ToVector(request.metrics());
        if (!request.all_metrics() && !request.segment_values()) {
          auto info = reports->Info(request.report(), metrics);
          if (!info.ok()) return info.status();
          return Hold<DescriptionPieces>(reports::ReportDescription{.info = *std::move(info)}, reserve);
        }
        auto described = reports->Describe(request.report(),
                                           request.all_metrics() ? std::nullopt : std::optional(metrics));
        if (!described.ok()) return described.status();
        if (!request.segment_values()) described->segment_values.clear();
        return Hold<DescriptionPieces>(*std::move(described), reserve);
      });
}

absl::Status Handle(KVStore& store, const v1::ListMetricsRequest& request,
                    v1::ListMetricsResponse& response) {
  reports::MetricListing listing{.prefix = request.prefix(), .after = request.after()};
  if (request.has_limit()) listing.limit = request.limit();
  const auto page = LocalReports(store, request.dataset())->ListMetrics(request.report(), listing);
  if (!page.ok()) return ErrorOf(page.status());
  for (const reports::Metric& metric : page->metrics) wire::ToWire(metric, *response.add_metrics());
  response.set_more(page->more);
  return absl::OkStatus();
}

// ---- points ----

absl::Status Handle(KVStore& store, const v1::WritePointsRequest& request,
                    v1::WritePointsResponse& response) {
  const auto reports = LocalReports(store, request.dataset());
  const auto info = reports->Info(request.report(), ToVector(request.metrics()));
  if (!info.ok()) return ErrorOf(info.status());
  const auto batch = wire::FromWire(request, *info);
  if (!batch.ok()) return batch.status();
  const auto written = reports->Write(*batch, {.batch = request.batch(), .add = request.add()});
  if (!written.ok()) return ErrorOf(written.status());
  response.set_written(*written);
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::DeletePointsRequest& request,
                    v1::DeletePointsResponse& response) {
  const auto rows =
      LocalReports(store, request.dataset())
          ->Delete(request.report(), ToVector(request.metrics()), {request.from(), request.to()});
  if (!rows.ok()) return ErrorOf(rows.status());
  response.set_rows(*rows);
  return absl::OkStatus();
}

Producer<v1::QueryReportResponse> Produce(KVStore& store, const v1::QueryReportRequest& request,
                                          const reports::QueryLimits& limits, const ReserveBytes& reserve) {
  return InPieces<v1::QueryReportResponse>(
      [&store, &request, limits, reserve]() -> absl::StatusOr<std::shared_ptr<Held<ResultPieces>>> {
        auto query = wire::FromWire(request);
        if (!query.ok()) return query.status();
        query->limits = limits;
        auto result = LocalReports(store, request.dataset())->Run(*query);
        if (!result.ok()) return result.status();
        return Hold<ResultPieces>(*std::move(result), reserve);
      });
}

// ---- upkeep ----

Producer<v1::CompactReportResponse> Produce(KVStore& store, const v1::CompactReportRequest& request) {
  return AsOne<v1::CompactReportResponse>(
      [&store, &request] { return LocalReports(store, request.dataset())->Compact(request.report()); });
}

Producer<v1::MakeRollupsResponse> Produce(KVStore& store, const v1::MakeRollupsRequest& request) {
  return AsOne<v1::MakeRollupsResponse>(
      [&store, &request] { return LocalReports(store, request.dataset())->MakeRollups(request.report()); });
}

}  // namespace kvstore::server
