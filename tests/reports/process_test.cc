#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/reports.h"
#include "reports/reports.h"
#include "tests/hostile/connection.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// `kv serve` as a process, which maintains reports while it serves them.
namespace kvstore::reports {
namespace {

using testing::Eventually;
using testing::KvServer;
using testing::TempDir;

constexpr int64_t kDay = 86'400'000;

class ServedProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string config = (dir_ / "kv.json").string();
    std::ofstream(config) << R"({"data": ")" << (dir_ / "store").string()
                          << R"(", "server": {"reports": {"maintain_ms": 20, "share": 100, "quiet_ms": 0}}})";
    server_ = std::make_unique<KvServer>(KV_PROGRAM, std::vector<std::string>{"--config", config});
    reports_ = *client::ConnectReports(server_->address(), {}, "reports");
    ASSERT_OK(reports_->Create({.name = "flights",
                                .settings = {.period_s = 864'000, .salts = 1},
                                .keys = {{.name = "carrier"}},
                                .metrics = {{.name = "departures"}}}));
    ASSERT_OK(
        reports_->Alter("flights", {.rollups = std::vector<Rollup>{{.keys = {"carrier"}, .step_ms = kDay}}}));
  }

  /// Writes a batch of its own for each point, which makes a chunk of each.
  void Write(int points) {
    ASSERT_OK_AND_ASSIGN(const ReportInfo info, reports_->Info("flights", {"departures"}));
    const std::vector<std::optional<std::string_view>> united = {"UA"};
    for (int i = 0; i < points; ++i, ++written_) {
      Batch batch(info);
      ASSERT_OK(batch.Add(0, written_ * 1000, united, Number::Integer(1)));
      ASSERT_OK(reports_->Write(batch, {}));
    }
  }
  /// The answer for the first ten days, which are one row.
  QueryResult Ask() {
    auto answer = reports_->Run({.report = "flights",
                                 .metrics = {{.name = "departures"}},
                                 .from = 0,
                                 .to = 10 * kDay,
                                 .step = Step{Step::Unit::kDays, 1},
                                 .group_by = {"carrier"}});
    EXPECT_OK(answer);
    return answer.ok() ? *std::move(answer) : QueryResult();
  }
  int64_t Sum() {
    const QueryResult answer = Ask();
    return answer.series.empty() ? 0 : answer.series[0].points.at(0).second.integer();
  }
  /// A figure of the server; 0 if there is none.
  double Metric(const std::string& figure) const {
    const std::string address = server_->http();
    const std::string text = testing::HttpGet(
        static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))), "/metrics");
    const std::string name = "\n" + figure + " ";
    const size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size()));
  }

  const TempDir dir_;
  std::unique_ptr<KvServer> server_;
  std::unique_ptr<Reports> reports_;
  int64_t written_ = 0;
};

TEST_F(ServedProcess, MaintainsReportsWhileItServes) {
  // Rows are merged that have eight chunks, and more are written meanwhile.
  ASSERT_TRUE(Eventually([&] {
    Write(10);
    EXPECT_EQ(Sum(), written_);
    return Metric("kvstore_report_chunks_merged_total") >= 8;
  }));
  // Roll-ups are made when nothing is written any more, and answer queries then.
  ASSERT_TRUE(Eventually([&] {
    const QueryResult answer = Ask();
    return answer.cost.from_rollups == 1 && answer.cost.rows == 1;
  }));
  EXPECT_GE(Metric("kvstore_report_rollups_made_total"), 1);
  EXPECT_EQ(Metric("kvstore_report_errors_total"), 0);
  EXPECT_EQ(Sum(), written_);
  // A late point is in the next answer, whatever the roll-ups say.
  Write(1);
  EXPECT_EQ(Sum(), written_);
}

TEST_F(ServedProcess, StopsAtAnyTimeAndLosesNothing) {
  for (int round = 0; round < 3; ++round) {
    Write(30);
    EXPECT_EQ(server_->Stop(), 0);
    server_->Start();
    ASSERT_TRUE(Eventually([&] { return reports_->List().ok(); }));
    EXPECT_EQ(Sum(), written_);
  }
  EXPECT_EQ(server_->Stop(), 0);
}

}  // namespace
}  // namespace kvstore::reports
