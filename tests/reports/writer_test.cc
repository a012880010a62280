#include "reports/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "kvstore_api/in_doubt.h"
#include "reports/chunk.h"
#include "reports/row_key.h"
#include "reports/row_merge.h"
#include "reports/rows.h"
#include "tests/reports/hex.h"
#include "tests/reports/memory_store.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::Hex;
using kvstore::testing::MemoryStore;
using kvstore::testing::Random;

constexpr int64_t kDay = 86'400'000;
constexpr uint32_t kSalts = 3;

/// A store with a report of two keys and a metric of each kind.
class Written {
 public:
  explicit Written(uint32_t salts = kSalts) {
    store_.page_columns = 1'000;
    auto info =
        metadata_.Create({.name = "r",
                          .settings = {.resolution_ms = 1'000, .period_s = 5 * 86'400, .salts = salts},
                          .keys = {{"country", std::nullopt}, {"app", "?"}},
                          .metrics = {{.name = "clicks"},
                                      {.name = "delay", .kind = MetricKind::kDistribution},
                                      {.name = "who", .kind = MetricKind::kDistinct}}});
    EXPECT_OK(info);
    info_ = *std::move(info);
  }

  const ReportInfo& info() const { return info_; }

  /// Gives IDs to values, in this order.
  void NameValues(uint32_t key, const std::vector<std::string>& values) {
    EXPECT_OK(metadata_.GiveValues("r", key, values));
  }
  void Write(const Batch& batch, const WriteBatchOptions& options = {}) {
    const auto written = TryWrite(batch, options);
    ASSERT_OK(written);
    EXPECT_EQ(*written, batch.size());
  }
  absl::StatusOr<uint64_t> TryWrite(const Batch& batch, const WriteBatchOptions& options) {
    return WriteBatch(metadata_, batch, options);
  }
  void AddKey(const SegmentKey& key) {
    ASSERT_OK(metadata_.AddKey("r", key));
    ASSERT_OK_AND_ASSIGN(info_, metadata_.Get("r", std::vector<std::string>{"clicks"}));
  }
  /// Lets so many rows of points be put from now on, and no more.
  void FailAfter(int rows) {
    store_.before_write = [rows](std::string_view row) mutable {
      if (static_cast<uint8_t>(row[0]) >= kMaxSalts || rows-- > 0) return absl::OkStatus();
      return absl::UnavailableError("away");
    };
  }
  /// Returns the stored value of a batch with an ID.
  std::string StoredBatch(const std::string& batch) {
    const auto row =
        store_.GetRow("reports", BatchesRow(info_.settings.id), {.columns = std::vector<std::string>{batch}});
    EXPECT_OK(row);
    return row->items.at(0).cells.at(0).value;
  }
  /// Whether a value of a key has an ID.
  bool Knows(uint32_t key, const std::string& value) {
    const auto ids = metadata_.FindValues("r", key, std::vector<std::string>{value});
    EXPECT_OK(ids);
    return ids->at(0).has_value();
  }
  /// All rows with their chunks, oldest first. The chunks' names, which are new each time, are left out.
  std::map<RowKey, std::vector<std::string>> Chunks() {
    std::map<RowKey, std::vector<std::string>> chunks;
    for (const StoredRow& row : Rows()) {
      for (const StoredChunk& chunk : row.chunks) chunks[row.key].push_back(chunk.bytes);
    }
    return chunks;
  }
  std::vector<StoredRow> Rows() {
    std::vector<StoredRow> rows;
    for (uint32_t salt = 0; salt < info_.settings.salts; ++salt) {
      const auto take = [&](StoredRow&& row) {
        rows.push_back(std::move(row));
        return absl::OkStatus();
      };
      EXPECT_OK(ScanStoredRows(store_, "reports", ReportRange(static_cast<uint8_t>(salt), info_.settings.id),
                               take));
    }
    return rows;
  }
  /// The points of the first series of a row, as its chunks together say.
  SeriesPoints FirstSeries(const StoredRow& row) {
    SeriesPoints points;
    const auto live = LiveChunks(row);
    EXPECT_OK(live);
    const auto merge = RowMerge::Make(*live, 2, nullptr);
    EXPECT_OK(merge);
    EXPECT_TRUE(*(*merge)->Next());
    EXPECT_OK((*merge)->Read(points));
    return points;
  }

