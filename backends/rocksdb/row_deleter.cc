#include "backends/rocksdb/row_deleter.h"

#include <memory>
#include <utility>
#include <vector>

#include "backends/rocksdb/status.h"

namespace kvstore::rocks {

absl::StatusOr<uint64_t> DeleteCells(const Family& family, const std::string& begin, const std::string& end,
                                     rocksdb::WriteBatch& batch, std::vector<std::string>* deleted) {
  const auto it = family.iterators->Take(begin, end);
  std::vector<std::string> keys;
  for (it->Seek(begin); it->Valid() && keys.size() <= kMaxPointDeletes; it->Next())
    keys.push_back(it->key().ToString());
  if (!it->status().ok()) return ToStatus(it->status(), "read what is to be deleted");
  rocksdb::Status status;
  if (keys.size() > kMaxPointDeletes) {
    status = batch.DeleteRange(family.handle, begin, end);
  } else {
    for (const std::string& key : keys) {
      if (status.ok()) status = batch.Delete(family.handle, key);
    }
  }
  if (!status.ok()) return ToStatus(status, "delete");
  const uint64_t count = keys.size();
  if (deleted != nullptr && count <= kMaxPointDeletes) *deleted = std::move(keys);
  return count;
}

}  // namespace kvstore::rocks
