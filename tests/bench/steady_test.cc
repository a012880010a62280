#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "bench/rows/steady_bench.h"
#include "bench/rows/steady_page.h"
#include "tests/support/temp_dir.h"

/// Runs `kv bench steady` for as short a time as possible, and checks that it counts and reports everything
/// that it did.
namespace kvstore::bench {
namespace {

SteadyOptions Short(const testing::TempDir& dir) {
  return {.dir = dir.path().string(),
          .workloads = "AD",
          .minutes = 0.02,
          .records = 1000,
          .cache_bytes = uint64_t{8} << 20,
          .threads = 2,
          .share = 0.2,
          .top_s = 0.1,
          .compact_ms = 50,
          .ttl_ms = 100};
}

std::string Read(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Steady, TellsOfEachWorkloadWhatItsCallsMet) {
  const testing::TempDir dir;
  std::vector<std::string> told;
  const auto report =
      BenchSteady(Short(dir), [&](const SteadyReport&, const std::string& what) { told.push_back(what); });
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->workloads.size(), 2u);
  EXPECT_FALSE(told.empty());
  for (const SteadyWorkload& workload : report->workloads) {
    EXPECT_GT(workload.top_s, 0);
    EXPECT_DOUBLE_EQ(workload.rate, workload.top_s * 0.2);
    ASSERT_EQ(workload.minutes.size(), 1u);
    const SteadyMinute& minute = workload.minutes.front();
    EXPECT_GT(minute.calls_s, 0);
    EXPECT_GT(minute.us.p50, 0);
    EXPECT_GE(minute.us.max, minute.us.p99_9);
    EXPECT_GT(minute.resident_bytes, 0u);
    EXPECT_GT(minute.wal_bytes, 0u);
    EXPECT_GT(minute.files, 3u);
    EXPECT_GE(minute.disk_bytes, minute.wal_bytes);
    uint64_t calls = 0;
    for (const auto& [kind, count] : workload.counts) calls += count;
    // Out of 600 ms.
    EXPECT_NEAR(static_cast<double>(calls), minute.calls_s * 0.6, 1);
    EXPECT_FALSE(workload.compactions.empty());
    for (const char* const kind : {"read", "delete", "put_session"}) {
      EXPECT_TRUE(workload.kinds.contains(kind)) << workload.workload << ' ' << kind;
    }
  }
  EXPECT_TRUE(report->workloads[1].kinds.contains("insert"));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "the store goes with the benchmark";
}

TEST(Steady, IsAPageWithPictures) {
  const testing::TempDir dir;
  SteadyReport report{.options = Short(dir), .cores = 2, .cpu = "a <cpu>"};
  SteadyWorkload& workload = report.workloads.emplace_back();
  workload.minutes = {{.calls_s = 1000, .us = {10, 200, 3000, 4'000'000}, .wal_bytes = 3 << 20}, {}};
  workload.kinds["read"] = {10, 200, 3000, 4'000'000};
  workload.counts["read"] = 7;
  workload.compactions = {{.begin_s = 61, .end_s = 70, .removed_cells = 5}};
  const auto page = dir.path() / "steady.md";
  ASSERT_TRUE(WritePage(report, page).ok());
  const std::string text = Read(page);
  for (const char* const part : {"| A | 0 | 0 | read | 7 | 10 us | 200 us | 3 ms | 4 s |", "| A 1 | 1000 |",
                                 "| A 2 * | 0 |", "| A | 1.0 min | 9.0 s | 5 |", "(steady-latency.svg)",
                                 "(steady-memory.svg)", "(steady-disk.svg)", "(steady-files.svg)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
  }
  for (const char* const name : {"latency", "memory", "disk", "files"}) {
    const std::string svg = Read(dir.path() / (std::string("steady-") + name + ".svg"));
    EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7) << name;
    for (const char* const bad : {"nan", "inf"}) EXPECT_EQ(svg.find(bad), std::string::npos) << svg;
  }
  const Json json = ToJson(report);
  EXPECT_EQ(json["workloads"][0]["operations"]["read"]["count"], 7);
  EXPECT_EQ(json["workloads"][0]["minutes"][0]["wal_bytes"], 3 << 20);
  EXPECT_FALSE(WritePage(report, dir.path() / "no" / "such.md").ok());
}

TEST(Steady, AnUnknownWorkloadIsNamed) {
  SteadyOptions options;
  options.workloads = "AX";
  const auto report = BenchSteady(options, [](const SteadyReport&, const std::string&) {});
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(report.status().message().find("'X'"), std::string::npos);
}

}  // namespace
}  // namespace kvstore::bench
