#include "bench/ycsb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <string_view>

#include "bench/distribution.h"
#include "bench/report.h"

namespace kvstore::bench {
namespace {

constexpr size_t kFields = 10;
constexpr size_t kFieldBytes = 100;
constexpr uint64_t kMaxScan = 100;
constexpr size_t kLoadBatch = 100;

/// Shares of the operations of a workload, in percent; the rest are reads.
struct Mix {
  char workload;
  unsigned updates;
  unsigned inserts;
  unsigned scans;
  unsigned changes;  ///< Read, change and write.
  bool latest;
};
constexpr std::array<Mix, 6> kMixes = {{{'A', 50, 0, 0, 0, false},
                                        {'B', 5, 0, 0, 0, false},
                                        {'C', 0, 0, 0, 0, false},
                                        {'D', 0, 5, 0, 0, true},
                                        {'E', 0, 5, 95, 0, false},
                                        {'F', 0, 0, 0, 50, false}}};

std::string KeyOf(uint64_t record) { return fmt::format("user{:020}", Scramble(record)); }

const std::string& FieldName(size_t field) {
  static const std::array<std::string, kFields> kNames = [] {
    std::array<std::string, kFields> names;
    for (size_t i = 0; i < kFields; ++i) names.at(i) = fmt::format("field{}", i);
    return names;
  }();
  return kNames.at(field);
}

/// What a thread needs for itself.
struct Thread {
  std::mt19937_64 random;
  std::string value = std::string(kFieldBytes, ' ');

  /// Printable bytes, as YCSB has them.
  std::string_view NewValue() {
    for (size_t i = 0; i < value.size(); i += 8) {
      uint64_t bits = random();
      for (size_t j = i; j < std::min(i + 8, value.size()); ++j, bits >>= 8) {
        value[j] = static_cast<char>(' ' + bits % 95);
      }
    }
    return value;
  }
};

class Ycsb {
 public:
  Ycsb(KVStore& store, const YcsbOptions& options)
      : store_(store), options_(options), records_(options.records), zipfian_(options.records) {
    for (int t = 0; t < options.load.threads; ++t) threads_.push_back({.random = std::mt19937_64(t + 1)});
  }

  void Load() {
    std::vector<RowWrite> batch;
    std::vector<std::string> keys(kLoadBatch);
    std::vector<std::array<std::string, kFields>> values(kLoadBatch);
    std::vector<std::array<CellWrite, kFields>> cells(kLoadBatch);
    for (uint64_t record = 0; record < options_.records; ++record) {
      const size_t at = batch.size();
      keys[at] = KeyOf(record);
      for (size_t field = 0; field < kFields; ++field) {
        values[at].at(field) = threads_[0].NewValue();
        cells[at].at(field) = {FieldName(field), values[at].at(field), std::nullopt};
      }
      batch.push_back({.row = keys[at], .cells = cells[at]});
      if (batch.size() < kLoadBatch && record + 1 < options_.records) continue;
      const auto written = store_.PutRows(options_.dataset, batch);
      Check(written.status());
      for (const auto& one : *written) Check(one.status());
      batch.clear();
    }
  }

  std::vector<LoadRound> Run(const Mix& mix) {
    return RunLoad(options_.load, [&](int thread) { return Do(mix, threads_[static_cast<size_t>(thread)]); });
  }

 private:
  const char* Do(const Mix& mix, Thread& thread) {
    unsigned choice = static_cast<unsigned>(thread.random() % 100);
    const auto is = [&](unsigned share) {
      if (choice < share) return true;
      choice -= share;
      return false;
    };
    if (is(mix.updates)) {
      Update(Choose(mix, thread), thread);
      return "update";
    }
    if (is(mix.inserts)) {
      Insert(thread);
      return "insert";
    }
    if (is(mix.scans)) {
      Scan(Choose(mix, thread), 1 + thread.random() % kMaxScan);
      return "scan";
    }
    const uint64_t record = Choose(mix, thread);
    Read(record);
    if (!is(mix.changes)) return "read";
    Update(record, thread);
    return "read_modify_write";
  }

  uint64_t Choose(const Mix& mix, Thread& thread) const {
    const uint64_t item = zipfian_.Choose(Uniform(thread.random));
    const uint64_t there = records_.load(std::memory_order_relaxed);
    return mix.latest ? there - 1 - item : Scramble(item) % there;
  }

  void Read(uint64_t record) {
    const auto row = store_.GetRow(options_.dataset, KeyOf(record), {});
    Check(row.status());
    // A record that another thread is inserting at the moment may be missing.
    if (row->items.size() != kFields && record < options_.records) {
      Check(absl::DataLossError(fmt::format("record {} has {} fields", record, row->items.size())));
    }
  }

  void Update(uint64_t record, Thread& thread) {
    const CellWrite cell{FieldName(thread.random() % kFields), thread.NewValue(), std::nullopt};
    Check(store_.PutRow(options_.dataset, KeyOf(record), {&cell, 1}, {}).status());
  }

  void Insert(Thread& thread) {
    const uint64_t record = inserted_.fetch_add(1) + options_.records;
    std::array<std::string, kFields> values;
    std::array<CellWrite, kFields> cells;
    for (size_t field = 0; field < kFields; ++field) {
      values.at(field) = thread.NewValue();
      cells.at(field) = {FieldName(field), values.at(field), std::nullopt};
    }
    Check(store_.PutRow(options_.dataset, KeyOf(record), cells, {}).status());
    // Those before it may still be under way: as good as there.
    uint64_t there = records_.load();
    while (there < record + 1 && !records_.compare_exchange_weak(there, record + 1)) continue;
  }

  void Scan(uint64_t record, uint64_t rows) {
    const auto cursor = store_.ScanRows(options_.dataset, {.start = KeyOf(record)}, {});
    Check(cursor.status());
    ScannedRow row;
    for (uint64_t i = 0; i < rows; ++i) {
      const auto more = (*cursor)->Next(row);
      Check(more.status());
      if (!*more) break;
    }
  }

  KVStore& store_;
  const YcsbOptions& options_;
  std::atomic<uint64_t> inserted_{0};
  std::atomic<uint64_t> records_;
  /// Of the records that were loaded.
  const Zipfian zipfian_;
  std::vector<Thread> threads_;
};

const Mix* FindMix(char workload) {
  const auto found =
      std::find_if(kMixes.begin(), kMixes.end(), [&](const Mix& mix) { return mix.workload == workload; });
  return found == kMixes.end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<std::vector<YcsbResult>> BenchYcsb(KVStore& store, const YcsbOptions& options) {
  for (const char workload : options.workloads) {
    if (FindMix(workload) == nullptr) {
      return absl::InvalidArgumentError(fmt::format("workloads: '{}' is none of ABCDEF", workload));
    }
  }
  if (auto status = store.CreateDataset({.name = options.dataset, .max_versions = 1}); !status.ok())
    return status;
  std::vector<YcsbResult> results;
  {
    Ycsb ycsb(store, options);
    ycsb.Load();
    for (const char workload : options.workloads) results.push_back({workload, ycsb.Run(*FindMix(workload))});
  }
  if (auto status = store.DropDataset(options.dataset, {}); !status.ok()) return status;
  return results;
}

}  // namespace kvstore::bench