 private:
  MemoryStore store_;
  Metadata metadata_{store_, "reports"};
  ReportInfo info_;
};

struct Point {
  size_t metric = 0;
  int64_t time = 0;
  std::string country;
  std::string app;
  int64_t number = 0;
};

void AddTo(Batch& batch, const Point& point) {
  const std::optional<std::string_view> segments[] = {point.country, point.app};
  const double value = static_cast<double>(point.number);
  const std::string member = std::to_string(point.number);
  if (point.metric == 0) {
    ASSERT_OK(batch.Add(0, point.time, segments, Number::Integer(point.number)));
  } else if (point.metric == 1) {
    ASSERT_OK(batch.AddDistribution(1, point.time, segments, {&value, 1}));
  } else {
    ASSERT_OK(batch.AddDistinct(2, point.time, segments, {&member, 1}));
  }
}

Batch BatchOf(const ReportInfo& info, const std::vector<Point>& points) {
  Batch batch(info);
  for (const Point& point : points) AddTo(batch, point);
  return batch;
}

TEST(Writer, ABatchHasTheseBytes) {
  Written written(/*salts=*/1);
  written.NameValues(0, {"US"});
  written.NameValues(1, {"web", "ios", "android"});
  Batch batch(written.info());
  const std::optional<std::string_view> ios[] = {"US", "ios"};
  const std::optional<std::string_view> android[] = {"US", "android"};
  ASSERT_OK(batch.Add(0, 2 * kDay, android, Number::Real(0.5)));
  ASSERT_OK(batch.Add(0, 2 * kDay, ios, Number::Integer(7)));
  ASSERT_OK(batch.Add(0, kDay, android, Number::Real(0.5)));
  ASSERT_OK(batch.Add(0, kDay, ios, Number::Integer(5)));
  written.Write(batch);
  const auto rows = written.Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key.period_start_s, 0u);
  ASSERT_EQ(rows[0].chunks.size(), 1u);
  // These are the bytes of Chunk.HasTheseBytes, which says what they mean.
  EXPECT_EQ(
      Hex(rows[0].chunks[0].bytes),
      "010055f77b882d010002000000040280b8992980f0b25280b89929003fe00000000000000100000000000000070012010102"
      "02011108040482a0023c8720000000000000f80f");
}

