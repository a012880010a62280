#include "reports/metadata.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "reports/expression.h"
#include "tests/reports/memory_store.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::MemoryStore;
using ::testing::ElementsAre;

class MetadataTest : public ::testing::Test {
 protected:
  ReportInfo Flights() {
    return {.name = "flights",
            .settings = {.resolution_ms = 3'600'000, .period_s = 86'400 * 30, .salts = 4},
            .keys = {{"carrier", std::nullopt}, {"origin", "?"}},
            .metrics = {{.name = "departures"}, {.name = "delay", .kind = MetricKind::kDistribution}}};
  }
  std::string Cell(const std::string& row, const std::string& column) {
    auto page = store_.GetRow("reports", row, {.columns = std::vector<std::string>{column}});
    return page.ok() && page->items.size() == 1 ? page->items[0].cells[0].value : "(none)";
  }

  MemoryStore store_;
  Metadata metadata_{store_, "reports"};
};

TEST_F(MetadataTest, HasTheseColumns) {
  ASSERT_OK(metadata_.Create(Flights()));
  const std::string row = "\xFFrflights";
  EXPECT_EQ(Cell(row, "info"),
            R"({"format":1,"id":1,"period_s":2592000,"resolution_ms":3600000,"retention_ms":0,"salts":4})");
  EXPECT_EQ(Cell(row, "key/0"), R"({"name":"carrier"})");
  EXPECT_EQ(Cell(row, "key/1"), R"({"default":"?","name":"origin"})");
  EXPECT_EQ(Cell(row, "metric/delay"), R"({"id":1,"kind":"distribution"})");
  EXPECT_EQ(Cell(row, "value/1/0"), "?");
  EXPECT_EQ(Cell(row, "id/1/?"), "0");
  EXPECT_EQ(Cell(row, "next/metric"), "2");
  ASSERT_OK(metadata_.GiveValues("flights", 0, std::vector<std::string>{"UA", "AA", "UA"}));
  EXPECT_EQ(Cell(row, "value/0/1"), "UA");
  EXPECT_EQ(Cell(row, "id/0/AA"), "2");
  EXPECT_EQ(Cell(row, "next/value/0"), "3");
}

TEST_F(MetadataTest, AReportIsThereOnce) {
  ASSERT_OK(metadata_.Create(Flights()));
  EXPECT_THAT(metadata_.Create(Flights()), FailsWith(absl::StatusCode::kAlreadyExists, "'flights'"));
  EXPECT_THAT(metadata_.Get("other", {}), FailsWith(absl::StatusCode::kNotFound, "'other'"));
  EXPECT_THAT(*metadata_.List(), ElementsAre("flights"));
  ReportInfo second = Flights();
  second.name = "a second";
  ASSERT_OK_AND_ASSIGN(const ReportInfo created, metadata_.Create(second));
  EXPECT_EQ(created.settings.id, 2u);
  EXPECT_THAT(*metadata_.List(), ElementsAre("a second", "flights"));
  ASSERT_OK(metadata_.Remove(created));
  EXPECT_THAT(*metadata_.List(), ElementsAre("flights"));
  ASSERT_OK_AND_ASSIGN(const ReportInfo again, metadata_.Create(second));
  EXPECT_EQ(again.settings.id, 3u) << "IDs are never used again";
}

TEST_F(MetadataTest, WithoutADatasetThereAreNoReports) {
  EXPECT_THAT(*metadata_.List(), ElementsAre());
  EXPECT_THAT(metadata_.Get("flights", {}), FailsWith(absl::StatusCode::kNotFound, "no report"));
}

TEST_F(MetadataTest, RefusesWhatCannotBe) {
  const auto fails = [&](ReportInfo info, const char* text) {
    EXPECT_THAT(metadata_.Create(info), FailsWith(absl::StatusCode::kInvalidArgument, text));
  };
  ReportInfo info = Flights();
  info.name = "";
  fails(info, "report: a name");
  info = Flights();
  info.name = "a\nb";
  fails(info, "control characters");
  info = Flights();
  info.keys[1].name = "carrier";
  fails(info, "named twice");
  info = Flights();
  info.settings.salts = 65;
  fails(info, "salts: must be 1 to 64");
  info = Flights();
  info.settings.period_s = 3'601;
  fails(info, "multiple of the resolution");
  // These could not be decoded any more once they are stored. A period of 2^61 s is 0 ms, because the
  // multiplication overflows.
  info = Flights();
  info.settings.resolution_ms = UINT64_MAX;
  fails(info, "resolution: must be");
  info = Flights();
  info.settings.period_s = uint64_t{1} << 61;
  fails(info, "period: must be");
  info = Flights();
  info.settings.retention_ms = UINT64_MAX;
  fails(info, "retention: must be");
  info = Flights();
  info.metrics.push_back({.name = "delay"});
  fails(info, "'delay' is named with two kinds");
  EXPECT_THAT(*metadata_.List(), ElementsAre());
}

TEST_F(MetadataTest, ARetentionThatWouldNotDecodeIsRefused) {
  ASSERT_OK(metadata_.Create(Flights()));
  EXPECT_THAT(metadata_.SetRetention("flights", UINT64_MAX),
              FailsWith(absl::StatusCode::kInvalidArgument, "retention: must be"));
  EXPECT_OK(metadata_.Get("flights", {}));
}

TEST_F(MetadataTest, NothingIsGivenForAReportThatIsGone) {
  const Metric late{.name = "late"};
  const std::vector<std::string> values = {"AA", "UA"};
  const auto refused = [&] {
    EXPECT_THAT(metadata_.GiveValues("flights", 0, values),
                FailsWith(absl::StatusCode::kNotFound, "'flights'"));
    EXPECT_THAT(metadata_.AddMetrics("flights", {&late, 1}),
                FailsWith(absl::StatusCode::kNotFound, "'flights'"));
  };
  ReportInfo without_metrics = Flights();
  without_metrics.metrics.clear();
  ASSERT_OK_AND_ASSIGN(const ReportInfo first, metadata_.Create(without_metrics));
  ASSERT_OK(metadata_.AddMetrics("flights", {&late, 1}));
  ASSERT_OK(metadata_.Remove(first));
  refused();
  ASSERT_OK(metadata_.Create(Flights()));
  ASSERT_OK_AND_ASSIGN(const ReportInfo all, metadata_.GetAll("flights"));
  EXPECT_EQ(all.metrics.size(), 2u) << "nothing is left of what was tried";
  ASSERT_OK_AND_ASSIGN(const auto ids, metadata_.GiveValues("flights", 0, values));
  EXPECT_THAT(ids, ElementsAre(1u, 2u));
}

TEST_F(MetadataTest, ReadsWhatWasAskedForAndNoMore) {
  ReportInfo info = Flights();
  info.metrics.clear();
  for (int i = 0; i < 2'000; ++i) info.metrics.push_back({.name = "metric " + std::to_string(i)});
  store_.page_columns = 1'000;
  ASSERT_OK(metadata_.Create(info));
  store_.ResetCounts();
  const std::vector<std::string> wanted = {"metric 7", "metric 1999", "no such"};
  ASSERT_OK_AND_ASSIGN(const ReportInfo got, metadata_.Get("flights", wanted));
  EXPECT_EQ(got.metrics.size(), 2u);
  EXPECT_EQ(got.keys, info.keys);
  EXPECT_EQ(store_.counts().rows_read, 1u);
  EXPECT_LT(store_.counts().bytes_read, 500u);
  ASSERT_OK_AND_ASSIGN(const ReportInfo all, metadata_.GetAll("flights"));
  EXPECT_EQ(all.metrics.size(), 2'000u);
}

TEST_F(MetadataTest, LoadersThatRaceAgreeOnAllIds) {
  ASSERT_OK(metadata_.Create(Flights()));
  constexpr int kLoaders = 4;
  std::vector<std::vector<uint32_t>> ids(kLoaders);
  std::vector<std::thread> loaders;
  std::vector<std::string> values;
  for (int i = 0; i < 300; ++i) values.push_back("value " + std::to_string(i));
  for (int loader = 0; loader < kLoaders; ++loader) {
    loaders.emplace_back([&, loader] {
      for (const std::string& value : values) {
        const auto given = metadata_.GiveValues("flights", 0, std::vector<std::string>{value});
        if (given.ok()) ids[static_cast<size_t>(loader)].push_back(given->front());
        const Metric metric{.name = value};
        EXPECT_OK(metadata_.AddMetrics("flights", {&metric, 1}));
      }
    });
  }
  for (std::thread& loader : loaders) loader.join();
  for (const auto& of_loader : ids) EXPECT_EQ(of_loader, ids.front());
  std::vector<uint32_t> sorted = ids.front();
  std::sort(sorted.begin(), sorted.end());
  ASSERT_EQ(sorted.size(), 300u);
  for (uint32_t i = 0; i < 300; ++i) EXPECT_EQ(sorted[i], i + 1) << "each ID is given once, without gaps";
  ASSERT_OK_AND_ASSIGN(const ReportInfo all, metadata_.GetAll("flights"));
  EXPECT_EQ(all.metrics.size(), 302u);
  ASSERT_OK_AND_ASSIGN(const auto names, metadata_.AllValues("flights", 0));
  EXPECT_EQ(names.size(), 300u);
}

TEST_F(MetadataTest, KeysAreAddedWithADefault) {
  ASSERT_OK(metadata_.Create(Flights()));
  EXPECT_THAT(metadata_.AddKey("flights", {"dest", std::nullopt}),
              FailsWith(absl::StatusCode::kInvalidArgument, "needs a default"));
  EXPECT_THAT(metadata_.AddKey("flights", {"origin", "?"}),
              FailsWith(absl::StatusCode::kAlreadyExists, "origin"));
  ASSERT_OK(metadata_.AddKey("flights", {"dest", "none"}));
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, metadata_.Get("flights", {}));
  EXPECT_EQ(info.KeyNumber("dest"), 2u);
  for (int i = 3; i < 16; ++i) ASSERT_OK(metadata_.AddKey("flights", {"key " + std::to_string(i), ""}));
  EXPECT_THAT(metadata_.AddKey("flights", {"one more", ""}),
              FailsWith(absl::StatusCode::kResourceExhausted, "16 segment keys"));
}

TEST_F(MetadataTest, RollupsComeWithTheReport) {
  constexpr uint64_t kHour = 3'600'000;
  ASSERT_OK(metadata_.Create(Flights()));
  const std::string row = "\xFFrflights";
  EXPECT_EQ(Cell(row, "rollups"), R"({"next":1,"rollups":[]})");
  const Rollup daily{.keys = {"origin", "carrier"}, .step_ms = 24 * kHour};
  const Rollup total{.keys = {}, .step_ms = kHour};
  ASSERT_OK(metadata_.SetRollups("flights", {daily, total}));
  EXPECT_EQ(
      Cell(row, "rollups"),
      R"({"next":3,"rollups":[{"id":1,"keys":[0,1],"step_ms":86400000},{"id":2,"keys":[],"step_ms":3600000}]})");
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, metadata_.Get("flights", {}));
  ASSERT_EQ(info.rollups.size(), 2u);
  EXPECT_EQ(info.rollups[0], (Rollup{.keys = {"carrier", "origin"}, .step_ms = 24 * kHour, .id = 1}));
  EXPECT_EQ(info.rollups[1], (Rollup{.keys = {}, .step_ms = kHour, .id = 2}));
  // The same again, in another order: nothing changes.
  ASSERT_OK(metadata_.SetRollups("flights", {total, daily}));
  EXPECT_EQ(metadata_.Get("flights", {})->rollups, info.rollups);
  // One that was removed is another one when it comes back.
  ASSERT_OK(metadata_.SetRollups("flights", {total}));
  EXPECT_EQ(metadata_.Get("flights", {})->rollups.size(), 1u);
  ASSERT_OK(metadata_.SetRollups("flights", {daily, total}));
  EXPECT_EQ(metadata_.Get("flights", {})->rollups[0].id, 2u);
  EXPECT_EQ(metadata_.Get("flights", {})->rollups[1].id, 3u);
  // Keys that are added later.
  ASSERT_OK(metadata_.AddKey("flights", {"dest", "none"}));
  ASSERT_OK(metadata_.SetRollups("flights", {{.keys = {"dest"}, .step_ms = kHour}}));
  EXPECT_EQ(metadata_.GetAll("flights")->rollups[0].keys, std::vector<std::string>{"dest"});
  // Nor does a report have those of another one of its name.
  ASSERT_OK(metadata_.Remove(*metadata_.Get("flights", {})));
  EXPECT_THAT(metadata_.SetRollups("flights", {total}), FailsWith(absl::StatusCode::kNotFound, "flights"));
  const CellWrite cell{"rollups", R"({"next":9,"rollups":[{"id":8,"keys":[],"step_ms":3600000}]})",
                       std::nullopt};
  ASSERT_OK(store_.PutRow("reports", row, {&cell, 1}, {}));
  ReportInfo again = Flights();
  again.rollups = {daily};
  ASSERT_OK_AND_ASSIGN(again, metadata_.Create(again));
  ASSERT_EQ(again.rollups.size(), 1u);
  EXPECT_EQ(again.rollups[0].keys, (std::vector<std::string>{"carrier", "origin"}));
}

TEST_F(MetadataTest, RollupsThatCannotBeAreRefused) {
  constexpr uint64_t kHour = 3'600'000;
  ASSERT_OK(metadata_.Create(Flights()));
  const auto fails = [&](const std::vector<Rollup>& rollups, const char* text) {
    EXPECT_THAT(metadata_.SetRollups("flights", rollups),
                FailsWith(absl::StatusCode::kInvalidArgument, text));
  };
  fails({{.keys = {"dest"}, .step_ms = kHour}}, "rollups: report 'flights' has no segment key 'dest'");
  fails({{.keys = {"origin", "origin"}, .step_ms = kHour}}, "names a segment key twice");
  fails({{.step_ms = 0}},
        "multiple of the report's resolution of 1h that divides its period of 30d; 0d is not");
  fails({{.step_ms = kHour / 2}}, "30m is not");
  fails({{.step_ms = 7 * kHour}}, "7h is not");
  fails({{.step_ms = 60 * 24 * kHour}}, "60d is not");
  fails({{.keys = {"origin"}, .step_ms = kHour}, {.keys = {"origin"}, .step_ms = kHour}}, "two roll-ups");
  fails(std::vector<Rollup>(17, {.step_ms = kHour}), "17 roll-ups, the limit is 16");
  ReportInfo fine = Flights();
  fine.name = "fine";
  fine.settings.resolution_ms = 1;
  ASSERT_OK(metadata_.Create(fine));
  EXPECT_THAT(metadata_.SetRollups("fine", {{.step_ms = 1'000}}),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "makes 2592000 steps of a period of 30d, the limit is 100000"));
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, metadata_.Get("flights", {}));
  EXPECT_TRUE(info.rollups.empty());
  for (const char* text :
       {"", "{}", "[]", R"({"next":1,"rollups":[{"id":0,"keys":[],"step_ms":1}]})",
        R"({"next":1,"rollups":[{"id":1,"keys":[16],"step_ms":1}]})", R"({"next":1,"rollups":[7]})"}) {
    const CellWrite cell{"rollups", text, std::nullopt};
    ASSERT_OK(store_.PutRow("reports", "\xFFrflights", {&cell, 1}, {}));
    EXPECT_THAT(metadata_.Get("flights", {}), FailsWith(absl::StatusCode::kDataLoss, "roll-ups")) << text;
  }
}

TEST_F(MetadataTest, OfTwoWhoDeclareRollupsEachHasItsOwnIds) {
  ASSERT_OK(metadata_.Create(Flights()));
  bool first = true;
  store_.before_write = [&](std::string_view) {
    if (std::exchange(first, false)) {
      EXPECT_OK(metadata_.SetRollups("flights", {{.step_ms = 3'600'000}}));
    }
    return absl::OkStatus();
  };
  ASSERT_OK(metadata_.SetRollups("flights", {{.step_ms = 7'200'000}}));
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, metadata_.Get("flights", {}));
  ASSERT_EQ(info.rollups.size(), 1u);
  EXPECT_EQ(info.rollups[0], (Rollup{.step_ms = 7'200'000, .id = 2})) << "1 was the other's";
}

TEST_F(MetadataTest, AMetricKeepsItsKind) {
  ASSERT_OK(metadata_.Create(Flights()));
  const Metric same{.name = "delay", .kind = MetricKind::kDistribution};
  EXPECT_OK(metadata_.AddMetrics("flights", {&same, 1}));
  const Metric other{.name = "delay", .kind = MetricKind::kValue};
  EXPECT_THAT(metadata_.AddMetrics("flights", {&other, 1}),
              FailsWith(absl::StatusCode::kAlreadyExists, "'distribution'"));
}

TEST_F(MetadataTest, MetricsAreListedByTheBeginningOfTheirNames) {
  ReportInfo info = Flights();
  info.metrics = {{.name = "click"},      {.name = "clicks"}, {.name = "clicks/app"},
                  {.name = "clicks/web"}, {.name = "cost"},   {.name = "z\xC3\xBF"}};
  ASSERT_OK(metadata_.Create(info));
  const auto list = [&](const MetricListing& range) {
    const auto page = metadata_.ListMetrics("flights", range);
    EXPECT_OK(page);
    std::string names;
    for (const Metric& metric : page->metrics) names += metric.name + " ";
    return names + (page->more ? "..." : "");
  };
  EXPECT_EQ(list({}), "click clicks clicks/app clicks/web cost z\xC3\xBF ");
  EXPECT_EQ(list({.limit = 6}), "click clicks clicks/app clicks/web cost z\xC3\xBF ");
  EXPECT_EQ(list({.prefix = "clicks"}), "clicks clicks/app clicks/web ");
  EXPECT_EQ(list({.prefix = "clicks", .limit = 1}), "clicks ...");
  EXPECT_EQ(list({.prefix = "clicks", .after = "click"}), "clicks clicks/app clicks/web ");
  EXPECT_EQ(list({.prefix = "clicks", .after = "clicks", .limit = 1}), "clicks/app ...");
  EXPECT_EQ(list({.prefix = "clicks", .after = "clicks/app", .limit = 1}), "clicks/web ");
  EXPECT_EQ(list({.prefix = "clicks", .after = "d"}), "");
  EXPECT_EQ(list({.prefix = "metric"}), "");
  EXPECT_EQ(list({.after = "cost"}), "z\xC3\xBF ");
  // Page by page, each metric comes once.
  std::string names;
  MetricListing range{.limit = 2};
  while (true) {
    const auto page = metadata_.ListMetrics("flights", range);
    ASSERT_OK(page);
    for (const Metric& metric : page->metrics) names += metric.name + " ";
    if (!page->more) break;
    range.after = page->metrics.back().name;
  }
  EXPECT_EQ(names, "click clicks clicks/app clicks/web cost z\xC3\xBF ");
}

TEST_F(MetadataTest, AListOfMetricsReadsItsPageAlone) {
  ASSERT_OK(metadata_.Create(Flights()));
  std::vector<std::string> values;
  std::vector<Metric> metrics;
  for (int i = 0; i < 1'000; ++i) {
    values.push_back("value " + std::to_string(i));
    metrics.push_back({.name = "m" + std::to_string(10'000 + i)});
  }
  ASSERT_OK(metadata_.GiveValues("flights", 0, values));
  ASSERT_OK(metadata_.AddMetrics("flights", metrics));
  store_.page_columns = 100;
  store_.ResetCounts();
  const auto page = metadata_.ListMetrics("flights", {.prefix = "m10", .after = "m10499", .limit = 5});
  ASSERT_OK(page);
  EXPECT_EQ(page->metrics.front().name, "m10500");
  EXPECT_EQ(page->metrics.size(), 5u);
  EXPECT_LT(store_.counts().bytes_read, 10'000u);
}

TEST_F(MetadataTest, ARangeOfMetricsThatCannotBeIsRefused) {
  ASSERT_OK(metadata_.Create(Flights()));
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(metadata_.ListMetrics("flights", {.limit = 0}), FailsWith(invalid, "limit: must be 1 to 5000"));
  EXPECT_THAT(metadata_.ListMetrics("flights", {.limit = 5'001}), FailsWith(invalid, "limit"));
  EXPECT_THAT(metadata_.ListMetrics("flights", {.prefix = std::string(513, 'x')}),
              FailsWith(invalid, "prefix: has 513 bytes, the limit is 512"));
  EXPECT_THAT(metadata_.ListMetrics("flights", {.after = std::string(513, 'x')}),
              FailsWith(invalid, "after"));
  EXPECT_THAT(metadata_.ListMetrics("other", {}), FailsWith(absl::StatusCode::kNotFound, "'other'"));
}

TEST_F(MetadataTest, DamageIsToldAndNotSkipped) {
  ASSERT_OK(metadata_.Create(Flights()));
  for (const char* text : {"", "{}", "{\"format\":2}", "[]", "\xFF"}) {
    const CellWrite cell{"info", text, std::nullopt};
    ASSERT_OK(store_.PutRow("reports", "\xFFrflights", {&cell, 1}, {}));
    EXPECT_THAT(metadata_.Get("flights", {}), FailsWith(absl::StatusCode::kDataLoss, "settings")) << text;
  }
}

TEST(Expression, IsArithmetic) {
  const auto evaluate = [](const char* text, std::vector<std::optional<Number>> values) {
    auto expression = Expression::Parse(text);
    EXPECT_OK(expression);
    values.resize(expression->metrics().size());
    auto result = expression->Evaluate(values);
    EXPECT_OK(result);
    return *result;
  };
  const Number two = Number::Integer(2);
  const Number three = Number::Integer(3);
  EXPECT_EQ(evaluate("1 + 2 * 3", {}), Number::Integer(7));
  EXPECT_EQ(evaluate("(1 + 2) * -3", {}), Number::Integer(-9));
  EXPECT_EQ(evaluate("7 - 2 - 1", {}), Number::Integer(4));
  EXPECT_EQ(evaluate("a / b", {three, two}), Number::Real(1.5));
  EXPECT_EQ(evaluate("a.b:c_1 + `odd - name`", {three, two}), Number::Integer(5));
  EXPECT_EQ(evaluate("a * a", {three}), Number::Integer(9));
  EXPECT_EQ(evaluate("0.5 * a", {three}), Number::Real(1.5));
  EXPECT_EQ(evaluate("a / (b - b)", {three, two}), std::nullopt) << "zero does not divide";
  EXPECT_EQ(evaluate("a + b", {three, std::nullopt}), std::nullopt) << "b is missing";
}

TEST(Expression, IntegersAreExactUpToTheLeast) {
  const auto value = [](const char* text) {
    const auto expression = Expression::Parse(text);
    EXPECT_OK(expression) << text;
    return **expression->Evaluate({});
  };
  const Number least = Number::Integer(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(value("-9223372036854775808"), least);
  EXPECT_EQ(value("- 9223372036854775808 + 0"), least);
  EXPECT_EQ(value("9223372036854775807"), Number::Integer(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(value("3 - 2"), Number::Integer(1));
  EXPECT_EQ(value("3 - -2 * 2"), Number::Integer(7));
  EXPECT_EQ(value("-1.5"), Number::Real(-1.5));
  EXPECT_EQ(value("-.5e1"), Number::Real(-5));
  EXPECT_EQ(value("9223372036854775808.0"), Number::Real(9223372036854775808.0));
  EXPECT_EQ(value("1e20"), Number::Real(1e20));
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "18446744073709551616"}) {
    EXPECT_THAT(Expression::Parse(text),
                FailsWith(absl::StatusCode::kInvalidArgument, "an integer of 64 bits, or a real number"))
        << text;
  }
}

TEST(Expression, WrongOnesAreRefusedWithThePlace) {
  for (const char* text : {"", "a +", "a b", "(a", "a)", "`a", "``", "1..2", "a // b", "$", "*a"}) {
    EXPECT_THAT(Expression::Parse(text),
                FailsWith(absl::StatusCode::kInvalidArgument, "expected at character"))
        << text;
  }
  EXPECT_THAT(Expression::Parse(std::string("a\0)", 3)),
              FailsWith(absl::StatusCode::kInvalidArgument, "an operator is expected at character 2"));
  EXPECT_THAT(Expression::Parse(std::string(200, '(')),
              FailsWith(absl::StatusCode::kInvalidArgument, "parentheses"));
  EXPECT_THAT(Expression::Parse(std::string(900, '-')),
              FailsWith(absl::StatusCode::kInvalidArgument, "signs"));
  const auto overflow = Expression::Parse("9223372036854775807 + 1");
  EXPECT_THAT(overflow->Evaluate({}), FailsWith(absl::StatusCode::kFailedPrecondition, "64-bit"));
}

}  // namespace
}  // namespace kvstore::reports
