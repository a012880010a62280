#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "client/reports.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "kvstore/v1/reports.grpc.pb.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/in_doubt.h"
#include "tests/support/status_matchers.h"

/// A server that answers calls on reports with whatever it likes.
namespace kvstore {
namespace {

using testing::FailsWith;

constexpr auto kInternal = absl::StatusCode::kInternal;

/// Says which server it is, as every server must before a write.
class AnyServer : public v1::KVStore::Service {
  grpc::Status GetServer(grpc::ServerContext*, const v1::GetServerRequest*,
                         v1::GetServerResponse* answer) override {
    answer->set_instance("hostile");
    return grpc::Status::OK;
  }
};

/// Answers with the messages that a test has made.
class HostileReports : public v1::Reports::Service {
 public:
  HostileReports() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    builder.RegisterService(&any_);
    server_ = builder.BuildAndStart();
  }
  ~HostileReports() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::unique_ptr<reports::Reports> Client() const {
    return *client::ConnectReports("127.0.0.1:" + std::to_string(port_), {}, "reports");
  }

  std::vector<v1::ListReportsResponse> names;
  std::vector<v1::GetReportResponse> report;
  std::vector<v1::QueryReportResponse> answer;
  std::function<void(const v1::WritePointsRequest& request, v1::WritePointsResponse& response)> write;
  std::vector<std::string> batches;  // that were written
  bool endless = false;              // the last message comes again and again

 private:
  /// messages  A copy, because a client may give up early, and its test then prepares others while this
  ///           still sends.
  template <typename Message>
  grpc::Status Send(std::vector<Message> messages, grpc::ServerWriter<Message>* stream) {
    for (const Message& message : messages) stream->Write(message);
    while (endless && stream->Write(messages.back())) {
    }
    return grpc::Status::OK;
  }
  grpc::Status ListReports(grpc::ServerContext*, const v1::ListReportsRequest*,
                           grpc::ServerWriter<v1::ListReportsResponse>* stream) override {
    return Send(names, stream);
  }
  grpc::Status GetReport(grpc::ServerContext*, const v1::GetReportRequest*,
                         grpc::ServerWriter<v1::GetReportResponse>* stream) override {
    return Send(report, stream);
  }
  grpc::Status QueryReport(grpc::ServerContext*, const v1::QueryReportRequest*,
                           grpc::ServerWriter<v1::QueryReportResponse>* stream) override {
    return Send(answer, stream);
  }
  grpc::Status WritePoints(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::WritePointsResponse, v1::WritePointsRequest>* stream) override {
    v1::WritePointsRequest request;
    if (!stream->Read(&request)) return grpc::Status::OK;
    batches.push_back(request.batch());
    if (!write) return grpc::Status::OK;
    v1::WritePointsResponse response;
    write(request, response);
    stream->Write(response);
    return grpc::Status::OK;
  }
  grpc::Status CompactReport(grpc::ServerContext*, const v1::CompactReportRequest*,
                             grpc::ServerWriter<v1::CompactReportResponse>* stream) override {
    stream->Write({});
    return grpc::Status::OK;
  }

