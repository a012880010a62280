#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/json.h"
#include "json_api/execute.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/open.h"
#include "tests/reports/served_reports.h"
#include "tests/support/random.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_dir.h"

/// Reports through a real server say what they say in process.
namespace kvstore::reports {
namespace {

using testing::Eventually;
using testing::FailsWith;
using testing::OpenQuery;
using testing::Random;
using testing::Rounds;
using testing::Seed;
using testing::ServedReportsTest;

class ServedTest : public ServedReportsTest {
 protected:
  static void AddRandomPoint(Random& random, Batch& batch) {
    const std::string carrier = "c" + std::to_string(random.Below(5));
    const std::string origin = "Flughafen Zürich " + std::to_string(random.Below(3));
    std::vector<std::optional<std::string_view>> segments = {carrier, origin};
    if (random.OneIn(4)) segments[1] = std::nullopt;
    segments.resize(batch.info().keys.size());
    const int64_t time = static_cast<int64_t>(random.Below(24 * 10)) * kHour;
    switch (const size_t metric = random.Below(4)) {
      case 0: {
        // Beyond what a double holds.
        constexpr int64_t kLarge = int64_t{1} << 56;
        const auto value = static_cast<int64_t>(random.Below(1'000)) - 300 + (random.OneIn(3) ? kLarge : 0);
        EXPECT_OK(batch.Add(metric, time, segments, Number::Integer(value)));
        break;
      }
      case 1:
        EXPECT_OK(batch.AddDistribution(metric, time, segments,
                                        std::vector<double>{static_cast<double>(random.Below(90)) / 7, -1}));
        break;
      case 2:
        EXPECT_OK(batch.AddDistinct(metric, time, segments,
                                    std::vector<std::string>{std::to_string(random.Below(50))}));
        break;
      default:
        EXPECT_OK(batch.Add(metric, time, segments,
                            random.OneIn(2) ? Number::Real(static_cast<double>(random.Below(999)) / 8)
                                            : Number::Integer(static_cast<int64_t>(random.Below(99)))));
    }
  }

  static Query RandomQuery(Random& random) {
    static const std::vector<std::string> kNames = {"departures", "delay", "planes", "fuel", "none"};
    static const std::vector<std::string> kFunctions = {"sum",  "count", "avg",   "min",     "max",
                                                        "last", "p50",   "p99.9", "distinct"};
    static const std::vector<std::string> kSteps = {"1h", "6h", "1d", "2w", "1mo"};
    static const std::vector<std::string> kKeys = {"carrier", "origin", "none"};
    Query query{.report = random.OneIn(30) ? "no such" : "flights"};
    query.metrics.push_back({.name = kNames[random.Below(random.OneIn(10) ? 5 : 4)]});
    if (random.OneIn(3)) query.metrics.push_back({.name = "ratio", .expression = "fuel / departures"});
    query.from = static_cast<int64_t>(random.Below(24 * 10)) * kHour;
    query.to = query.from + static_cast<int64_t>(random.Below(24 * 8)) * kHour;
    if (random.OneIn(2)) query.step = *ParseStep(kSteps[random.Below(kSteps.size())]);
    query.zone = *LoadZone(random.OneIn(2) ? "Europe/Berlin" : "UTC");
    for (uint64_t i = random.Below(3); i > 0; --i) {
      QueryFilter& filter = query.filters.emplace_back(QueryFilter{.name = "f" + std::to_string(i)});
      auto& values = filter.where[kKeys[random.Below(random.OneIn(15) ? 3 : 2)]];
      if (random.OneIn(4)) continue;
      values.emplace();
      for (uint64_t value = random.Below(3); value > 0; --value)
        values->push_back("c" + std::to_string(random.Below(6)));
    }
    for (uint64_t i = random.Below(3); i > 0; --i) query.group_by.push_back(kKeys[i - 1]);
    query.function = *ParseFunction("function", kFunctions[random.Below(kFunctions.size())]);
    if (random.OneIn(3)) query.top = {.n = 1 + random.Below(4), .by = query.function};
    query.fill = static_cast<Fill>(random.Below(3));
    if (random.OneIn(3)) query.compare_step = *ParseStep("1d");
    query.explain = random.OneIn(2);
    return query;
  }

  /// Asks in process and through the server. Returns whether there was an answer.
  bool Compare(const Query& query) {
    const auto expected = local_->Run(query);
    const auto answer = remote_->Run(query);
    EXPECT_EQ(answer.status(), absl::Status(expected.status().code(), expected.status().message()));
    if (!expected.ok() || !answer.ok()) return false;
    EXPECT_EQ(answer->series.size(), expected->series.size());
    for (size_t i = 0; i < std::min(answer->series.size(), expected->series.size()); ++i) {
      const ResultSeries& a = answer->series[i];
      const ResultSeries& b = expected->series[i];
      EXPECT_EQ(a.metric, b.metric);
      EXPECT_EQ(a.filter, b.filter);
      EXPECT_EQ(a.segments, b.segments);
      EXPECT_EQ(a.points, b.points);
      EXPECT_EQ(a.compared, b.compared);
    }
    EXPECT_EQ(answer->missing, expected->missing);
    const auto figures = [](const QueryCost& cost) {
      return std::vector<uint64_t>{cost.rows, cost.chunks, cost.chunks_skipped, cost.bytes,
                                   cost.from_rollups};
    };
    EXPECT_EQ(figures(answer->cost), figures(expected->cost));
    EXPECT_EQ(answer->parts.size(), expected->parts.size());
    for (size_t i = 0; i < std::min(answer->parts.size(), expected->parts.size()); ++i) {
      EXPECT_EQ(answer->parts[i].metric, expected->parts[i].metric);
      EXPECT_EQ(answer->parts[i].salt, expected->parts[i].salt);
      EXPECT_EQ(figures(answer->parts[i].cost), figures(expected->parts[i].cost));
    }
    return true;
  }
  void CompareMany(Random& random) {
    uint64_t answered = 0;
    for (uint64_t i = 0; i < Rounds("KV_TEST_OPERATIONS", 150) && !HasFailure(); ++i)
      answered += Compare(RandomQuery(random)) ? 1 : 0;
    EXPECT_GT(answered, 0u);
  }
  void CompareDescriptions() {
    for (const std::optional<std::vector<std::string>>& metrics :
         {std::optional<std::vector<std::string>>(),
          std::optional<std::vector<std::string>>({"fuel", "none"})}) {
      ASSERT_OK_AND_ASSIGN(const ReportDescription expected, local_->Describe("flights", metrics));
      ASSERT_OK_AND_ASSIGN(const ReportDescription answer, remote_->Describe("flights", metrics));
      EXPECT_EQ(answer.info.name, expected.info.name);
      EXPECT_EQ(answer.info.settings, expected.info.settings);
      EXPECT_EQ(answer.info.keys, expected.info.keys);
      EXPECT_EQ(answer.info.metrics, expected.info.metrics);
      EXPECT_EQ(answer.info.rollups, expected.info.rollups);
      EXPECT_EQ(answer.segment_values, expected.segment_values);
    }
    for (const MetricListing& range : {MetricListing{}, MetricListing{.prefix = "de", .limit = 1},
                                       MetricListing{.prefix = "de", .after = "delay"}}) {
      ASSERT_OK_AND_ASSIGN(const MetricPage expected, local_->ListMetrics("flights", range));
      ASSERT_OK_AND_ASSIGN(const MetricPage answer, remote_->ListMetrics("flights", range));
      EXPECT_EQ(answer.metrics, expected.metrics);
      EXPECT_EQ(answer.more, expected.more);
    }
  }
};

TEST_F(ServedTest, MetricsAreListedInPages) {
  ServeFlights();
  ASSERT_OK_AND_ASSIGN(const MetricPage page, remote_->ListMetrics("flights", {.prefix = "de", .limit = 1}));
  ASSERT_EQ(page.metrics.size(), 1u);
  EXPECT_EQ(page.metrics[0].name, "delay");
  EXPECT_EQ(page.metrics[0].kind, MetricKind::kDistribution);
  EXPECT_TRUE(page.more);
  for (const size_t limit : {size_t{0}, size_t{5'001}, SIZE_MAX}) {
    EXPECT_THAT(remote_->ListMetrics("flights", {.limit = limit}),
                FailsWith(absl::StatusCode::kInvalidArgument, "limit: must be 1 to 5000"));
  }
  EXPECT_THAT(remote_->ListMetrics("none", {}), FailsWith(absl::StatusCode::kNotFound, "'none'"));
}

TEST_F(ServedTest, APageOfARowMayBeginBehindAColumn) {
  Serve();
  const auto store = served_->Client();
  ASSERT_OK(store->CreateDataset({.name = "rows"}));
  std::vector<CellWrite> cells;
  for (const char* column : {"a", "c", "e"}) cells.push_back({column, "v", std::nullopt});
  ASSERT_OK(store->PutRow("rows", "r", cells, {}));
  const ReadOptions options{.limit = 1, .after_column = "b"};
  ASSERT_OK_AND_ASSIGN(const Row first, store->GetRow("rows", "r", options));
  ASSERT_EQ(first.items.size(), 1u);
  EXPECT_EQ(first.items[0].column, "c");
  ReadOptions next = options;
  next.marker = first.marker;
  ASSERT_OK_AND_ASSIGN(const Row second, store->GetRow("rows", "r", next));
  ASSERT_EQ(second.items.size(), 1u);
  EXPECT_EQ(second.items[0].column, "e");
  const std::vector<RowRead> reads = {{"r", {}}, {"r", options}};
  ASSERT_OK_AND_ASSIGN(const auto rows, store->GetRows("rows", reads));
  ASSERT_OK(rows[0]);
  ASSERT_OK(rows[1]);
  EXPECT_EQ(rows[0]->items.size(), 3u);
  EXPECT_EQ(rows[1]->items, first.items);
}

TEST_F(ServedTest, RandomQueriesAreAnsweredAsInProcess) {
  ServeFlights();
  Random random(Seed("served reports"));
  ASSERT_OK_AND_ASSIGN(const ReportInfo info,
                       remote_->Info("flights", {"departures", "delay", "planes", "fuel"}));
  for (int round = 0; round < 8; ++round) {
    Batch batch(info);
    for (int i = 0; i < 60; ++i) AddRandomPoint(random, batch);
    Reports& reports = round % 2 == 0 ? *remote_ : *local_;
    const WriteBatchOptions options{.batch = random.OneIn(2) ? "" : std::to_string(round),
                                    .add = random.OneIn(3)};
    ASSERT_OK_AND_ASSIGN(const uint64_t written, reports.Write(batch, options));
    EXPECT_EQ(written, 60u);
  }
  CompareDescriptions();
  CompareMany(random);
  // The same after everything that can be done to a report was done through the server.
  ASSERT_OK(remote_->Alter("flights", {.add_key = SegmentKey{"dest", "?"},
                                       .add_metrics = {{.name = "seats"}},
                                       .rollups = std::vector<Rollup>{{{"carrier"}, 86'400'000}}}));
  ASSERT_OK(remote_->MakeRollups("flights"));
  CompareDescriptions();
  CompareMany(random);
  ASSERT_OK_AND_ASSIGN(const uint64_t rows, remote_->Delete("flights", {"departures"}, {0, 30 * kHour}));
  EXPECT_GT(rows, 0u);
  ASSERT_OK_AND_ASSIGN(const CompactionResult compacted, remote_->Compact("flights"));
  EXPECT_GT(compacted.chunks_merged, 0u);
  CompareMany(random);
}

TEST_F(ServedTest, ReportsAreCreatedListedAndDropped) {
  ServeFlights();
  EXPECT_THAT(remote_->Create(Flights()), FailsWith(absl::StatusCode::kAlreadyExists, "'flights'"));
  EXPECT_THAT(remote_->Create(Flights("")), FailsWith(absl::StatusCode::kInvalidArgument, "report"));
  for (const char* name : {"Zürich", "a/b", "\"quoted\""}) ASSERT_OK(remote_->Create(Flights(name)));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, remote_->List());
  EXPECT_EQ(names, *local_->List());
  EXPECT_EQ(names.size(), 4u);
  ASSERT_OK(remote_->Drop("a/b"));
  EXPECT_THAT(remote_->Drop("a/b"), FailsWith(absl::StatusCode::kNotFound, "'a/b'"));
  EXPECT_EQ(remote_->List()->size(), 3u);
  const auto elsewhere = Remote({}, "another");
  EXPECT_TRUE(elsewhere->List()->empty()) << "a dataset that is not there yet has no reports";
  EXPECT_THAT(elsewhere->Run(Departures()), FailsWith(absl::StatusCode::kNotFound, "'flights'"));
}

TEST_F(ServedTest, AnswersOfManyMessagesAreWhole) {
  ServeFlights();
  std::vector<Metric> metrics;
  for (int i = 0; i < 30'000; ++i)
    metrics.push_back(
        {.name = "a metric with a long name so that there is much to send " + std::to_string(i)});
  ASSERT_OK(local_->Alter("flights", {.add_metrics = metrics}));
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, local_->Info("flights", {"departures"}));
  Batch batch(info);
  for (int i = 0; i < 20'000; ++i) {
    const std::string carrier = "a carrier with a long name, too, number " + std::to_string(i);
    const std::optional<std::string_view> segments[] = {carrier, std::nullopt};
    ASSERT_OK(batch.Add(0, kHour, segments, Number::Integer(i)));
  }
  ASSERT_OK(remote_->Write(batch, {}));
  CompareDescriptions();
  Query query = Departures();
  query.group_by = {"carrier"};
  EXPECT_TRUE(Compare(query));
}

TEST_F(ServedTest, ABatchHappensOnce) {
  ServeFlights();
  testing::TcpProxy proxy(served_->port());
  ASSERT_OK_AND_ASSIGN(const auto reports, client::ConnectReports(proxy.address(), {}, "reports"));
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, reports->Info("flights", {"departures"}));
  const auto total = [&] { return remote_->Run(Departures())->series[0].points[0].second; };
  // Under its own ID it can be written again by anybody, ...
  for (int i = 0; i < 3; ++i)
    ASSERT_OK(remote_->Write(Departure(info, "UA", 5), {.batch = "b", .add = true}));
  EXPECT_EQ(total(), Number::Integer(5));
  // ... and without one the client retries it when the answer was lost.
  for (int i = 1; i <= 3; ++i) {
    const std::string carrier = "lost answer " + std::to_string(i);
    proxy.CutAtAnswerTo(carrier);
    ASSERT_OK(reports->Write(Departure(info, carrier, 10), {.add = true}));
    ASSERT_TRUE(Eventually([&] { return proxy.HasCut(); }));
    EXPECT_EQ(total(), Number::Integer(5 + 10 * i));
  }
  // Two writes without an ID are two.
  for (int i = 0; i < 2; ++i) ASSERT_OK(remote_->Write(Departure(info, "UA", 100), {.add = true}));
  EXPECT_EQ(total(), Number::Integer(235));
}

TEST_F(ServedTest, ABatchThatIsTooLargeIsRefusedWithTheLimit) {
  ServeFlights();
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, remote_->Info("flights", {"departures"}));
  Batch batch(info);
  const std::optional<std::string_view> segments[] = {"UA", std::nullopt};
  for (int64_t i = 0; i < 100'000; ++i) ASSERT_OK(batch.Add(0, i * kHour, segments, Number::Integer(1)));
  ASSERT_OK_AND_ASSIGN(const uint64_t written, remote_->Write(batch, {}));
  EXPECT_EQ(written, 100'000u);
  ASSERT_OK(batch.Add(0, 0, segments, Number::Integer(1)));
  EXPECT_THAT(remote_->Write(batch, {}),
              FailsWith(absl::StatusCode::kInvalidArgument, "a server takes 100000"));
}

TEST_F(ServedTest, AStreamOfBatchesGoesOnBehindABadOne) {
  ServeFlights();
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, remote_->Info("flights", {"departures"}));
  v1::WritePointsRequest good;
  wire::ToWire(Departure(info, "UA"), {}, good);
  good.set_dataset("reports");
  v1::WritePointsRequest bad = good;
  bad.set_metrics(0, "no such");
  const auto stub = Stub();
  grpc::ClientContext context;
  const auto stream = stub->WritePoints(&context);
  // All are sent before an answer is read, as a loader does that waits for no round trip.
  for (const v1::WritePointsRequest* request : {&good, &bad, &good}) ASSERT_TRUE(stream->Write(*request));
  v1::WritePointsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.written(), 1u);
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_NE(response.error().message().find("'no such'"), std::string::npos) << response.error().message();
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_FALSE(response.has_error());
  EXPECT_EQ(response.written(), 1u);
  good.set_dataset("another");
  ASSERT_TRUE(stream->Write(good));
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::INVALID_ARGUMENT) << end.error_message();
  EXPECT_NE(end.error_message().find("dataset"), std::string::npos);
}

TEST_F(ServedTest, BytesToTheClientDoNotGrowWithThePoints) {
  ServeFlights();
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, remote_->Info("flights", {"departures"}));
  const auto load = [&](int64_t hours) {
    Batch batch(info);
    for (const char* carrier : {"UA", "AA", "B6"}) {
      const std::optional<std::string_view> segments[] = {carrier, std::nullopt};
      for (int64_t day = 0; day < 10; ++day) {
        for (int64_t hour = 0; hour < hours; ++hour) {
          ASSERT_OK(batch.Add(0, (day * 24 + hour) * kHour, segments, Number::Integer(1)));
        }
      }
    }
    ASSERT_OK(remote_->Write(batch, {}));
  };
  Query query = Departures();
  query.to = 10 * 24 * kHour;
  query.step = *ParseStep("1d");
  query.group_by = {"carrier"};
  const auto bytes_of_answer = [&](int64_t hours) {
    const std::string sent =
        R"(kvstore_response_bytes_total{backend="rocksdb",door="grpc",operation="QueryReport"})";
    const double before = std::max(served_->Metric(sent), 0.0);
    const auto answer = remote_->Run(query);
    EXPECT_OK(answer);
    EXPECT_EQ(answer->series.size(), 3u);
    for (const ResultSeries& series : answer->series) {
      EXPECT_EQ(series.points.size(), 10u);
      for (const auto& [time, value] : series.points) EXPECT_EQ(value, Number::Integer(hours));
    }
    return served_->Metric(sent) - before;
  };
  load(1);
  const double few = bytes_of_answer(1);
  EXPECT_GT(few, 100);
  load(24);
  EXPECT_NEAR(bytes_of_answer(24), few, 32) << "the figures of the cost are greater, and nothing else";
}

TEST_F(ServedTest, AQueryEndsWhenItsClientIsGone) {
  ServeFlights();
  const auto stub = Stub();
  OpenQuery query(*stub, RequestOf(Endless()));
  ASSERT_TRUE(Eventually([&] { return InFlight() == 2; })) << "the query, and the call that asks";
  EXPECT_EQ(query.Cancel().error_code(), grpc::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return InFlight() == 1; }));
}

