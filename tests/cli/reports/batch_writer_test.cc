#include "cli/reports/batch_writer.h"

#include <gmock/gmock.h>

#include <atomic>
#include <string>

#include "absl/synchronization/notification.h"
#include "tests/cli/reports/recording_reports.h"
#include "tests/support/status_matchers.h"

namespace kvstore::cli {
namespace {

using testing::RecordingReports;

/// A batch with one point, whose value is `number`.
BatchWriter::Task TaskOf(int number) {
  reports::Batch batch(testing::SiteReport());
  const std::optional<std::string_view> segments[] = {"US", std::nullopt};
  EXPECT_OK(batch.Add(0, 0, segments, reports::Number::Integer(number)));
  return {std::move(batch), "id" + std::to_string(number), "in line " + std::to_string(number)};
}

int NumberOf(const reports::Batch& batch) {
  return static_cast<int>(batch.points().front().number.integer());
}

TEST(BatchWriter, OneInFlightKeepsTheOrder) {
  RecordingReports reports(testing::SiteReport());
  {
    BatchWriter writer(reports, true, 1);
    for (int i = 0; i < 100; ++i) ASSERT_OK(writer.Write(TaskOf(i)));
    ASSERT_OK(writer.Finish());
  }
  const auto written = reports.written();
  ASSERT_EQ(written.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(written[i].batch, "id" + std::to_string(i));
    EXPECT_TRUE(written[i].add);
  }
}

TEST(BatchWriter, SeveralAreInFlightTogether) {
  RecordingReports reports(testing::SiteReport());
  std::atomic<int> begun = 0;
  absl::Notification all;
  // No write ends before three have begun.
  reports.before_write = [&](const reports::Batch&) {
    if (++begun == 3) all.Notify();
    all.WaitForNotification();
    return absl::OkStatus();
  };
  BatchWriter writer(reports, false, 3);
  for (int i = 0; i < 3; ++i) ASSERT_OK(writer.Write(TaskOf(i)));
  ASSERT_OK(writer.Finish());
  EXPECT_EQ(reports.written().size(), 3u);
}

TEST(BatchWriter, AFailureNamesItsPlaceAndEndsTheRest) {
  RecordingReports reports(testing::SiteReport());
  reports.before_write = [](const reports::Batch& batch) {
    return NumberOf(batch) == 2 ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  BatchWriter writer(reports, false, 1);
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = writer.Write(TaskOf(i));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(writer.Finish(), status);
  EXPECT_THAT(std::string(status.message()),
              ::testing::StartsWith("stopped at in line 2: gone; give the same"));
  EXPECT_EQ(reports.written().size(), 2u) << "nothing behind the failure was written";
}

TEST(BatchWriter, OfSeveralFailuresTheFirstInTheFileIsTold) {
  RecordingReports reports(testing::SiteReport());
  absl::Notification later_failed;
  reports.before_write = [&](const reports::Batch& batch) -> absl::Status {
    if (NumberOf(batch) == 1) {
      later_failed.Notify();
      return absl::InternalError("later");
    }
    later_failed.WaitForNotification();
    return absl::UnavailableError("earlier");
  };
  BatchWriter writer(reports, false, 2);
  ASSERT_OK(writer.Write(TaskOf(0)));
  ASSERT_OK(writer.Write(TaskOf(1)));
  EXPECT_THAT(std::string(writer.Finish().message()), ::testing::StartsWith("stopped at in line 0: earlier"));
}

TEST(BatchWriter, EndsWithoutFinish) {
  RecordingReports reports(testing::SiteReport());
  BatchWriter writer(reports, false, 2);
  ASSERT_OK(writer.Write(TaskOf(0)));
}

}  // namespace
}  // namespace kvstore::cli
