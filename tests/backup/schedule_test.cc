#include "backup/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>

#include "backup/layout.h"
#include "tests/backup/fake_store.h"
#include "tests/support/eventually.h"

/// When a server makes backups, and what it says of them.
namespace kvstore {
namespace {

using backup::Schedule;
using backup::ScheduleOptions;
using testing::BackupTest;
using testing::Eventually;
using ::testing::HasSubstr;

/// The metrics of a schedule.
struct Metrics : MetricsSink {
  void Gauge(std::string_view name, std::string_view, const Labels&, double value) override {
    values.emplace(name, value);
  }
  void Counter(std::string_view name, std::string_view, const Labels&, double value) override {
    values.emplace(name, value);
  }
  std::map<std::string, double> values;
};

class BackupSchedule : public BackupTest {
 protected:
  std::unique_ptr<Schedule> Start(Schedule::Opener open, ScheduleOptions options) {
    options.log = [this](bool is_problem, const std::string& line) {
      const std::lock_guard lock(mutex_);
      (is_problem ? problems_ : lines_) += line + "\n";
    };
    return std::make_unique<Schedule>(
        [this](BlobStore& blobs, const Progress& progress) {
          return backup::CreateBackup(store_.CheckpointsIn(dir_.path()), blobs, progress);
        },
        std::move(open), std::move(options));
  }
  Schedule::Opener Opener() {
    return [url = "file:" + (dir_ / "blobs").string()] { return OpenBlobStore(url); };
  }
  static std::map<std::string, double> MetricsOf(const Schedule& schedule) {
    Metrics metrics;
    schedule.Describe(metrics);
    return metrics.values;
  }

  std::mutex mutex_;
  std::string lines_;     // guarded by mutex_
  std::string problems_;  // the same
};

TEST_F(BackupSchedule, TheFirstBackupIsMadeAtOnceAndTheNextWhenItIsDue) {
  {
    const auto schedule = Start(Opener(), {.every_ms = 3'600'000});
    ASSERT_TRUE(Eventually([&] { return schedule->figures().backups == 1; }));
    auto metrics = MetricsOf(*schedule);
    EXPECT_EQ(metrics.at("kvstore_backups_total"), 1);
    EXPECT_EQ(metrics.at("kvstore_backup_failing"), 0);
    EXPECT_LT(metrics.at("kvstore_backup_age_seconds"), 600);
    EXPECT_GT(metrics.at("kvstore_backup_sent_bytes_total"), 3000);
  }
  EXPECT_THAT(lines_, HasSubstr("were sent"));
  {
    // After a restart: the backup of before counts.
    const auto schedule = Start(Opener(), {.every_ms = 3'600'000});
    ASSERT_TRUE(Eventually([&] { return schedule->figures().last_good_ms != 0; }));
    EXPECT_EQ(schedule->figures().backups, 0u);
  }
  ShiftWallClock(3'600'000);
  const auto schedule = Start(Opener(), {.every_ms = 3'600'000});
  EXPECT_TRUE(Eventually([&] { return schedule->figures().backups == 1; }));
  EXPECT_EQ(Live().size(), 2u);
}

TEST_F(BackupSchedule, ItPrunes) {
  ShiftWallClock(-20 * 3'600'000);
  MustCreate();
  ShiftWallClock(-10 * 3'600'000);
  const backup::Manifest second = MustCreate();
  ShiftWallClock(0);
  const auto schedule = Start(Opener(), {.every_ms = 3'600'000, .keep = 2});
  ASSERT_TRUE(Eventually([&] { return schedule->figures().backups == 1 && Live().size() == 2; }));
  EXPECT_EQ(Live().front(), second.id);
}

TEST_F(BackupSchedule, ABackupOfAClockThatWasAheadDelaysNothing) {
  ShiftWallClock(int64_t{24 * 365} * 3'600'000);
  const backup::Manifest ahead = MustCreate();
  ShiftWallClock(0);
  const auto schedule = Start(Opener(), {.every_ms = 3'600'000, .keep = 1});
  ASSERT_TRUE(Eventually([&] { return schedule->figures().backups == 1 && Live().size() == 1; }));
  // The one that is kept is the new one.
  EXPECT_GT(Live().front(), ahead.id);
  EXPECT_LT(schedule->figures().last_good_ms, ahead.began_ms);
}

TEST_F(BackupSchedule, APruneThatFailsIsNotAFailedBackup) {
  ShiftWallClock(-2 * 3'600'000);
  const backup::Manifest old = MustCreate();
  ShiftWallClock(0);
  ASSERT_OK(blobs_->Put(backup::ManifestBlob(old.id), "damaged", PutMode::kReplace));
  const auto schedule = Start(Opener(), {.every_ms = 3'600'000, .keep = 5});
  ASSERT_TRUE(Eventually([&] { return schedule->figures().prune_failures == 1; }));
  auto metrics = MetricsOf(*schedule);
  EXPECT_EQ(metrics.at("kvstore_backups_total"), 1);
  EXPECT_EQ(metrics.at("kvstore_backup_failing"), 0);
  EXPECT_EQ(metrics.at("kvstore_backup_failures_total"), 0);
  EXPECT_EQ(metrics.at("kvstore_backup_prune_failing"), 1);
  ASSERT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex_);
    return problems_.find("old ones could not be pruned: DATA_LOSS") != std::string::npos;
  }));
}

