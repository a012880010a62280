#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kvstore_api/call_scope.h"
#include "server/call/access.h"
#include "tests/reports/served_reports.h"
#include "tests/support/temp_dir.h"

/// Tests who may do what with which report, and how much of the server one caller gets.
namespace kvstore::reports {
namespace {

using server::Right;
using testing::Eventually;
using testing::FailsWith;
using testing::OpenQuery;
using testing::ServedReportsTest;
using testing::TempDir;
using testing::TestServerOptions;

constexpr auto kDenied = absl::StatusCode::kPermissionDenied;

/// The token of each caller is its name.
class ServedRightsTest : public ServedReportsTest {
 protected:
  void WriteTokens(const std::map<std::string, std::string>& rights) {
    const std::filesystem::path fresh = dir_ / "tokens.new";
    {
      std::ofstream out(fresh);
      out << R"({"tokens": [)";
      const char* comma = "";
      for (const auto& [name, json] : rights) {
        out << comma << R"({"name": ")" << name << R"(", "sha256": ")" << server::TokenDigest(name)
            << R"(", "rights": )" << json << "}";
        comma = ",\n";
      }
      out << "]}";
    }
    std::filesystem::rename(fresh, dir_ / "tokens.json");
  }

  /// Serves callers with rights on the report "flights" alone, on the whole dataset, and on another one.
  /// There are the reports "flights" and "salaries".
  void ServeCallers(ServerOptions options = TestServerOptions()) {
    WriteTokens(kRights);
    options.tokens = dir_ / "tokens.json";
    Serve(options);
    for (const char* name : {"flights", "salaries"}) ASSERT_OK(local_->Create(Flights(name)));
  }
  std::unique_ptr<Reports> As(const std::string& name, const std::string& dataset = "reports") const {
    return Remote({.token = name}, dataset);
  }

  const std::map<std::string, std::string> kRights = {
      {"ops", R"({"*": "admin"})"},
      {"reader", R"({"reports/flights": "read"})"},
      {"loader", R"({"reports/flights": "write"})"},
      {"owner", R"({"reports/flights": "admin", "reports/delays": "admin", "fresh/flights": "admin"})"},
      {"all", R"({"reports": "read"})"},
      {"stranger", R"({"other": "admin"})"},
  };
  const TempDir dir_;
};

/// A call on a report, and the right that it needs.
struct RightCheck {
  const char* name;
  Right needs;
  std::function<absl::Status(Reports&, const std::string& report)> call;
};

std::vector<RightCheck> Checks(const ReportInfo& info) {
  const auto batch = [info](const std::string& report) {
    ReportInfo named = info;
    named.name = report;
    Batch one(named);
    const std::optional<std::string_view> segments[] = {"UA", std::nullopt};
    EXPECT_OK(one.Add(0, 0, segments, Number::Integer(1)));
    return one;
  };
  return {
      {"Info", Right::kRead, [](Reports& r, auto& report) { return r.Info(report, {}).status(); }},
      {"Describe", Right::kRead,
       [](Reports& r, auto& report) { return r.Describe(report, std::nullopt).status(); }},
      {"ListMetrics", Right::kRead,
       [](Reports& r, auto& report) { return r.ListMetrics(report, {}).status(); }},
      {"Run", Right::kRead,
       [](Reports& r, auto& report) {
         return r.Run({.report = report, .metrics = {{.name = "departures"}}, .to = 1}).status();
       }},
      {"Write", Right::kWrite, [=](Reports& r, auto& report) { return r.Write(batch(report), {}).status(); }},
      {"Delete", Right::kWrite,
       [](Reports& r, auto& report) {
         return r.Delete(report, {"departures"}, {0, 1}).status();
       }},
      {"Alter", Right::kAdmin, [](Reports& r, auto& report) { return r.Alter(report, {.retention_ms = 0}); }},
      {"Compact", Right::kAdmin, [](Reports& r, auto& report) { return r.Compact(report).status(); }},
      {"MakeRollups", Right::kAdmin, [](Reports& r, auto& report) { return r.MakeRollups(report).status(); }},
      {"Create", Right::kAdmin,
       [=](Reports& r, auto& report) {
         ReportInfo named = info;
         named.name = report;
         const absl::Status created = r.Create(named);
         return absl::IsAlreadyExists(created) ? absl::OkStatus() : created;
       }},
  };
}

TEST_F(ServedRightsTest, EachCallNeedsItsRightOnTheReport) {
  ServeCallers();
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, local_->Info("flights", {"departures"}));
  const std::map<std::string, std::pair<Right, Right>> callers = {
      // The rights on "flights", and on "salaries".
      {"ops", {Right::kAdmin, Right::kAdmin}},   {"reader", {Right::kRead, Right::kNone}},
      {"loader", {Right::kWrite, Right::kNone}}, {"owner", {Right::kAdmin, Right::kNone}},
      {"all", {Right::kRead, Right::kRead}},     {"stranger", {Right::kNone, Right::kNone}},
  };
  for (const auto& [name, rights] : callers) {
    const auto reports = As(name);
    for (const RightCheck& check : Checks(info)) {
      for (const auto& [report, right] : {std::pair{std::string("flights"), rights.first},
                                          std::pair{std::string("salaries"), rights.second}}) {
        const absl::Status status = check.call(*reports, report);
        EXPECT_EQ(status.ok(), right >= check.needs)
            << name << " " << check.name << " " << report << ": " << status;
        if (!status.ok()) {
          EXPECT_EQ(status.code(), kDenied) << name << " " << check.name << " " << report;
        }
      }
    }
  }
}

