#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reports/metadata.h"
#include "reports/row_key.h"
#include "reports/rows.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/clicks_report.h"
#include "tests/reports/memory_store.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

/// The report of clicks, whose points are all in one row: a salt, and periods of a day. The clock of its
/// store begins in 1970 and stands still unless a test advances it.
class ReportFixture : public ::testing::Test {
 protected:
  static constexpr int64_t kDayMs = 86'400'000;

  void SetUp() override {
    store_.page_columns = 1'000;
    ASSERT_OK_AND_ASSIGN(info_, metadata_.Create(ClicksReport()));
  }

  /// Writes the one point of the tests, or adds to it.
  void Write(int64_t value, bool add, const std::string& batch_id = "") {
    reports::Batch batch(info_);
    const std::optional<std::string_view> segments[] = {"US"};
    ASSERT_OK(batch.Add(0, 5'000, segments, reports::Number::Integer(value)));
    ASSERT_OK(reports::WriteBatch(metadata_, batch, {.batch = batch_id, .add = add}));
  }
  absl::StatusOr<reports::QueryResult> Ask() {
    return reports::RunQuery(metadata_,
                             {.report = "r", .metrics = {{.name = "clicks"}}, .from = 0, .to = kDayMs});
  }
  /// The sum of all points; -1 if there are none.
  int64_t Sum() {
    const auto result = Ask();
    EXPECT_OK(result);
    if (!result.ok() || result->series[0].points.empty()) return -1;
    return result->series[0].points[0].second.integer();
  }
  /// The key of the row of the points.
  std::string Row() const { return reports::EncodeRowKey(Key()); }
  reports::StoredRow Stored() {
    auto row = reports::ReadStoredRow(store_, "reports", Key());
    EXPECT_OK(row);
    return row.ok() ? *std::move(row) : reports::StoredRow{};
  }
  reports::RowKey Key() const { return {0, info_.settings.id, info_.metrics[0].id, 0}; }

  MemoryStore store_;
  reports::Metadata metadata_{store_, "reports"};
  reports::ReportInfo info_;
};

}  // namespace kvstore::testing
