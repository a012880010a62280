#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/histogram.h"
#include "bench/reports/parts.h"

namespace kvstore::bench {
namespace {

constexpr FigureBar kBytesBar{.side = FigureBar::Side::kAtMost, .limit = 64 << 10};
constexpr FigureBar kTimeBar{.side = FigureBar::Side::kAtMost, .limit = 5};
constexpr uint32_t kMetricsOfChange = 10'000;
constexpr int64_t kDays = 90;
constexpr int kCharts = 200;

std::string MetricName(uint32_t metric) { return fmt::format("metric {:07}", metric); }

/// Creates a report with so many metrics.
absl::Status CreateMetrics(reports::Reports& reports, uint32_t metrics) {
  const reports::ReportInfo info{.name = "chart",
                                 .settings = {.resolution_ms = kDayMs, .period_s = 30 * 86'400, .salts = 4},
                                 .keys = {{.name = "country"}}};
  if (auto status = reports.Create(info); !status.ok()) return status;
  for (uint32_t begin = 0; begin < metrics; begin += kMetricsOfChange) {
    reports::ReportChange change;
    for (uint32_t i = begin; i < std::min(metrics, begin + kMetricsOfChange); ++i) {
      change.add_metrics.push_back({.name = MetricName(i)});
    }
    if (auto status = reports.Alter("chart", change); !status.ok()) return status;
  }
  return absl::OkStatus();
}

/// Writes 90 days of ten countries for the metrics of the chart.
absl::Status WritePoints(reports::Reports& reports, const std::vector<std::string>& metrics) {
  const auto info = reports.Info("chart", metrics);
  if (!info.ok()) return info.status();
  reports::Batch batch(*info);
  for (size_t metric = 0; metric < metrics.size(); ++metric) {
    for (int country = 0; country < 10; ++country) {
      const std::string name = fmt::format("c{:02}", country);
      const std::optional<std::string_view> segments[] = {name};
      for (int64_t day = 0; day < kDays; ++day) {
        auto added =
            batch.Add(metric, kFirstDayMs + day * kDayMs, segments, reports::Number::Integer(day + country));
        if (!added.ok()) return added;
      }
    }
  }
  return reports.Write(batch, {}).status();
}

/// Opens a chart as a dashboard does: asks what the report has, and then for the points.
absl::Status OpenChart(reports::Reports& reports, const std::vector<std::string>& metrics, size_t threads) {
  const auto info = reports.Info("chart", metrics);
  if (!info.ok()) return info.status();
  reports::Query query{.report = "chart",
                       .from = kFirstDayMs,
                       .to = kFirstDayMs + kDays * kDayMs,
                       .step = *reports::ParseStep("1d")};
  for (const std::string& metric : metrics) query.metrics.push_back({.name = metric});
  query.limits.threads = threads;
  const auto result = reports.Run(query);
  if (!result.ok()) return result.status();
  if (result->series.size() != metrics.size()) {
    return absl::DataLossError(fmt::format("{} series of {} metrics", result->series.size(), metrics.size()));
  }
  // The sum of a day over ten countries is ten times the day, and 0 + 1 + ... + 9.
  for (const reports::ResultSeries& series : result->series) {
    if (series.points.size() != kDays) {
      return absl::DataLossError(
          fmt::format("{} has {} days; it must have {}", series.metric, series.points.size(), kDays));
    }
    for (int64_t day = 0; day < kDays; ++day) {
      const auto& [time, sum] = series.points[static_cast<size_t>(day)];
      if (sum != reports::Number::Integer(10 * day + 45)) {
        return absl::DataLossError(fmt::format("{} answers {} for day {}; the points' sum is {}",
                                               series.metric, sum.AsReal(), day, 10 * day + 45));
      }
    }
  }
  return absl::OkStatus();
}

/// Bytes that RocksDB's iterators and gets have returned, and bytes of blocks that were read from files.
struct ReadBytes {
  uint64_t returned = 0;
  uint64_t blocks = 0;
};
ReadBytes ReadSoFar(BenchStore& store) {
  const auto statistics = store.db().GetDBOptions().statistics;
  return {.returned = statistics->getTickerCount(rocksdb::ITER_BYTES_READ) +
                      statistics->getTickerCount(rocksdb::BYTES_READ),
          .blocks = statistics->getTickerCount(rocksdb::BLOCK_CACHE_BYTES_WRITE)};
}

/// Makes the next read of each block one from its file.
void EmptyBlockCache(BenchStore& store, const std::string& dataset) {
  const auto options = store.db().GetOptions(store.Handle(dataset));
  const auto* const table = options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
  table->block_cache->EraseUnRefEntries();
}

}  // namespace

absl::Status RunChartPart(ReportsRun& run) {
  if (!run.Wants("chart")) return absl::OkStatus();
  const uint32_t count = run.Scaled(1'000'000, 1'000);
  run.tell(fmt::format("creating a report with {} metrics", count));
  OwnReports reports(run.store.store(), "bench_chart");
  if (auto status = CreateMetrics(*reports, count); !status.ok()) return status;
  std::vector<std::string> metrics;
  for (uint32_t i = 0; i < 5; ++i) metrics.push_back(MetricName(i * (count / 5)));
  if (auto status = WritePoints(*reports, metrics); !status.ok()) return status;
  if (const auto bytes = reports.Settle("chart"); !bytes.ok()) return bytes.status();
  run.tell("opening a chart of 5 metrics");
  const size_t threads = run.options().threads;
  EmptyBlockCache(run.store, reports.dataset());
  const ReadBytes before = ReadSoFar(run.store);
  if (auto status = OpenChart(*reports, metrics, threads); !status.ok()) return status;
  const ReadBytes after = ReadSoFar(run.store);
  Histogram times;
  for (int i = 0; i < kCharts; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (auto status = OpenChart(*reports, metrics, threads); !status.ok()) return status;
    const auto taken = std::chrono::steady_clock::now() - begin;
    times.Add(static_cast<uint64_t>(std::chrono::nanoseconds(taken).count()));
  }
  const std::string name = fmt::format("chart of 5 metrics of {}", count);
  run.Add(name + ", read", "bytes", static_cast<double>(after.returned - before.returned), kBytesBar);
  run.Add(name + ", blocks of files with an empty cache", "bytes",
          static_cast<double>(after.blocks - before.blocks));
  run.Add(name + ", p50", "ms", static_cast<double>(times.Quantile(0.5)) / 1e6, kTimeBar);
  return absl::OkStatus();
}

}  // namespace kvstore::bench
