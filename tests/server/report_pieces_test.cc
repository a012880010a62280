#include "server/grpc/report_pieces.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

/// Answers to calls on reports that do not fit into one message.
namespace kvstore::server {
namespace {

/// A message may have somewhat more than a piece, by its last entry.
constexpr size_t kMost = kPieceBytes + (size_t{64} << 10);

std::string Name(int i) { return "name " + std::to_string(1'000'000 + i) + std::string(200, 'x'); }

TEST(ReportPieces, NamesComeInOrder) {
  std::vector<std::string> names;
  for (int i = 0; i < 20'000; ++i) names.push_back(Name(i));
  NamePieces pieces(names);
  std::vector<std::string> received;
  int messages = 0;
  for (v1::ListReportsResponse message; pieces.Fill(message); message.Clear(), ++messages) {
    EXPECT_LT(message.ByteSizeLong(), kMost);
    EXPECT_GT(message.reports_size(), 0);
    received.insert(received.end(), message.reports().begin(), message.reports().end());
  }
  EXPECT_EQ(received, names);
  EXPECT_GT(messages, 3);
  v1::ListReportsResponse message;
  EXPECT_FALSE(NamePieces({}).Fill(message));
}

TEST(ReportPieces, ADescriptionIsWhole) {
  reports::ReportDescription description{
      .info = {.name = "r", .keys = {{"a", std::nullopt}, {"empty", std::nullopt}, {"b", "?"}}}};
  for (int i = 0; i < 12'000; ++i) description.info.metrics.push_back({.name = Name(i)});
  description.segment_values["empty"] = {};
  for (int i = 0; i < 9'000; ++i) {
    description.segment_values["a"].push_back(Name(i));
    if (i < 3) description.segment_values["b"].push_back(std::string(i, 'v'));
  }
  DescriptionPieces pieces(description);
  std::vector<std::string> metrics;
  std::map<std::string, std::vector<std::string>> values;
  int messages = 0;
  for (v1::GetReportResponse message; pieces.Fill(message); message.Clear(), ++messages) {
    EXPECT_LT(message.ByteSizeLong(), kMost);
    EXPECT_EQ(message.report().name(), messages == 0 ? "r" : "");
    for (const auto& metric : message.report().metrics()) metrics.push_back(metric.name());
    for (const auto& one : message.segment_values()) {
      auto& all = values[one.key()];
      all.insert(all.end(), one.values().begin(), one.values().end());
    }
  }
  EXPECT_GT(messages, 3);
  ASSERT_EQ(metrics.size(), 12'000u);
  for (int i = 0; i < 12'000; ++i) EXPECT_EQ(metrics[static_cast<size_t>(i)], Name(i));
  EXPECT_EQ(values["a"], description.segment_values["a"]);
  EXPECT_EQ(values["b"], (std::vector<std::string>{"", "v", "vv"}));
  EXPECT_FALSE(values.contains("empty"));
}

TEST(ReportPieces, AReportWithoutAnythingIsOneMessage) {
  DescriptionPieces pieces({.info = {.name = "r"}});
  v1::GetReportResponse message;
  EXPECT_TRUE(pieces.Fill(message));
  EXPECT_EQ(message.report().name(), "r");
  message.Clear();
  EXPECT_FALSE(pieces.Fill(message));
}

TEST(ReportPieces, AResultEndsWithItsCost) {
  reports::QueryResult result{.missing = {"shard 7"}, .cost = {.rows = 9}};
  for (int i = 0; i < 3'000; ++i) {
    reports::ResultSeries& series = result.series.emplace_back();
    series.metric = Name(i);
    for (int64_t time = 0; time < 200; ++time) series.points.emplace_back(time, reports::Number::Real(0.5));
  }
  ResultPieces pieces(result);
  EXPECT_GT(pieces.memory(), 3'000 * 200 * sizeof(reports::TimeValue));
  int series = 0;
  int ends = 0;
  for (v1::QueryReportResponse message; pieces.Fill(message); message.Clear()) {
    EXPECT_LT(message.ByteSizeLong(), kMost);
    EXPECT_EQ(ends, 0) << "nothing comes behind the end";
    for (const auto& one : message.series()) {
      EXPECT_EQ(one.metric(), Name(series++));
      EXPECT_EQ(one.points().times_size(), 200);
      EXPECT_EQ(one.points().values().reals_size(), 200);
    }
    if (!message.has_end()) continue;
    ++ends;
    EXPECT_EQ(message.end().cost().rows(), 9u);
    EXPECT_EQ(message.end().missing(0), "shard 7");
  }
  EXPECT_EQ(series, 3'000);
  EXPECT_EQ(ends, 1);
  v1::QueryReportResponse empty;
  EXPECT_TRUE(ResultPieces({}).Fill(empty));
  EXPECT_TRUE(empty.has_end());
}

}  // namespace
}  // namespace kvstore::server