  AnyServer any_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

v1::QueryReportResponse Answer(const std::string& metric, const std::string& filter = "") {
  v1::QueryReportResponse message;
  auto& series = *message.add_series();
  series.set_metric(metric);
  series.set_filter(filter);
  return message;
}
v1::QueryReportResponse End() {
  v1::QueryReportResponse message;
  message.mutable_end();
  return message;
}

TEST(HostileReports, AnAnswerMustFitTheQuery) {
  HostileReports server;
  const auto reports = server.Client();
  const reports::Query query{.report = "r",
                             .metrics = {{.name = "a"}, {.name = "b"}},
                             .to = 1,
                             .filters = {{.name = "x"}, {.name = "y"}}};
  const auto run = [&](std::vector<v1::QueryReportResponse> messages) {
    server.answer = std::move(messages);
    return reports->Run(query);
  };
  EXPECT_OK(run({Answer("a", "x"), Answer("a", "x"), Answer("a", "y"), Answer("b", "x"), End()}));
  EXPECT_OK(run({End()}));
  EXPECT_THAT(run({}), FailsWith(kInternal, "before its cost"));
  EXPECT_THAT(run({Answer("a", "x")}), FailsWith(kInternal, "before its cost"));
  EXPECT_THAT(run({End(), Answer("a", "x")}), FailsWith(kInternal, "after the end"));
  EXPECT_THAT(run({End(), End()}), FailsWith(kInternal, "after the end"));
  EXPECT_THAT(run({Answer("c", "x"), End()}), FailsWith(kInternal, "not asked for, or not in order"));
  EXPECT_THAT(run({Answer("a", "z"), End()}), FailsWith(kInternal, "not asked for, or not in order"));
  EXPECT_THAT(run({Answer("b", "x"), Answer("a", "x"), End()}), FailsWith(kInternal, "not in order"));
  EXPECT_THAT(run({Answer("a", "y"), Answer("a", "x"), End()}), FailsWith(kInternal, "not in order"));
  EXPECT_THAT(run({{}, End()}), FailsWith(kInternal, "without series"));
  auto grouped = Answer("a", "x");
  grouped.mutable_series(0)->add_segments("US");
  EXPECT_THAT(run({grouped, End()}), FailsWith(kInternal, "series.segments"));
  auto strange = Answer("a", "x");
  strange.mutable_series(0)->mutable_points()->add_times(1);
  strange.mutable_series(0)->mutable_points()->mutable_values()->add_reals(std::nan(""));
  EXPECT_THAT(run({strange, End()}), FailsWith(kInternal, "not finite"));
}

TEST(HostileReports, AnAnswerThatHasNoEndIsNotTakenForEver) {
  HostileReports server;
  server.endless = true;
  server.answer = {Answer("a")};
  for (int i = 0; i < 10'000; ++i) server.answer[0].mutable_series(0)->mutable_points()->add_times(i);
  for (int i = 0; i < 10'000; ++i)
    server.answer[0].mutable_series(0)->mutable_points()->mutable_values()->add_integers(i);
  reports::Query query{.report = "r", .metrics = {{.name = "a"}}, .to = 1};
  query.limits.max_memory_bytes = size_t{8} << 20;
  const auto reports = server.Client();
  EXPECT_THAT(reports->Run(query), FailsWith(absl::StatusCode::kResourceExhausted, "8388608"));
  server.names = {{}};
  server.names[0].add_reports("a");
  EXPECT_THAT(reports->List(), FailsWith(kInternal, "not in order"));
  server.names[0].clear_reports();
  EXPECT_THAT(reports->List(), FailsWith(kInternal, "without reports"));
  server.report = {{}};
  server.report[0].mutable_report()->set_name("r");
  EXPECT_THAT(reports->Info("r", {}), FailsWith(kInternal, "brings nothing"));
}

TEST(HostileReports, AReportMustBeTheOneThatWasAskedFor) {
  HostileReports server;
  const auto reports = server.Client();
  const auto info = [&](const std::function<void(v1::GetReportResponse&)>& change) {
    server.report = {{}};
    server.report[0].mutable_report()->set_name("r");
    server.report[0].mutable_report()->add_metrics()->set_name("m");
    change(server.report[0]);
    return reports->Info("r", {"m"});
  };
  EXPECT_OK(info([](auto&) {}));
  EXPECT_THAT(info([](auto& m) { m.mutable_report()->set_name("s"); }),
              FailsWith(kInternal, "another report"));
  EXPECT_THAT(info([](auto& m) { m.mutable_report()->set_resolution_ms(0); }),
              FailsWith(kInternal, "impossible"));
  EXPECT_THAT(info([](auto& m) { m.mutable_report()->set_period_s(0); }), FailsWith(kInternal, "impossible"));
  EXPECT_THAT(info([](auto& m) {
                for (int i = 0; i < 17; ++i) m.mutable_report()->add_keys();
              }),
              FailsWith(kInternal, "impossible"));
  EXPECT_THAT(info([](auto& m) { m.mutable_report()->add_metrics()->set_name("n"); }),
              FailsWith(kInternal, "not asked for"));
  EXPECT_THAT(
      info([](auto& m) { m.mutable_report()->mutable_metrics(0)->set_kind(static_cast<v1::MetricKind>(8)); }),
      FailsWith(kInternal, "the value 8 is not one that this program knows"));
  EXPECT_THAT(info([](auto& m) { m.add_segment_values()->set_key("k"); }),
              FailsWith(kInternal, "not asked for"));
  server.report.clear();
  EXPECT_THAT(reports->Info("r", {}), FailsWith(kInternal, "without the report"));
}

TEST(HostileReports, ABatchKeepsItsIdAndIsAnsweredWithItsPoints) {
  HostileReports server;
  const auto reports = server.Client();
  reports::Batch batch({.name = "r", .metrics = {{.name = "m"}}});
  ASSERT_OK(batch.Add(0, 0, {}, reports::Number::Integer(1)));
  EXPECT_THAT(reports->Write(batch, {}), FailsWith(kInternal, "without an answer"));
  server.write = [](auto&, auto& response) { response.set_written(2); };
  const absl::Status misfit = reports->Write(batch, {}).status();
  EXPECT_THAT(misfit, FailsWith(kInternal, "another number of points"));
  EXPECT_TRUE(IsInDoubt(misfit)) << "it may have written the batch";
  // A server that does not know whether it wrote the batch is asked again under the same ID.
  server.batches.clear();
  server.write = [&](auto&, auto& response) {
    if (server.batches.size() == 3) return response.set_written(1);
    response.mutable_error()->set_code(static_cast<int>(absl::StatusCode::kUnavailable));
    response.mutable_error()->set_outcome("in-doubt");
  };
  EXPECT_OK(reports->Write(batch, {}));
  ASSERT_EQ(server.batches.size(), 3u);
  EXPECT_FALSE(server.batches[0].empty());
  EXPECT_EQ(server.batches[1], server.batches[0]);
  EXPECT_EQ(server.batches[2], server.batches[0]);
  server.batches.clear();
  server.write = [](auto&, auto& response) { response.set_written(1); };
  EXPECT_OK(reports->Write(batch, {.batch = "mine"}));
  EXPECT_OK(reports->Write(batch, {}));
  ASSERT_EQ(server.batches.size(), 2u);
  EXPECT_EQ(server.batches[0], "mine");
  EXPECT_NE(server.batches[1], "mine");
}

TEST(HostileReports, WorkWithoutAResultIsNotDone) {
  HostileReports server;
  EXPECT_THAT(server.Client()->Compact("r"), FailsWith(kInternal, "without its result"));
}

}  // namespace
}  // namespace kvstore