TEST_F(ServedTest, AQueryEndsWithItsDeadline) {
  ServeFlights();
  {
    const CallScope scope(std::chrono::milliseconds(300));
    EXPECT_THAT(remote_->Run(Endless()), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  }
  EXPECT_TRUE(Eventually([&] { return InFlight() == 1; }));
}

TEST_F(ServedTest, TheLimitsOfAQueryAreTheServers) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.query_bytes = size_t{1} << 20;
  ServeFlights(options);
  Query query = Departures();
  query.step = *ParseStep("1h");
  query.fill = Fill::kZero;
  query.filters.assign(1'000, {});
  EXPECT_OK(local_->Run(query));
  EXPECT_THAT(remote_->Run(query), FailsWith(absl::StatusCode::kResourceExhausted, "1048576 bytes"));
  query.limits.max_memory_bytes = 1'000;
  query.filters.resize(5);
  EXPECT_THAT(remote_->Run(query), FailsWith(absl::StatusCode::kResourceExhausted, "more than 1000 bytes"))
      << "the client's own limit is one of what it takes";
}

// ---- JSON lines ----

/// An answer without what depends on the machine and the moment.
Json Comparable(const std::string& answer) {
  Json json = Json::parse(answer);
  for (const char* field : {"bytes_before", "bytes_after", "bytes_written"}) json.erase(field);
  if (json.contains("cost")) json["cost"].erase("ms");
  if (!json.contains("parts")) return json;
  for (Json& part : json["parts"]) part.erase("ms");
  return json;
}

const std::vector<const char*> kLines = {
    R"({"op":"list_reports"})",
    R"({"op":"create_report","report":"flights","segment_keys":["carrier",{"name":"origin","default":"?"}],
        "metrics":["departures",{"name":"delay","kind":"distribution"},{"name":"planes","kind":"distinct"}],
        "resolution":"1h","period":"30d","salts":4,"id":7})",
    R"({"op":"create_report","report":"flights"})",
    R"({"op":"write_points","report":"flights","batch":"2013-01","points":[
        {"metric":"departures","time":"2013-01-01T05:00:00Z","segments":{"carrier":"UA","origin":"EWR"},"value":3},
        {"metric":"departures","time":"2013-01-02","segments":{"carrier":"AA"},"value":"9007199254740993"},
        {"metric":"delay","time":"2013-01-01T05:00:00Z","segments":{"carrier":"UA"},"values":[4,-2,11.5]},
        {"metric":"planes","time":"2013-01-01T05:00:00Z","segments":{"carrier":"UA"},"values":["N14228","N24211"]}]})",
    R"({"op":"write_points","report":"flights","points":[
        {"metric":"departures","time":"2013-01-01T05:30:00Z","segments":{"carrier":"UA"},"value":3}]})",
    R"({"op":"query_report","report":"flights","metrics":["departures",{"name":"half","expression":"departures / 2"}],
        "from":"2013-01-01","to":"2013-02-01","step":"1d","timezone":"Europe/Berlin",
        "filters":[{"name":"all"},{"name":"united","where":{"carrier":["UA"],"origin":"*"}}],"group_by":["carrier"],
        "function":"max","top":{"n":5,"by":"max"},"fill":"previous","compare_to":"-1d","explain":true})",
    R"({"op":"query_report","report":"flights","metrics":["delay"],"from":"2013-01-01","to":"2013-02-01","function":"p50"})",
    R"({"op":"query_report","report":"flights","metrics":["delay"],"from":"2013-01-01","to":"2013-02-01","function":"sum"})",
    R"({"op":"query_report","report":"flights","metrics":["planes"],"from":0,"to":1,"function":"no such"})",
    R"({"op":"alter_report","report":"flights","add_segment_key":{"name":"dest","default":"-"},"add_metrics":["seats"],
        "rollups":[{"keys":["carrier"],"step":"1d"}]})",
    R"({"op":"make_rollups","report":"flights"})",
    R"({"op":"report_info","report":"flights"})",
    R"({"op":"report_info","report":"flights","metrics":["seats","none"]})",
    R"({"op":"delete_points","report":"flights","metrics":["departures"],"from":"2013-01-02","to":"2013-01-03"})",
    R"({"op":"delete_points","report":"flights","metrics":["none"],"from":0,"to":1})",
    R"({"op":"compact_report","report":"flights"})",
    R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-01","to":"2013-02-01"})",
    R"({"op":"list_reports","dataset":"reports"})",
    R"({"op":"list_reports","dataset":"nothing"})",
    R"({"op":"drop_report","report":"flights","why":"not"})",
    R"({"op":"drop_report","report":"flights"})",
    R"({"op":"report_info","report":"flights"})",
    R"({"op":"no_such_report"})",
};

TEST_F(ServedTest, JsonLinesAreAnsweredAsInProcess) {
  Serve();
  const auto client = served_->Client();
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto embedded, Open({.data = dir / "store"}));
  const auto execute = [](KVStore& store, const char* line) {
    const auto reports_of = [&store](const std::string& dataset) {
      return client::OpenReports(store, dataset);
    };
    return Comparable(json_api::Execute(store, reports_of, line));
  };
  size_t good = 0;
  for (const char* line : kLines) {
    const Json expected = execute(*embedded, line);
    EXPECT_EQ(execute(*client, line), expected) << line;
    good += expected["ok"] == true ? 1 : 0;
  }
  EXPECT_EQ(good, kLines.size() - 8) << "mistakes in the lines would compare errors alone";
  EXPECT_EQ(
      served_->Metric(R"(kvstore_call_seconds_count{backend="rocksdb",door="grpc",operation="QueryReport"})"),
      4)
      << "the server was asked, and not for rows";
}

}  // namespace
}  // namespace kvstore::reports
