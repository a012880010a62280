#include <rocksdb/write_batch.h>

#include <utility>
#include <vector>

#include "backends/rocksdb/rows/cell_key.h"
#include "bench/harness/bench_store.h"
#include "bench/harness/report.h"
#include "bench/sequences/sequence_store.h"

namespace kvstore::bench {
namespace {

constexpr std::string_view kEnd("\0\1", 2);       // of an encoded component
constexpr std::string_view kAfterEnd("\0\2", 2);  // after all that have this component

class RocksSequences : public SequenceStore {
 public:
  RocksSequences(std::unique_ptr<BenchStore> store, Durability durability)
      : store_(std::move(store)), handle_(store_->Handle("raw")) {
    write_.sync = durability == Durability::kMachine;
  }

  void Append(int /*thread*/, const Event& event) override { Load({&event, 1}); }

  void Load(std::span<const Event> events) override {
    rocksdb::WriteBatch batch;
    std::string key;
    for (const Event& event : events) {
      key.assign(event.user).append(kEnd).append(event.kind).append(kEnd);
      rocks::AppendTimestamp(key, event.timestamp);
      CheckRaw(batch.Put(handle_, key, rocksdb::Slice(event.value.data(), event.value.size())));
    }
    CheckRaw(store_->db().Write(write_, &batch));
  }

  size_t ReadNewest(int /*thread*/, std::string_view user, std::string_view kind, uint32_t count) override {
    std::string key(user);
    key.append(kEnd).append(kind).append(kEnd);
    std::string bound(user);
    bound.append(kAfterEnd);
    const rocksdb::Slice end(bound);
    rocksdb::ReadOptions read;
    read.iterate_upper_bound = &end;
    const std::unique_ptr<rocksdb::Iterator> it(store_->db().NewIterator(read, handle_));
    std::vector<std::string> values;
    for (it->Seek(key); values.size() < count && it->Valid() && it->key().starts_with(key); it->Next()) {
      values.push_back(it->value().ToString());
    }
    CheckRaw(it->status());
    return values.size();
  }

  std::string promise() const override {
    return write_.sync ? "an answer survives power loss; all versions are kept, on disk"
                       : "an answer survives kill -9; all versions are kept, on disk";
  }

 private:
  static void CheckRaw(const rocksdb::Status& status) {
    if (!status.ok()) Check(absl::UnavailableError(status.ToString()));
  }

  const std::unique_ptr<BenchStore> store_;
  rocksdb::ColumnFamilyHandle* const handle_;
  rocksdb::WriteOptions write_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SequenceStore>> MakeRocksSequences(Durability durability) {
  auto store = BenchStore::Create("");
  if (!store.ok()) return store.status();
  if (auto status = (*store)->store().CreateDataset({.name = "raw", .max_versions = 0}); !status.ok())
    return status;
  return std::make_unique<RocksSequences>(*std::move(store), durability);
}

}  // namespace kvstore::bench