TEST_F(ServedRightsTest, WhatOneMayNotReadIsDeniedWhetherItIsThereOrNot) {
  ServeCallers();
  const auto said = [&](const std::string& dataset, const std::string& report) {
    const absl::Status status = As("reader", dataset)->Run(Departures(report)).status();
    EXPECT_EQ(status.code(), kDenied) << status;
    std::string text(status.message());
    const std::string subject = dataset + "/" + report;
    const size_t at = text.find(subject);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? text : text.replace(at, subject.size(), "it");
  };
  const std::string hidden = said("reports", "salaries");
  EXPECT_EQ(said("reports", "no such"), hidden);
  EXPECT_EQ(said("no-such", "flights"), hidden);
  EXPECT_THAT(As("reader")->Run(Departures("")), FailsWith(kDenied, "'reports'"));
  EXPECT_THAT(As("reader", "no-such")->List(), FailsWith(kDenied, "'no-such'"));
  EXPECT_THAT(As("stranger")->List(), FailsWith(kDenied, "'reports'"));
}

TEST_F(ServedRightsTest, ListsShowWhatTheCallerMayRead) {
  ServeCallers();
  using Names = std::vector<std::string>;
  EXPECT_EQ(*As("reader")->List(), Names{"flights"});
  EXPECT_EQ(*As("owner")->List(), Names{"flights"});
  EXPECT_EQ(*As("all")->List(), (Names{"flights", "salaries"}));
  EXPECT_EQ(*As("ops")->List(), (Names{"flights", "salaries"}));
}

TEST_F(ServedRightsTest, ARightOnAReportIsNoneOnItsRowsAndNoneToCreateTheDataset) {
  ServeCallers();
  const auto store = served_->Client({.token = "owner"});
  EXPECT_THAT(store->GetRow("reports", "r", {}), FailsWith(kDenied, "read 'reports'"));
  EXPECT_THAT(store->ScanRows("reports", {}, {}), FailsWith(kDenied, "read 'reports'"));
  EXPECT_OK(As("owner")->Create(Flights("delays")));
  EXPECT_THAT(As("owner", "fresh")->Create(Flights()), FailsWith(kDenied, "administer 'fresh'"));
  EXPECT_FALSE(served_->router().GetDataset("fresh").ok());
  ASSERT_OK(served_->router().CreateDataset({.name = "fresh"}));
  EXPECT_OK(As("owner", "fresh")->Create(Flights()));
}

TEST_F(ServedRightsTest, EachBatchOfAStreamNeedsTheRight) {
  ServeCallers();
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, local_->Info("flights", {"departures"}));
  v1::WritePointsRequest request;
  wire::ToWire(Departure(info, "UA"), {.add = true}, request);
  request.set_dataset("reports");
  const auto stub = Stub();
  const auto open = [&](grpc::ClientContext& context) {
    context.AddMetadata("authorization", "Bearer loader");
    return stub->WritePoints(&context);
  };
  v1::WritePointsResponse response;
  {
    grpc::ClientContext context;
    const auto stream = open(context);
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.written(), 1u);
    v1::WritePointsRequest other = request;
    other.set_report("salaries");
    ASSERT_TRUE(stream->Write(other));
    EXPECT_FALSE(stream->Read(&response)) << "the right was checked for another report";
    EXPECT_EQ(stream->Finish().error_code(), grpc::PERMISSION_DENIED);
  }
  grpc::ClientContext context;
  const auto stream = open(context);
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  auto left = kRights;
  left["loader"] = R"({"reports/flights": "read"})";
  WriteTokens(left);
  ASSERT_TRUE(Eventually([&] {
    return absl::IsPermissionDenied(As("loader")->Delete("flights", {"departures"}, {0, 1}).status());
  }));
  stream->Write(request);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(local_->Run(Departures())->series[0].points[0].second, Number::Integer(2));
  EXPECT_EQ(local_->Run(Departures("salaries"))->series[0].points.size(), 0u);
}

TEST_F(ServedRightsTest, ACallerWithEndlessQueriesLeavesWorkersToOthers) {
  ServerOptions options = TestServerOptions();
  options.limits.report_threads = 2;
  ServeCallers(options);
  const auto stub = Stub();
  {
    std::vector<std::unique_ptr<OpenQuery>> queries;
    for (int i = 0; i < 5; ++i)
      queries.push_back(std::make_unique<OpenQuery>(*stub, RequestOf(Endless()), "reader"));
    ASSERT_TRUE(Eventually([&] { return InFlight("ops") == 6; }));
    EXPECT_OK(As("all")->Run(Departures()));
    // Calls on rows have workers of their own.
    EXPECT_OK(served_->Client({.token = "ops"})->CreateDataset({.name = "rows"}));
  }
  // Those that have waited end as well.
  EXPECT_TRUE(Eventually([&] { return InFlight("ops") == 1; }));
}

}  // namespace
}  // namespace kvstore::reports
