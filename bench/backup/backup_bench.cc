#include "bench/backup/backup_bench.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "assembly/backend_config.h"
#include "assembly/open_router.h"
#include "backup/create.h"
#include "backup/dataset_create.h"
#include "backup/dataset_restore.h"
#include "backup/parallel.h"
#include "backup/restore.h"
#include "bench/backup/curl.h"
#include "bench/harness/histogram.h"
#include "blobstore/descriptor.h"
#include "blobstore/open_blob_store.h"
#include "router/router.h"

namespace kvstore::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr char kDataset[] = "rows";
constexpr size_t kValueBytes = 1024;
constexpr size_t kBatch = 500;

double SecondsOf(const std::function<void()>& work) {
  const auto begun = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

template <typename T>
T Checked(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

/// Copies all files below a folder, and syncs each: what any backup must do at least.
void CopyFolder(const fs::path& from, const fs::path& to) {
  std::string buffer(size_t{1} << 20, '\0');
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    if (!entry.is_regular_file()) continue;
    const fs::path target = to / entry.path().lexically_relative(from);
    fs::create_directories(target.parent_path());
    const Descriptor in(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    const Descriptor out(::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    for (ssize_t size = 1; size > 0;) {
      size = ::read(in.get(), buffer.data(), buffer.size());
      const ssize_t written = size > 0 ? ::write(out.get(), buffer.data(), static_cast<size_t>(size)) : size;
      if (size < 0 || written != size) Check(absl::InternalError("a file could not be copied"));
    }
    if (::fsync(out.get()) != 0) Check(absl::InternalError("a copy could not be synced"));
  }
}

std::string KeyOf(uint64_t row) { return fmt::format("user:{:09}", row); }

class BackupBench {
 public:
  explicit BackupBench(const BackupBenchOptions& options)
      : options_(options),
        dir_((options.dir.empty() ? fs::temp_directory_path() : fs::path(options.dir)) /
             fmt::format("kvstore-bench-backup-{}", ::getpid())),
        router_(Checked(OpenRouter({.data = dir_ / "store"}))) {
    Check(router_->CreateDataset({.name = kDataset}));
  }
  ~BackupBench() {
    router_.reset();
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
  }
  BackupBench(const BackupBench&) = delete;
  BackupBench& operator=(const BackupBench&) = delete;

  Report Run() {
    Report report{.workload = "backup", .backend = kRocksDb, .settings = {{"rows", options_.rows}}};
    DescribeMachine(report);
    Load(kDataset);
    const auto blobs = Open("backups");
    backup::Manifest first;
    const double create = SecondsOf([&] { first = Create(*blobs); });
    const double copy = SecondsOf([&] { CopyFolder(dir_ / "backups", dir_ / "copy"); });
    const double restore = SecondsOf([&] { Check(backup::RestoreBackup(first, *blobs, dir_ / "restored")); });
    const double copy_back = SecondsOf([&] { CopyFolder(dir_ / "copy", dir_ / "copied-back"); });
    AddPath(report, "create", first.TotalBytes(), create, copy);
    AddPath(report, "restore", first.TotalBytes(), restore, copy_back);
    for (const char* folder : {"copy", "copied-back", "restored"}) fs::remove_all(dir_ / folder);
    MeasureDataset(report);
    if (!options_.bucket.empty()) MeasureBucket(report);
    MeasureSecond(report, *blobs);
    MeasureReads(report);
    return report;
  }

 private:
  std::unique_ptr<BlobStore> Open(const std::string& name) const {
    return Checked(OpenBlobStore("file:" + (dir_ / name).string()));
  }
  backup::Manifest Create(BlobStore& blobs, uint64_t bytes_per_s = 0) {
    Backend* const backend = Checked(router_->keeper().FindBackend(kRocksDb));
    return Checked(
        backup::CreateBackup([backend] { return backend->MakeCheckpoint(); }, blobs, nullptr, bytes_per_s));
  }

  /// Puts all rows in batches.
  void Load(const std::string& dataset) {
    std::vector<uint64_t> rows(options_.rows);
    for (uint64_t i = 0; i < options_.rows; ++i) rows[i] = i;
    Put(dataset, rows);
  }
  void Put(const std::string& dataset, const std::vector<uint64_t>& rows) {
    for (size_t at = 0; at < rows.size(); at += kBatch) {
      std::vector<std::string> keys;
      std::vector<std::string> values;
      std::vector<CellWrite> cells;
      std::vector<RowWrite> writes;
      const size_t count = std::min(kBatch, rows.size() - at);
      for (size_t i = 0; i < count; ++i) {
        keys.push_back(KeyOf(rows[at + i]));
        std::string& value = values.emplace_back(kValueBytes, '\0');
        for (char& c : value) c = static_cast<char>(random_());
      }
      for (size_t i = 0; i < count; ++i) cells.push_back({"profile", values[i], std::nullopt});
      for (size_t i = 0; i < count; ++i) writes.push_back({keys[i], {&cells[i], 1}});
      for (const auto& written : Checked(router_->PutRows(dataset, writes))) Check(written.status());
    }
  }

  static void AddPath(Report& report, std::string name, uint64_t bytes, double ours_s, double raw_s) {
    const auto total = static_cast<double>(bytes);
    report.results.push_back({.path = std::move(name),
                              .ours_ops_s = total / ours_s,
                              .raw_ops_s = total / raw_s,
                              .ratio = raw_s / ours_s});
  }

  void MeasureDataset(Report& report) {
    CatalogKeeper& keeper = router_->keeper();
    const DatasetSpec spec = Checked(keeper.LoadEntry(kDataset)).spec;
    const auto reader = Checked(Checked(keeper.FindBackend(spec.backend))->OpenUnits(spec));
    const auto blobs = Open("dataset");
    backup::Manifest made;
    const double create =
        SecondsOf([&] { made = Checked(backup::CreateDatasetBackup(*reader, spec, *blobs)); });
    uint64_t bytes = 0;
    const double scan = SecondsOf([&] {
      auto cursor = Checked(router_->ScanRows(kDataset, {}, {}));
      ScannedRow row;
      while (Checked(cursor->Next(row))) bytes += row.key.size() + row.items[0].cells[0].value.size();
    });
    DatasetSpec copy = spec;
    copy.name = "restored";
    copy.incarnation = 0;
    copy.table.clear();
    const double restore = SecondsOf([&] {
      Check(keeper.CreateDataset(copy, [&](const DatasetSpec& as, Backend& on) {
        return backup::RestoreUnits(made, *blobs, *Checked(on.OpenForMigration(as)), as);
      }));
    });
    Check(router_->DropDataset(copy.name, {}));
    Check(router_->CreateDataset({.name = "loaded"}));
    const double load = SecondsOf([&] { Load("loaded"); });
    Check(router_->DropDataset("loaded", {}));
    AddPath(report, "dataset_create", bytes, create, scan);
    AddPath(report, "dataset_restore", bytes, restore, load);
  }

  /// By turns, so that what disturbs the machine disturbs both.
  void MeasureBucket(Report& report) {
    constexpr int kRounds = 3;
    const auto blobs = Checked(OpenBlobStore(options_.bucket));
    const backup::Manifest made = Create(*blobs);
    std::vector<std::string_view> objects;
    for (const backup::BackedUpFile& file : made.files) objects.push_back(file.blob);
    double restore = 0;
    double fetch = 0;
    for (int i = 0; i < kRounds; ++i) {
      restore += SecondsOf([&] { Check(backup::RestoreBackup(made, *blobs, dir_ / "restored")); });
      fetch += SecondsOf(
          [&] { Check(FetchByCurl(options_.bucket, objects, backup::kFetched, dir_ / "fetched")); });
      for (const char* folder : {"restored", "fetched"}) fs::remove_all(dir_ / folder);
    }
    AddPath(report, "bucket_restore", kRounds * made.TotalBytes(), restore, fetch);
  }

  /// Measures what a backup sends after one row in a hundred was written, wherever they are, and what the
  /// next one sends once they are compacted.
  void MeasureSecond(Report& report, BlobStore& blobs) {
    const backup::Manifest before = Create(blobs);
    std::vector<uint64_t> rows;
    for (uint64_t i = 0; i < options_.rows / 100; ++i) rows.push_back(random_() % options_.rows);
    Put(kDataset, rows);
    const backup::Manifest after = Create(blobs);
    const auto percent = [&](const backup::Manifest& made) {
      return 100.0 * static_cast<double>(made.sent_bytes) / static_cast<double>(before.TotalBytes());
    };
    report.figures.emplace_back("second_backup_sends_percent", percent(after));
    Check(router_->Compact(kDataset, nullptr).status());
    report.figures.emplace_back("after_compaction_sends_percent", percent(Create(blobs)));
  }

  /// Reads random rows for a while; returns p99 in microseconds.
  double Read(const std::atomic<bool>& stop) {
    Histogram latencies;
    while (!stop) {
      const auto begun = Clock::now();
      Check(router_->GetRow(kDataset, KeyOf(random_() % options_.rows), {}).status());
      latencies.Add(static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count()));
    }
    return static_cast<double>(latencies.Quantile(0.99)) / 1000;
  }
  double ReadFor(double seconds) {
    std::atomic<bool> stop{false};
    std::thread timer([&] {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      stop = true;
    });
    const double p99 = Read(stop);
    timer.join();
    return p99;
  }

  void MeasureReads(Report& report) {
    const double alone = ReadFor(options_.seconds);
    const auto blobs = Open("throttled");
    std::atomic<bool> stop{false};
    const auto rate =
        static_cast<uint64_t>(static_cast<double>(options_.rows * kValueBytes) / options_.seconds);
    std::thread backup([&] {
      Create(*blobs, rate);
      stop = true;
    });
    const double beside = Read(stop);
    backup.join();
    report.figures.emplace_back("read_p99_alone_us", alone);
    report.figures.emplace_back("read_p99_beside_backup_us", beside);
    report.figures.emplace_back("read_p99_factor", beside / alone);
  }

  const BackupBenchOptions options_;
  const fs::path dir_;
  std::unique_ptr<Router> router_;
  std::mt19937_64 random_{1};
};

}  // namespace

absl::StatusOr<Report> BenchBackup(const BackupBenchOptions& options) { return BackupBench(options).Run(); }

}  // namespace kvstore::bench
