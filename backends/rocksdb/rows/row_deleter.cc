#include "backends/rocksdb/rows/row_deleter.h"

#include <memory>
#include <utility>
#include <vector>

#include "backends/rocksdb/engine/deleted.h"
#include "backends/rocksdb/engine/status.h"

namespace kvstore::rocks {

absl::StatusOr<uint64_t> DeleteCells(const Family& family, const std::string& begin, const std::string& end,
                                     rocksdb::WriteBatch& batch, uint32_t& ranges,
                                     std::vector<std::string>* deleted) {
  const size_t most = batch.Count() < kManyPointDeletes ? kMaxPointDeletes : kFewPointDeletes;
  const auto it = family.iterators->Acquire(begin, end);
  rocksdb::Status status;
  uint64_t count = 0;
  batch.SetSavePoint();
  for (it->Seek(begin); status.ok(); it->Next()) {
    if (!it->Valid()) {
      if (auto passed = PassDeleted(*it); !passed.ok()) return passed;
      if (!it->Valid()) break;
    }
    if (++count > most) break;
    status = batch.Delete(family.handle, it->key());
    if (deleted != nullptr) deleted->push_back(it->key().ToString());
  }
  if (!it->status().ok()) return ToStatus(it->status(), "read what is to be deleted");
  if (count <= most) {
    if (status.ok()) status = batch.PopSavePoint();
  } else {
    if (status.ok()) status = batch.RollbackToSavePoint();
    if (status.ok()) status = batch.DeleteRange(family.handle, begin, end);
    ++ranges;
    if (deleted != nullptr) deleted->clear();
  }
  if (!status.ok()) return ToStatus(status, "delete");
  return count;
}

void FlushRanges(Family& family, uint32_t ranges) {
  if (ranges == 0 || family.ranges.fetch_add(ranges, std::memory_order_relaxed) + ranges < kMaxRanges) return;
  family.ranges.store(0, std::memory_order_relaxed);
  rocksdb::FlushOptions options;
  options.wait = false;
  // This delete waits rather than all writes.
  options.allow_write_stall = false;
  // A flush that fails, on a full disk for example, is reported to the next write.
  family.db->Flush(options, family.handle).PermitUncheckedError();
}

}  // namespace kvstore::rocks
