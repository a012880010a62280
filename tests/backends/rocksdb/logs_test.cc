#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <chrono>
#include <future>
#include <latch>
#include <map>
#include <string>

#include "base/metrics_sink.h"
#include "tests/backend_suite/suite.h"
#include "tests/backends/rocksdb/under_test.h"
#include "tests/support/eventually.h"

/// The write-ahead logs: how many there are, and how an open treats them.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWalBytes = size_t{1} << 20;

absl::StatusOr<std::unique_ptr<RocksDbBackend>> OpenWithSmallLogs(const fs::path& path) {
  auto dir = rocks::DataDir::Open(path, /*create=*/true);
  if (!dir.ok()) return dir.status();
  return RocksDbBackend::Open(*std::move(dir), {}, {}, {.wal_bytes = kWalBytes});
}

absl::StatusOr<std::unique_ptr<RocksDbBackend>> OpenAsApplicationsDo(const fs::path& path,
                                                                     std::span<const DatasetSpec> known) {
  auto dir = rocks::DataDir::Open(path, /*create=*/true);
  if (!dir.ok()) return dir.status();
  return RocksDbBackend::Open(*std::move(dir), known, {}, {});
}

std::vector<DatasetSpec> Specs(int count) {
  std::vector<DatasetSpec> specs;
  for (int i = 1; i <= count; ++i) {
    specs.push_back({.name = "rows" + std::to_string(i), .incarnation = static_cast<uint64_t>(i)});
  }
  return specs;
}

/// Creates the datasets that do not exist yet, and puts a cell into each.
absl::Status PutOneEach(RocksDbBackend& backend, const std::vector<DatasetSpec>& specs) {
  for (const DatasetSpec& spec : specs) {
    if (auto status = backend.CreateDataset(spec); !status.ok()) return status;
    const auto rows = backend.OpenRows(spec);
    if (!rows.ok()) return rows.status();
    if (auto status = PutCell(**rows, "r", "x", "v", 1); !status.ok()) return status;
  }
  return absl::OkStatus();
}

size_t Count(const fs::path& dir, const std::string& extension) {
  size_t count = 0;
  for (const auto& file : fs::directory_iterator(dir / "rocksdb")) {
    count += file.path().extension() == extension ? 1 : 0;
  }
  return count;
}

class Gauges : public MetricsSink {
 public:
  void Gauge(std::string_view name, std::string_view, const Labels&, double value) override {
    values[std::string(name)] = value;
  }
  void Counter(std::string_view, std::string_view, const Labels&, double) override {}

  std::map<std::string, double> values;
};

