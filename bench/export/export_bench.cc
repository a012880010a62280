#include "bench/export/export_bench.h"

#include <fmt/format.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bench/harness/bench_store.h"
#include "blobstore/open_blob_store.h"
#include "export/parquet_program.h"
#include "kvstore_api/open.h"

namespace kvstore::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kDataset[] = "rows";
constexpr char kColumn[] = "profile";
constexpr size_t kBatch = 500;
constexpr double kMiB = 1024.0 * 1024.0;

template <typename T>
T Checked(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

double SecondsOf(const std::function<void()>& work) {
  const auto begun = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A figure of a process's memory in MiB: VmRSS, or VmHWM, the most since it was last forgotten; 0 if the
/// process has ended.
double MemoryMiB(const std::string& process, const std::string& figure) {
  std::ifstream status("/proc/" + process + "/status");
  std::string word;
  while (status >> word && word != figure) {
  }
  double kib = 0;
  status >> kib;
  return kib / 1024;
}
void ForgetMostMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// Looks, while it exists, how large the programs get that this process starts. The system's figures for
/// children that have ended would count this process, too, of which each of them was a copy at first.
class ChildrenMemory {
 public:
  ChildrenMemory() : thread_([this] { Watch(); }) {}
  ~ChildrenMemory() {
    stop_ = true;
    thread_.join();
  }
  ChildrenMemory(const ChildrenMemory&) = delete;
  ChildrenMemory& operator=(const ChildrenMemory&) = delete;

  /// The largest in MiB.
  double largest_mib() const { return largest_mib_; }

 private:
  void Watch() {
    while (!stop_) {
      std::error_code ignored;
      for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
        std::ifstream children(task.path() / "children");
        for (std::string child; children >> child;) Look(child);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void Look(const std::string& child) {
    std::ifstream name("/proc/" + child + "/comm");
    std::string program;
    if (name >> program && program == "kv-parquet") {
      largest_mib_ = std::max<double>(largest_mib_, MemoryMiB(child, "VmHWM:"));
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<double> largest_mib_{0};
  std::thread thread_;
};

class ExportBench {
 public:
  explicit ExportBench(const ExportBenchOptions& options)
      : options_(options),
        program_(Checked(exports::FindParquetProgram())),
        store_(Checked(BenchStore::Create(options.dir))) {}

  Report Run() {
    Report report{
        .workload = "export",
        .backend = kRocksDb,
        .settings = {
            {"rows", options_.rows}, {"value_bytes", options_.value_bytes}, {"parallel", options_.lanes}}};
    DescribeMachine(report);
    Load();
    const ChildrenMemory children;
    Measure(report, "long", {});
    Measure(report, "wide", {.columns = {{kColumn, pipe::ColumnType::kBytes}}});
    report.figures.emplace_back("largest_kv_parquet_mib", children.largest_mib());
    return report;
  }

 private:
  /// Puts all rows, and flushes them, so that both sides read tables.
  void Load() {
    KVStore& store = store_->store();
    Check(store.CreateDataset({.name = kDataset}));
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    for (uint64_t at = 0; at < options_.rows; at += kBatch) {
      const size_t count = std::min<uint64_t>(kBatch, options_.rows - at);
      std::vector<std::string> keys;
      std::vector<std::string> values;
      for (size_t i = 0; i < count; ++i) {
        keys.push_back(fmt::format("user:{:09}", at + i));
        std::string& value = values.emplace_back(options_.value_bytes, '\0');
        for (char& c : value) c = kLetters[random_() % kLetters.size()];
      }
      std::vector<CellWrite> cells;
      for (const std::string& value : values) cells.push_back({kColumn, value, std::nullopt});
      std::vector<RowWrite> writes;
      for (size_t i = 0; i < count; ++i) writes.push_back({keys[i], {&cells[i], 1}});
      for (const auto& written : Checked(store.PutRows(kDataset, writes))) Check(written.status());
    }
    if (!store_->db().Flush({}, store_->Handle(kDataset)).ok()) {
      Check(absl::InternalError("the rows could not be flushed"));
    }
  }

  uint64_t Scan() {
    auto cursor = Checked(store_->store().ScanRows(kDataset, {}, {}));
    ScannedRow row;
    uint64_t bytes = 0;
    while (Checked(cursor->Next(row))) bytes += row.key.size() + row.items[0].cells[0].value.size();
    return bytes;
  }

  exports::Manifest Export(const exports::TableOptions& table) {
    const DatasetSpec spec = Checked(store_->store().GetDataset(kDataset));
    const auto reader = Checked(store_->backend().OpenUnits(spec));
    const auto source =
        Checked(exports::OpenSnapshot(*reader, spec, std::nullopt, exports::PartsFor(options_.lanes)));
    const auto blobs = Checked(OpenBlobStore(fmt::format("file:{}", (store_->path() / "exports").string())));
    const exports::ExportRequest request{.dataset = kDataset, .shape = spec.shape, .options = table};
    return Checked(exports::ExportDataset(*source, request, *blobs,
                                          {.program = program_, .token = "", .lanes = options_.lanes}));
  }

  void Measure(Report& report, const std::string& name, const exports::TableOptions& table) {
    std::vector<double> ours;
    std::vector<double> raw;
    uint64_t bytes = 0;
    exports::Manifest made;
    double grown_mib = 0;
    for (int round = 0; round < options_.rounds; ++round) {
      raw.push_back(SecondsOf([&] { bytes = Scan(); }));
      ForgetMostMemory();
      const double before_mib = MemoryMiB("self", "VmRSS:");
      ours.push_back(SecondsOf([&] { made = Export(table); }));
      grown_mib = std::max(grown_mib, MemoryMiB("self", "VmHWM:") - before_mib);
      std::filesystem::remove_all(store_->path() / "exports");
    }
    const double total = static_cast<double>(bytes);
    report.results.push_back({.path = name,
                              .ours_ops_s = total / Median(ours),
                              .raw_ops_s = total / Median(raw),
                              .ratio = Median(raw) / Median(ours)});
    report.figures.emplace_back(name + "_export_mib_s", total / kMiB / Median(ours));
    report.figures.emplace_back(name + "_grows_by_mib", grown_mib);
    report.figures.emplace_back(name + "_parquet_bytes_of_100",
                                100.0 * static_cast<double>(made.TotalBytes()) / total);
  }

  const ExportBenchOptions options_;
  const std::string program_;
  const std::unique_ptr<BenchStore> store_;
  std::mt19937_64 random_{1};
};

}  // namespace

absl::StatusOr<Report> BenchExport(const ExportBenchOptions& options) {
  if (const auto program = exports::FindParquetProgram(); !program.ok()) return program.status();
  return ExportBench(options).Run();
}

}  // namespace kvstore::bench
