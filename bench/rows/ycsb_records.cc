#include "bench/rows/ycsb_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/harness/report.h"

namespace kvstore::bench {
namespace {

constexpr size_t kFields = 10;
constexpr size_t kFieldBytes = 100;
constexpr uint64_t kMaxScan = 100;
constexpr size_t kLoadBatch = 100;
/// The most records that a thread has deleted at a time: it then inserts one of them again.
constexpr size_t kMaxDeleted = 100;

std::string KeyOf(uint64_t record) { return fmt::format("user{:020}", Scramble(record)); }

const std::string& FieldName(size_t field) {
  static const std::array<std::string, kFields> kNames = [] {
    std::array<std::string, kFields> names;
    for (size_t i = 0; i < kFields; ++i) names.at(i) = fmt::format("field{}", i);
    return names;
  }();
  return kNames.at(field);
}

}  // namespace

/// The shares of the operations of a workload in percent; the rest are reads.
struct YcsbRecords::Mix {
  char workload;
  unsigned updates;
  unsigned inserts;
  unsigned scans;
  unsigned changes;  ///< Read, change and write.
  bool latest;
};

const YcsbRecords::Mix* YcsbRecords::FindMix(char workload) {
  static constexpr std::array<Mix, 6> kMixes = {{{'A', 50, 0, 0, 0, false},
                                                 {'B', 5, 0, 0, 0, false},
                                                 {'C', 0, 0, 0, 0, false},
                                                 {'D', 0, 5, 0, 0, true},
                                                 {'E', 0, 5, 95, 0, false},
                                                 {'F', 0, 0, 0, 50, false}}};
  for (const Mix& mix : kMixes) {
    if (mix.workload == workload) return &mix;
  }
  return nullptr;
}

bool YcsbRecords::IsWorkload(char workload) { return FindMix(workload) != nullptr; }

std::string_view YcsbRecords::Thread::NewValue() {
  for (size_t i = 0; i < value.size(); i += 8) {
    uint64_t bits = random();
    for (size_t j = i; j < std::min(i + 8, value.size()); ++j, bits >>= 8) {
      value[j] = static_cast<char>(' ' + bits % 95);
    }
  }
  return value;
}

YcsbRecords::YcsbRecords(KVStore& store, Options options)
    : store_(store), options_(std::move(options)), records_(options_.records), zipfian_(options_.records) {
  for (int t = 0; t < options_.threads; ++t) {
    threads_.push_back(
        {.random = std::mt19937_64(t + 1), .value = std::string(kFieldBytes, ' '), .deleted = {}});
  }
}

void YcsbRecords::Load() {
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
    batch.push_back({.row = keys[at], .cells = cells[at], .options = {}});
    if (batch.size() < kLoadBatch && record + 1 < options_.records) continue;
    const auto written = store_.PutRows(options_.dataset, batch);
    Check(written.status());
    for (const auto& one : *written) Check(one.status());
    batch.clear();
  }
}

const char* YcsbRecords::Execute(char workload, int number) {
  const Mix& mix = *FindMix(workload);
  Thread& thread = threads_[static_cast<size_t>(number)];
  unsigned choice = static_cast<unsigned>(thread.random() % 100);
  const auto is = [&](unsigned share) {
    if (choice < share) return true;
    choice -= share;
    return false;
  };
  if (is(mix.updates)) {
    Update(Choose(mix.latest, thread), thread);
    return "update";
  }
  if (is(mix.inserts)) {
    Insert(thread);
    return "insert";
  }
  if (is(mix.scans)) {
    Scan(Choose(mix.latest, thread), 1 + thread.random() % kMaxScan);
    return "scan";
  }
  const uint64_t record = Choose(mix.latest, thread);
  Read(record);
  if (!is(mix.changes)) return "read";
  Update(record, thread);
  return "read_modify_write";
}

const char* YcsbRecords::Delete(int number) {
  Thread& thread = threads_[static_cast<size_t>(number)];
  if (thread.deleted.size() >= kMaxDeleted) {
    Put(thread.deleted.front(), thread);
    thread.deleted.pop_front();
    return "insert";
  }
  // Any record, as those are deleted that nobody uses any more. Chosen like those that are read, the most
  // popular ones would be missing nearly all the time.
  const uint64_t record = thread.random() % options_.records;
  Check(store_.DeleteRow(options_.dataset, KeyOf(record), {}));
  thread.deleted.push_back(record);
  return "delete";
}

const char* YcsbRecords::DeleteOldest(int number) {
  uint64_t oldest = oldest_.load();
  do {
    if (records_.load() - oldest <= options_.records) {
      Insert(threads_[static_cast<size_t>(number)]);
      return "insert";
    }
  } while (!oldest_.compare_exchange_weak(oldest, oldest + 1));
  Check(store_.DeleteRow(options_.dataset, KeyOf(oldest), {}));
  return "delete";
}

uint64_t YcsbRecords::Choose(bool latest, Thread& thread) const {
  const uint64_t item = zipfian_.Choose(Uniform(thread.random));
  const uint64_t there = records_.load(std::memory_order_relaxed);
  return latest ? there - 1 - item : Scramble(item) % there;
}

void YcsbRecords::Read(uint64_t record) {
  const auto row = store_.GetRow(options_.dataset, KeyOf(record), {});
  Check(row.status());
  // A record that another thread is inserting at the moment may be missing.
  if (row->items.size() != kFields && record < options_.records && !options_.deletes) {
    Check(absl::DataLossError(fmt::format("record {} has {} fields", record, row->items.size())));
  }
}

void YcsbRecords::Update(uint64_t record, Thread& thread) {
  const CellWrite cell{FieldName(thread.random() % kFields), thread.NewValue(), std::nullopt};
  Check(store_.PutRow(options_.dataset, KeyOf(record), {&cell, 1}, {}).status());
}

void YcsbRecords::Put(uint64_t record, Thread& thread) {
  std::array<std::string, kFields> values;
  std::array<CellWrite, kFields> cells;
  for (size_t field = 0; field < kFields; ++field) {
    values.at(field) = thread.NewValue();
    cells.at(field) = {FieldName(field), values.at(field), std::nullopt};
  }
  Check(store_.PutRow(options_.dataset, KeyOf(record), cells, {}).status());
}

void YcsbRecords::Insert(Thread& thread) {
  const uint64_t record = inserted_.fetch_add(1) + options_.records;
  Put(record, thread);
  // Inserts of earlier records may still be in flight; they count as done.
  uint64_t there = records_.load();
  while (there < record + 1 && !records_.compare_exchange_weak(there, record + 1)) continue;
}

void YcsbRecords::Scan(uint64_t record, uint64_t rows) {
  const auto cursor = store_.ScanRows(options_.dataset, {.start = KeyOf(record), .end = {}, .shard = {}}, {});
  Check(cursor.status());
  ScannedRow row;
  for (uint64_t i = 0; i < rows; ++i) {
    const auto more = (*cursor)->Next(row);
    Check(more.status());
    if (!*more) break;
  }
}

}  // namespace kvstore::bench