TEST(Logs, AreBoundedAlsoWhereADatasetIsHardlyWrittenTo) {
  const TempDir dir;
  const auto specs = Specs(10);
  ASSERT_OK_AND_ASSIGN(const auto backend, OpenWithSmallLogs(dir.path()));
  ASSERT_OK(PutOneEach(*backend, specs));
  const auto rows = *backend->OpenRows(specs[0]);
  const std::string value(100'000, 'v');
  for (int i = 0; i < 100; ++i) ASSERT_OK(PutCell(*rows, "row" + std::to_string(i), "x", value, 1));
  // A write starts a flush of the oldest log, and other writes are let through while it lasts.
  EXPECT_TRUE(Eventually([&] {
    return PutCell(*rows, "more", "x", "v", 1).ok() && backend->engine().Logs().bytes <= 2 * kWalBytes;
  }));
  Gauges gauges;
  backend->Describe(gauges);
  ASSERT_TRUE(gauges.values.contains("kvstore_rocksdb_wal_bytes"));
  EXPECT_LE(gauges.values["kvstore_rocksdb_wal_bytes"], 2 * kWalBytes);
}

TEST(Logs, AreReadAfterAKillWithoutAFileForEachDataset) {
  const TempDir dir;
  const auto specs = Specs(20);
  ASSERT_OK_AND_ASSIGN(const auto writer, OpenRocksDb(dir / "s", {}));
  ASSERT_OK(PutOneEach(*writer, specs));
  // Copy what a kill would leave at this moment.
  fs::copy(dir / "s", dir / "killed", fs::copy_options::recursive);
  ASSERT_OK_AND_ASSIGN(const auto backend, OpenRocksDb(dir / "killed", specs));
  EXPECT_EQ(Count(dir / "killed", ".sst"), 0u);
  for (const DatasetSpec& spec : specs) EXPECT_EQ(Read(**backend->OpenRows(spec), "r"), "x@1=v");
}

TEST(Logs, OfManyShortLivesDoNotPileUp) {
  const TempDir dir;
  auto specs = Specs(2);
  specs[1].keep_changes_ms = 86'400'000;
  std::vector<DatasetSpec> known;
  for (int life = 0; life < 30; ++life) {
    ASSERT_OK_AND_ASSIGN(const auto backend, OpenRocksDb(dir.path(), known));
    ASSERT_OK(PutOneEach(*backend, specs));
    known = specs;
    ASSERT_LE(Count(dir.path(), ".log"), 10u);
  }
}

TEST(Logs, ThatHoldMuchAreReadOnce) {
  const TempDir dir;
  const std::vector<DatasetSpec> known = Specs(1);
  {
    ASSERT_OK_AND_ASSIGN(const auto backend, OpenAsApplicationsDo(dir.path(), {}));
    ASSERT_OK(PutOneEach(*backend, known));
    const auto rows = *backend->OpenRows(known[0]);
    for (int i = 0; i < 20; ++i)
      ASSERT_OK(PutCell(*rows, "r", std::to_string(i), std::string(1 << 20, 'v'), 1));
    EXPECT_GT(backend->engine().Logs().bytes, uint64_t{20} << 20);
  }
  // Even if the process that opens the store next ends at once, the logs are flushed.
  ASSERT_OK(OpenAsApplicationsDo(dir.path(), known));
  ASSERT_OK_AND_ASSIGN(const auto backend, OpenAsApplicationsDo(dir.path(), known));
  EXPECT_LT(backend->engine().Logs().bytes, uint64_t{1} << 20);
}

/// Keeps all threads busy in which RocksDB flushes, as long as it lives.
class NoFlushes {
 public:
  NoFlushes() {
    for (int i = 0; i < threads_; ++i) env_->Schedule(&NoFlushes::Hold, this, rocksdb::Env::Priority::HIGH);
    held_.wait();
  }
  ~NoFlushes() {
    release_.count_down();
    released_.wait();
  }
  NoFlushes(const NoFlushes&) = delete;
  NoFlushes& operator=(const NoFlushes&) = delete;

 private:
  static void Hold(void* argument) {
    auto* const self = static_cast<NoFlushes*>(argument);
    self->held_.count_down();
    self->release_.wait();
    self->released_.count_down();
  }

  rocksdb::Env* const env_ = rocksdb::Env::Default();
  const int threads_ = env_->GetBackgroundThreads(rocksdb::Env::Priority::HIGH);
  std::latch held_{threads_};
  std::latch release_{1};
  std::latch released_{threads_};
};

TEST(Logs, OfManyDatasetsAreFlushedBehindTheOpen) {
  const TempDir dir;
  const auto specs = Specs(80);
  for (int life = 0; life < 8; ++life) {
    ASSERT_OK_AND_ASSIGN(const auto backend,
                         OpenAsApplicationsDo(dir.path(), life == 0 ? std::vector<DatasetSpec>() : specs));
    ASSERT_OK(PutOneEach(*backend, life == 0 ? specs : std::vector{specs[0]}));
  }
  ASSERT_EQ(Count(dir.path(), ".log"), 8u);
  std::future<absl::StatusOr<std::unique_ptr<RocksDbBackend>>> opened;
  {
    const NoFlushes no_flushes;
    opened = std::async(std::launch::async, [&] { return OpenAsApplicationsDo(dir.path(), specs); });
    EXPECT_TRUE(
        Eventually([&] { return opened.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  }
  ASSERT_OK(opened.get());
  EXPECT_LT(Count(dir.path(), ".log"), 8u);
}

TEST(Logs, ADatasetIsMadeWithoutAFileOfAllOptions) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto backend, OpenRocksDb(dir.path(), {}));
  ASSERT_OK(PutOneEach(*backend, Specs(3)));
  for (const auto& file : fs::directory_iterator(dir / "rocksdb")) {
    EXPECT_FALSE(file.path().filename().string().starts_with("OPTIONS")) << file.path();
  }
}

// ---- threads of an open ----

int ThreadsOfAFamily(RocksDbBackend& backend) {
  return backend.engine().db().GetDBOptions().max_file_opening_threads;
}

TEST(Open, StartsFewThreadsHoweverManyDatasets) {
  const TempDir dir;
  const auto specs = Specs(40);
  {
    ASSERT_OK_AND_ASSIGN(const auto backend, OpenRocksDb(dir.path(), {}));
    EXPECT_EQ(ThreadsOfAFamily(*backend), 1);
    ASSERT_OK(PutOneEach(*backend, specs));
    for (const DatasetSpec& spec : specs) {
      ASSERT_TRUE(backend->engine().db().Flush({}, backend->engine().FindFamily(spec.name)->handle).ok());
    }
  }
  // RocksDB starts one thread less, of its own, for each family, and for the default one.
  ASSERT_OK_AND_ASSIGN(const auto backend, OpenRocksDb(dir.path(), specs));
  EXPECT_GT(ThreadsOfAFamily(*backend), 1);
  EXPECT_LE(41 * (ThreadsOfAFamily(*backend) - 1), 128);
}

TEST(Open, ReadsTheFilesOfAFewDatasetsInParallel) {
  const TempDir dir;
  const auto specs = Specs(1);
  {
    ASSERT_OK_AND_ASSIGN(const auto backend, OpenRocksDb(dir.path(), {}));
    ASSERT_OK(PutOneEach(*backend, specs));
    const auto rows = *backend->OpenRows(specs[0]);
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(PutCell(*rows, std::to_string(i), "x", "v", 1));
      ASSERT_TRUE(backend->engine().db().Flush({}, backend->engine().FindFamily(specs[0].name)->handle).ok());
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto backend, OpenRocksDb(dir.path(), specs));
  EXPECT_EQ(ThreadsOfAFamily(*backend), 3);
}

}  // namespace
}  // namespace kvstore::testing
