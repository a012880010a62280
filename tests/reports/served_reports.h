#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "client/reports.h"
#include "kvstore/v1/reports.grpc.pb.h"
#include "reports/reports.h"
#include "tests/server/served.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "wire/convert_reports.h"

namespace kvstore::testing {

/// A server, the reports of its dataset "reports" through a client, and the same reports in process.
class ServedReportsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kHour = 3'600'000;

  void Serve(const ServerOptions& options = TestServerOptions()) {
    served_ = std::make_unique<Served>(options);
    local_ = reports::LocalReports(served_->router(), "reports");
  }
  /// Serves everybody, with a client and the report "flights".
  void ServeFlights(const ServerOptions& options = TestServerOptions()) {
    Serve(options);
    remote_ = Remote();
    ASSERT_OK(remote_->Create(Flights()));
  }

  std::unique_ptr<reports::Reports> Remote(const ConnectOptions& options = {},
                                           std::string dataset = "reports") const {
    return *client::ConnectReports(served_->address(), options, std::move(dataset));
  }
  std::unique_ptr<v1::Reports::Stub> Stub() const {
    return v1::Reports::NewStub(grpc::CreateChannel(served_->address(), grpc::InsecureChannelCredentials()));
  }
  double InFlight(const std::string& token = "") const {
    return served_->Metric("kvstore_calls_in_flight", token);
  }

  static reports::ReportInfo Flights(const std::string& name = "flights") {
    return {.name = name,
            .settings = {.resolution_ms = kHour, .period_s = 86'400, .salts = 3},
            .keys = {{"carrier", std::nullopt}, {"origin", "?"}},
            .metrics = {{.name = "departures"},
                        {.name = "delay", .kind = reports::MetricKind::kDistribution},
                        {.name = "planes", .kind = reports::MetricKind::kDistinct},
                        {.name = "fuel"}}};
  }
  /// One departure of a carrier.
  static reports::Batch Departure(const reports::ReportInfo& info, std::string_view carrier,
                                  int64_t value = 1) {
    reports::Batch batch(info);
    const std::optional<std::string_view> segments[] = {carrier, std::nullopt};
    EXPECT_OK(batch.Add(0, kHour, segments, reports::Number::Integer(value)));
    return batch;
  }
  static reports::Query Departures(const std::string& report = "flights") {
    return {.report = report, .metrics = {{.name = "departures"}}, .from = 0, .to = 1'000 * kHour};
  }
  /// A query that runs for longer than any test, unless it is ended: it has nothing to read, and a thousand
  /// times a thousand series of 100,000 steps to fill.
  static reports::Query Endless(const std::string& report = "flights") {
    reports::Query query{.report = report, .from = 0, .to = 100'000, .step = reports::Step{}};
    for (int i = 0; i < 1'000; ++i)
      query.metrics.push_back({.name = "m" + std::to_string(i), .expression = "departures + 1"});
    query.filters.assign(1'000, {.where = {{"carrier", std::vector<std::string>{"nobody"}}}});
    return query;
  }
  static v1::QueryReportRequest RequestOf(const reports::Query& query) {
    v1::QueryReportRequest request;
    request.set_dataset("reports");
    wire::ToWire(query, request);
    return request;
  }

  std::unique_ptr<Served> served_;
  std::unique_ptr<reports::Reports> local_;
  std::unique_ptr<reports::Reports> remote_;
};

/// A query of a raw client, which runs until the end of this.
class OpenQuery {
 public:
  OpenQuery(v1::Reports::Stub& stub, const v1::QueryReportRequest& request, const std::string& token = "") {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    stream_ = stub.QueryReport(&context_, request);
  }
  ~OpenQuery() {
    if (!ended_) Cancel();
  }
  /// Leaves the query, and returns how it ended.
  grpc::Status Cancel() {
    ended_ = true;
    context_.TryCancel();
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::QueryReportResponse>> stream_;
  bool ended_ = false;
};

}  // namespace kvstore::testing