TEST(Writer, TheOrderOfThePointsChangesNoByte) {
  Random random(testing::Seed("order of points"));
  const std::vector<std::string> values = {"a", "b", "c", "d", "e", "f"};
  for (int round = 0; round < 20; ++round) {
    std::map<std::tuple<size_t, std::string, std::string, int64_t>, Point> different;
    for (uint64_t i = 1 + random.Below(400); i > 0; --i) {
      const Point point{.metric = random.Below(3),
                        .time = static_cast<int64_t>(random.Below(20)) * kDay,
                        .country = values[random.Below(6)],
                        .app = values[random.Below(6)],
                        .number = static_cast<int64_t>(random.Below(1'000))};
      different[{point.metric, point.country, point.app, point.time}] = point;
    }
    std::vector<Point> points;
    for (const auto& [place, point] : different) points.push_back(point);
    Written sorted;
    Written shuffled;
    for (Written* const one : {&sorted, &shuffled}) {
      for (const uint32_t key : {0u, 1u}) one->NameValues(key, values);
    }
    sorted.Write(BatchOf(sorted.info(), points));
    for (size_t i = points.size(); i > 1; --i) std::swap(points[i - 1], points[random.Below(i)]);
    shuffled.Write(BatchOf(shuffled.info(), points));
    EXPECT_EQ(sorted.Chunks(), shuffled.Chunks());
  }
}

TEST(Writer, OfPointsWithOneTimeTheLastCounts) {
  const std::vector<Point> points = {{.time = 3 * kDay, .country = "a", .app = "b", .number = 1},
                                     {.time = 0, .country = "a", .app = "b", .number = 2},
                                     {.time = 3 * kDay, .country = "a", .app = "b", .number = 3},
                                     {.time = 0, .country = "a", .app = "b", .number = 4},
                                     {.time = kDay, .country = "a", .app = "b", .number = 5}};
  for (const bool add : {false, true}) {
    Written written;
    written.Write(BatchOf(written.info(), points), {.add = add});
    const auto rows = written.Rows();
    ASSERT_EQ(rows.size(), 1u);
    const SeriesPoints back = written.FirstSeries(rows[0]);
    EXPECT_EQ(back.times, (std::vector<int64_t>{0, kDay, 3 * kDay}));
    const auto numbers = add ? std::array<int64_t, 3>{6, 5, 4} : std::array<int64_t, 3>{4, 5, 3};
    for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(back.numbers[i], Number::Integer(numbers[i]));
  }
}

TEST(Writer, ManyPointsOfARowBecomePartsThatShareNoTime) {
  Written written;
  Batch batch(written.info());
  const std::optional<std::string_view> segments[] = {"a", "b"};
  constexpr int64_t kTimes = 70'000;
  // Each time twice, so that a part which is full after 65,536 points could end between two that are one.
  for (int64_t i = 0; i < kTimes; ++i) {
    for (const int64_t value : {i, i + 1}) {
      ASSERT_OK(batch.Add(0, i * 1'000, segments, Number::Integer(value)));
    }
  }
  written.Write(batch, {.add = true});
  const auto rows = written.Rows();
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].chunks.size(), 2u);
  ASSERT_OK_AND_ASSIGN(const Chunk first, Chunk::Open(rows[0].chunks[0].bytes));
  ASSERT_OK_AND_ASSIGN(const Chunk second, Chunk::Open(rows[0].chunks[1].bytes));
  EXPECT_EQ(first.directory().points, 65'536u);
  EXPECT_LT(first.directory().max_time, second.directory().min_time);
  const SeriesPoints back = written.FirstSeries(rows[0]);
  ASSERT_EQ(back.size(), static_cast<size_t>(kTimes));
  for (int64_t i = 0; i < kTimes; ++i) {
    ASSERT_EQ(back.numbers[static_cast<size_t>(i)], Number::Integer(2 * i + 1)) << i;
  }
}

TEST(Writer, ABatchThatFailsAfterItsFirstRowIsInDoubt) {
  Written written(/*salts=*/1);
  const Batch batch =
      BatchOf(written.info(), {{.time = kDay, .country = "US", .app = "web", .number = 5},
                               {.time = 9 * kDay, .country = "US", .app = "web", .number = 6}});
  const auto fails = [&](const WriteBatchOptions& options) {
    const absl::Status status = written.TryWrite(batch, options).status();
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kUnavailable, "away"));
    return IsInDoubt(status);
  };
  written.FailAfter(0);
  EXPECT_FALSE(fails({.add = true})) << "nothing was written";
  EXPECT_FALSE(fails({.batch = "b", .add = true}));
  written.FailAfter(1);
  EXPECT_TRUE(fails({.batch = "b", .add = true}));
  EXPECT_EQ(written.Chunks().size(), 1u);
  // The next try finds that its first row is there already.
  written.FailAfter(1);
  EXPECT_TRUE(fails({.batch = "b", .add = true}));
  written.FailAfter(2);
  written.Write(batch, {.batch = "b", .add = true});
  EXPECT_EQ(written.Chunks().size(), 2u);
  written.FailAfter(1);
  EXPECT_TRUE(fails({.add = true}));
}

TEST(Writer, ABatchThatIsRepeatedWithOtherPointsIsRefused) {
  Written written;
  const Point point{.time = kDay, .country = "US", .app = "web", .number = 5};
  written.Write(BatchOf(written.info(), {point}), {.batch = "b"});
  const auto chunks = written.Chunks();
  std::vector<std::vector<Point>> others(6, {point});
  others[0][0].number = 7;
  others[1][0].time = 2 * kDay;
  others[2][0].country = "CA";
  others[3][0].app = "?";
  others[4][0].metric = 1;
  others[5].push_back(point);
  const auto is_refused = [&](const std::vector<Point>& points, bool add) {
    EXPECT_THAT(written.TryWrite(BatchOf(written.info(), points), {.batch = "b", .add = add}),
                FailsWith(absl::StatusCode::kFailedPrecondition, "batch 'b'"));
  };
  for (const auto& points : others) is_refused(points, false);
  is_refused({point}, true);
  EXPECT_EQ(written.Chunks(), chunks);
  EXPECT_FALSE(written.Knows(0, "CA")) << "a refused batch gives no IDs";
  written.Write(BatchOf(written.info(), {point}), {.batch = "b"});
  EXPECT_EQ(written.Chunks(), chunks);
}

TEST(Writer, TheOrderOfThePointsMakesNoOtherBatch) {
  Written written;
  std::vector<Point> points;
  for (int64_t i = 0; i < 20; ++i) {
    const std::string country = "c" + std::to_string(i % 3);
    points.push_back({.metric = static_cast<size_t>(i) % 3,
                      .time = i * kDay,
                      .country = country,
                      .app = "a",
                      .number = i});
  }
  // The last of two points with one time counts.
  points.push_back({.time = 30 * kDay, .country = "c0", .app = "a", .number = 1});
  points.push_back({.time = 30 * kDay, .country = "c0", .app = "a", .number = 2});
  written.Write(BatchOf(written.info(), points), {.batch = "b"});
  const auto chunks = written.Chunks();
  std::reverse(points.begin(), points.end() - 2);
  written.Write(BatchOf(written.info(), points), {.batch = "b"});
  EXPECT_EQ(written.Chunks(), chunks);
  std::swap(points.end()[-1], points.end()[-2]);
  EXPECT_THAT(written.TryWrite(BatchOf(written.info(), points), {.batch = "b"}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "batch 'b'"));
}

TEST(Writer, AKeyThatIsAddedMakesNoOtherBatch) {
  Written written;
  written.Write(BatchOf(written.info(), {{.time = kDay, .country = "US", .app = "web", .number = 5}}),
                {.batch = "b", .add = true});
  const auto chunks = written.Chunks();
  written.AddKey({"gender", "unknown"});
  const std::optional<std::string_view> segments[] = {"US", "web", std::nullopt};
  Batch again(written.info());
  ASSERT_OK(again.Add(0, kDay, segments, Number::Integer(5)));
  written.Write(again, {.batch = "b", .add = true});
  EXPECT_EQ(written.Chunks(), chunks);
}

TEST(Writer, WhatIsStoredOfABatchHasTheseBytes) {
  Written written;
  written.Write(BatchOf(written.info(), {{.time = 1'000, .country = "US", .app = "web", .number = 5}}),
                {.batch = "b", .add = true});
  const std::string stored = written.StoredBatch("b");
  ASSERT_EQ(stored.size(), 18u);
  EXPECT_EQ(Hex(stored.substr(10)), "7a85be0f7b45cca6") << "docs/reports-format.md says how it is made";
  const auto rows = written.Rows();
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].chunks.size(), 1u);
  EXPECT_EQ(rows[0].chunks[0].name.substr(6, 10), stored.substr(0, 10));
}

TEST(Batch, ARefusedPointLeavesNothingBehind) {
  const Written written;
  Batch batch(written.info());
  const auto refused = absl::StatusCode::kInvalidArgument;
  const std::optional<std::string_view> good[] = {"US", "web"};
  const std::optional<std::string_view> bad[] = {"CA", "\xFF"};
  const std::optional<std::string_view> incomplete[] = {std::nullopt, "ios"};
  const std::string long_value(kMaxSegmentValueBytes + 1, 'x');
  const std::optional<std::string_view> too_long[] = {"FR", long_value};
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(batch.Add(0, 0, bad, Number::Integer(1)), FailsWith(refused, "'app' must be UTF-8"));
    EXPECT_THAT(batch.Add(0, 0, too_long, Number::Integer(1)), FailsWith(refused, "at most 512 bytes"));
    EXPECT_THAT(batch.Add(0, 0, incomplete, Number::Integer(1)), FailsWith(refused, "'country' is missing"));
    EXPECT_THAT(batch.Add(0, 500, good, Number::Integer(1)), FailsWith(refused, "500 ms is not a multiple"));
    const std::optional<std::string_view> other[] = {"DE", "tv"};
    const double infinite = std::numeric_limits<double>::infinity();
    EXPECT_THAT(batch.AddDistribution(1, 0, other, {&infinite, 1}), FailsWith(refused, "finite"));
    EXPECT_THAT(batch.AddDistribution(1, 0, other, {}), FailsWith(refused, "at least one number"));
    // Once with an empty batch, once after a point that has the same segments.
    ASSERT_OK(batch.Add(0, i * 1'000, good, Number::Integer(1)));
  }
  EXPECT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch.series().size(), 1u);
  EXPECT_EQ(batch.values(0), std::vector<std::string>{"US"});
  EXPECT_EQ(batch.values(1), std::vector<std::string>{"web"});
}

TEST(Batch, ADefaultThatIsNamedIsTheOneThatIsLeftOut) {
  const Written written;
  Batch batch(written.info());
  const std::optional<std::string_view> named[] = {"US", "?"};
  const std::optional<std::string_view> left_out[] = {"US", std::nullopt};
  const std::optional<std::string_view> other[] = {"US", "web"};
  const std::string member = "one";
  ASSERT_OK(batch.Add(0, 0, named, Number::Integer(1)));
  ASSERT_OK(batch.Add(0, 1'000, left_out, Number::Integer(1)));
  ASSERT_OK(batch.Add(0, 0, other, Number::Integer(1)));
  ASSERT_OK(batch.Add(0, 2'000, left_out, Number::Integer(1)));
  ASSERT_OK(batch.AddDistinct(2, 2'000, left_out, {&member, 1}));
  std::vector<uint32_t> series;
  for (const Batch::Point& point : batch.points()) series.push_back(point.series);
  EXPECT_EQ(series, (std::vector<uint32_t>{0, 0, 1, 0, 2})) << "another metric is another series";
}

TEST(Batch, PointsOfASeriesThatWasFoundAreThoseThatNameIt) {
  const Written written;
  Batch batch(written.info());
  const std::optional<std::string_view> us[] = {"US", std::nullopt};
  const std::optional<std::string_view> ca[] = {"CA", "web"};
  const std::optional<std::string_view> incomplete[] = {std::nullopt, "web"};
  ASSERT_OK_AND_ASSIGN(const uint32_t first, batch.FindSeries(0, us));
  ASSERT_OK(batch.AddTo(first, 1'000, Number::Integer(1)));
  ASSERT_OK(batch.Add(0, 2'000, ca, Number::Integer(2)));
  ASSERT_OK_AND_ASSIGN(const uint32_t again, batch.FindSeries(0, us));
  EXPECT_EQ(again, first);
  ASSERT_OK(batch.AddTo(again, 3'000, Number::Real(0.5)));
  ASSERT_OK_AND_ASSIGN(const uint32_t delays, batch.FindSeries(1, us));
  const auto refused = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(batch.AddTo(delays, 0, Number::Integer(1)),
              FailsWith(refused, "'delay' is of kind distribution"));
  EXPECT_THAT(batch.AddTo(first, 500, Number::Integer(1)), FailsWith(refused, "500 ms is not a multiple"));
  EXPECT_THAT(batch.AddTo(first, -1'000, Number::Integer(1)), FailsWith(refused, "from 1970 to 9999"));
  EXPECT_THAT(batch.AddTo(first, 0, Number::Real(std::numeric_limits<double>::infinity())),
              FailsWith(refused, "finite"));
  EXPECT_THAT(batch.FindSeries(0, incomplete), FailsWith(refused, "'country' is missing"));
  EXPECT_THAT(batch.FindSeries(0, {us, 1}), FailsWith(refused, "1 values for 2 keys"));
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch.points()[0].series, batch.points()[2].series);
  EXPECT_EQ(batch.points()[2].time, 3'000);
  EXPECT_EQ(batch.points()[2].number, Number::Real(0.5));
}

}  // namespace
}  // namespace kvstore::reports