TEST_F(BackupSchedule, AFailureIsSaidAndTriedAgain) {
  std::atomic<bool> is_away{true};
  const auto schedule = Start(
      [&]() -> absl::StatusOr<std::unique_ptr<BlobStore>> {
        if (is_away) return absl::UnavailableError("status 503");
        return Opener()();
      },
      {.every_ms = 3'600'000, .retry_ms = 1});
  ASSERT_TRUE(Eventually([&] { return schedule->figures().failures > 1; }));
  EXPECT_EQ(MetricsOf(*schedule).at("kvstore_backup_failing"), 1);
  {
    const std::lock_guard lock(mutex_);
    EXPECT_THAT(problems_, HasSubstr("the backup has failed: UNAVAILABLE: status 503; no good one is known"));
  }
  is_away = false;
  ASSERT_TRUE(Eventually([&] { return schedule->figures().backups == 1; }));
  EXPECT_EQ(MetricsOf(*schedule).at("kvstore_backup_failing"), 0);
}

TEST_F(BackupSchedule, ABackupThatIsAskedForDoesNotWaitForOneThatIsBeingMade) {
  std::atomic<bool> reached{false};
  std::atomic<bool> go_on{false};
  SetFailPointHook([&](std::string_view point) {
    if (point != "backup-manifest" || reached.exchange(true)) return;
    EXPECT_TRUE(Eventually([&] { return go_on.load(); }));
  });
  const auto schedule = Start(Opener(), {.every_ms = 3'600'000});
  ASSERT_TRUE(Eventually([&] { return reached.load(); }));
  EXPECT_THAT(schedule->MakeNow(*blobs_, nullptr, Schedule::WhenBusy::kRefuse),
              testing::FailsWith(absl::StatusCode::kFailedPrecondition, "a backup is being made already"));
  go_on = true;
  EXPECT_OK(schedule->MakeNow(*blobs_, nullptr, Schedule::WhenBusy::kWait));
  EXPECT_EQ(Live().size(), 2u);
  EXPECT_OK(schedule->MakeNow(*blobs_, nullptr, Schedule::WhenBusy::kRefuse));
}

TEST_F(BackupSchedule, ItEndsInTheMiddleOfABackup) {
  std::atomic<bool> reached{false};
  std::unique_ptr<Schedule> schedule;
  SetFailPointHook([&](std::string_view point) {
    if (point == "backup-object") reached = true;
  });
  for (int i = 0; i < 200; ++i) store_.PutTable(100 + i, "table " + std::to_string(i));
  schedule = Start(Opener(), {.every_ms = 3'600'000});
  ASSERT_TRUE(Eventually([&] { return reached.load(); }));
  schedule.reset();
  // It was stopped, or it had just ended; a part of a backup is none.
  for (const std::string& id : Live()) {
    ASSERT_OK_AND_ASSIGN(const auto manifest, backup::ReadManifest(*blobs_, id));
    EXPECT_EQ(Restored(manifest), store_.files());
  }
}

}  // namespace
}  // namespace kvstore
