#include <array>
#include <vector>

#include "bench/harness/report.h"
#include "bench/sequences/sequence_store.h"

namespace kvstore::bench {
namespace {

constexpr char kDataset[] = "kv_bench_sequences";

class KvSequences : public SequenceStore {
 public:
  KvSequences(KVStore& store, Durability durability) : store_(store), durability_(durability) {}
  ~KvSequences() override { store_.DropDataset(kDataset, {}).IgnoreError(); }

  void Append(int /*thread*/, const Event& event) override {
    const CellWrite cell{event.kind, event.value, event.timestamp};
    Check(store_.PutRow(kDataset, event.user, {&cell, 1}, {}).status());
  }

  void Load(std::span<const Event> events) override {
    std::vector<CellWrite> cells;
    std::vector<RowWrite> writes;
    cells.reserve(events.size());
    for (const Event& event : events) {
      cells.push_back({event.kind, event.value, event.timestamp});
      writes.push_back({.row = event.user, .cells = {&cells.back(), 1}});
    }
    const auto results = store_.PutRows(kDataset, writes);
    Check(results.status());
    for (const auto& result : *results) Check(result.status());
  }

  size_t ReadNewest(int /*thread*/, std::string_view user, std::string_view kind, uint32_t count) override {
    const auto row = store_.GetRow(kDataset, user, Newest(kind, count));
    Check(row.status());
    return row->items.empty() ? 0 : row->items[0].cells.size();
  }

  size_t ReadNewestOf(int /*thread*/, std::span<const std::string_view> users, std::string_view kind,
                      uint32_t count) override {
    std::vector<RowRead> reads;
    for (const std::string_view user : users) reads.push_back({user, Newest(kind, count)});
    const auto rows = store_.GetRows(kDataset, reads);
    Check(rows.status());
    size_t found = 0;
    for (const auto& row : *rows) {
      Check(row.status());
      if (!row->items.empty()) found += row->items[0].cells.size();
    }
    return found;
  }

  std::string promise() const override {
    return durability_ == Durability::kMachine
               ? "an answer survives power loss; all versions are kept, on disk"
               : "an answer survives kill -9; all versions are kept, on disk";
  }

 private:
  static ReadOptions Newest(std::string_view kind, uint32_t count) {
    ReadOptions read{.versions = count};
    read.columns.emplace().emplace_back(kind);
    return read;
  }

  KVStore& store_;
  const Durability durability_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SequenceStore>> MakeKvSequences(KVStore& store, Durability durability) {
  if (auto status = store.CreateDataset({.name = kDataset, .max_versions = 0, .durability = durability});
      !status.ok()) {
    return status;
  }
  return std::make_unique<KvSequences>(store, durability);
}

}  // namespace kvstore::bench
