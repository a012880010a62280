#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/rocksdb/backend.h"
#include "catalog/file_catalog.h"
#include "kvstore_api/call_scope.h"
#include "router/router.h"
#include "server/server.h"
#include "tests/reports/served_reports.h"
#include "tests/reports/watched_rows.h"
#include "tests/support/temp_dir.h"

/// Calls through a server whose client goes away while the server works on rows of the report.
namespace kvstore::reports {
namespace {

using testing::Eventually;

constexpr int64_t kDay = 86'400'000;

class ServedCancelledTest : public testing::ServedReportsTest {
 protected:
  void SetUp() override {
    auto folder = rocks::DataDir::Open(dir_ / "data", /*create=*/true);
    ASSERT_OK(folder);
    auto rocksdb = RocksDbBackend::Open(*std::move(folder), {}, {}, {});
    ASSERT_OK(rocksdb);
    Router::Backends backends;
    backends.emplace("rocksdb",
                     std::make_unique<testing::WatchedBackend>(*std::move(rocksdb), [this] { Watch(); }));
    ASSERT_OK_AND_ASSIGN(router_, Router::Open(std::make_unique<FileCatalog>(dir_ / "catalog.json"),
                                               std::move(backends), "rocksdb"));
    ASSERT_OK_AND_ASSIGN(server_, Server::Start(*router_, testing::TestServerOptions()));
    local_ = LocalReports(*router_, "reports");
    ASSERT_OK_AND_ASSIGN(remote_, client::ConnectReports(server_->addresses().front(), {}, "reports"));
    ASSERT_OK(local_->Create(Flights()));
    ASSERT_OK_AND_ASSIGN(info_, local_->Info("flights", {"departures", "fuel"}));
  }

  /// Adds 1 to a metric for three carriers on each of some days, which lie in a row or more each.
  void Add(size_t metric) {
    for (const char* carrier : {"UA", "AA", "B6"}) {
      Batch batch(info_);
      const std::optional<std::string_view> segments[] = {carrier, std::nullopt};
      for (int64_t day = 0; day < kDays; ++day) {
        ASSERT_OK(batch.Add(metric, day * kDay, segments, Number::Integer(1)));
      }
      ASSERT_OK(local_->Write(batch, {.add = true}));
    }
  }
  void AddDepartures() {
    Add(0);
    departures_ += 3 * kDays;
  }
  void ExpectAllDepartures() {
    ASSERT_OK_AND_ASSIGN(const QueryResult result, local_->Run(Departures()));
    EXPECT_EQ(result.series[0].points[0].second, Number::Integer(departures_));
  }
  static Query Departures() {
    return {.report = "flights", .metrics = {{.name = "departures"}}, .from = 0, .to = kDays * kDay};
  }

  /// Makes a call of the client again and again, and has the client leave it at one access to a row after the
  /// other. The server must notice, and end after no more than `most` other accesses.
  ///
  /// prepare  is called before each time, so that there is something to do.
  void LeaveAtEachAccess(const std::function<absl::Status()>& call, int most,
                         const std::function<void()>& prepare) {
    int left = 0;
    for (int moment = 1;; moment += 1 + moment / 4) {
      SCOPED_TRACE("left at access " + std::to_string(moment));
      prepare();
      accesses_ = noticed_at_ = 0;
      leaves_ = false;
      leaves_at_ = moment;
      absl::Status status;
      {
        const CallScope scope(CallLimits{.cancelled = &leaves_});
        status = call();
      }
      // The server may still be at it when its client has gone.
      ASSERT_TRUE(Eventually([&] { return working_ == 0 && server_->OpenCalls().find("0 calls") == 0; }))
          << server_->OpenCalls();
      leaves_at_ = 0;
      ExpectAllDepartures();
      if (HasFailure()) return;
      if (!leaves_) {
        EXPECT_OK(status);
        break;
      }
      EXPECT_GT(noticed_at_.load(), 0) << "the call went on";
      EXPECT_LE(accesses_.load(), noticed_at_ + most);
      EXPECT_TRUE(absl::IsCancelled(status)) << status;
      ++left;
    }
    EXPECT_GT(left, 3) << "otherwise there was nothing to do";
  }

  static constexpr int64_t kDays = 12;
  const testing::TempDir dir_;
  ReportInfo info_;
  int64_t departures_ = 0;

 private:
  void Watch() {
    const int at = leaves_at_;
    if (at == 0) return;
    ++working_;
    if (++accesses_ == at) {
      leaves_ = true;
      // Other threads of the call go on until it is told.
      if (Eventually([] { return !CheckCall().ok(); })) noticed_at_ = accesses_.load();
    }
    --working_;
  }

  std::atomic<int> leaves_at_{0};  // 0: accesses are not watched
  std::atomic<int> accesses_{0};
  std::atomic<int> working_{0};
  std::atomic<bool> leaves_{false};
  std::atomic<int> noticed_at_{0};  // how many accesses there were when the server knew of it
  std::unique_ptr<Router> router_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServedCancelledTest, AQueryEndsBetweenTwoRows) {
  AddDepartures();
  // Each thread may be at a row, or at the one after it.
  LeaveAtEachAccess([&] { return remote_->Run(Departures()).status(); }, 4, [] {});
}

TEST_F(ServedCancelledTest, ACompactionEndsAndCountsNothingTwice) {
  LeaveAtEachAccess([&] { return remote_->Compact("flights").status(); }, 2, [&] { AddDepartures(); });
  ASSERT_OK(remote_->Compact("flights"));
  ExpectAllDepartures();
}

TEST_F(ServedCancelledTest, MakingRollupsEndsAndNoAnswerIsWrong) {
  ASSERT_OK(local_->Alter("flights",
                          {.rollups = std::vector<Rollup>{{{"carrier"}, 86'400'000}, {{}, 86'400'000}}}));
  LeaveAtEachAccess([&] { return remote_->MakeRollups("flights").status(); }, 2, [&] { AddDepartures(); });
  ASSERT_OK(remote_->MakeRollups("flights"));
  ExpectAllDepartures();
}

TEST_F(ServedCancelledTest, ADeleteEndsAndIsDoneAgain) {
  AddDepartures();
  Add(1);
  LeaveAtEachAccess(
      [&] {
        return remote_->Delete("flights", {"fuel"}, {0, kDays * kDay}).status();
      },
      2, [] {});
  Query fuel = Departures();
  fuel.metrics[0].name = "fuel";
  ASSERT_OK_AND_ASSIGN(const QueryResult result, local_->Run(fuel));
  EXPECT_TRUE(result.series[0].points.empty());
}

}  // namespace
}  // namespace kvstore::reports
