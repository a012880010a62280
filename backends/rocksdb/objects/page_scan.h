#pragma once

#include <rocksdb/iterator.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine/engine.h"
#include "kvstore_api/types.h"

/// Scans of objects and of mappings share this. Their stored keys begin with be64(id).
namespace kvstore::rocks {

/// Walks the keys of [lower, upper) for one page of a scan, as they were when it began. It passes deleted
/// keys as far as the limits of the thread's call and its ScanBudget allow. Externally synchronised.
class PageScan {
 public:
  enum class At {
    kKey,    ///< At a key and its value.
    kEnd,    ///< All keys were passed.
    kPaused  ///< The budget is spent. The scan is to go on at key(), which is after `lower`.
  };

  /// Engine and family must outlive it.
  PageScan(Engine& engine, const Family& family, std::string lower, std::string upper);
  PageScan(const PageScan&) = delete;
  PageScan& operator=(const PageScan&) = delete;

  /// Passes deleted keys, and says where the scan is then.
  absl::StatusOr<At> Find();
  /// Valid after Find, until the scan moves on.
  std::string_view key() const { return key_; }
  std::string_view value() const { return it_->value().ToStringView(); }
  void Next() { it_->Next(); }
  /// Moves to the first key that is not below this one.
  void Seek(std::string_view key) { it_->Seek({key.data(), key.size()}); }

 private:
  const std::string lower_;
  const std::string upper_;
  const rocksdb::Slice upper_slice_;  // the iterator reads it at each move
  std::unique_ptr<rocksdb::Iterator> it_;
  std::string key_;
  uint64_t found_ = 0;  // how many keys were found
};

/// Splits the IDs that the keys of a family begin with into about `wanted` partitions of similar size.
std::vector<Partition> PartitionIds(Engine& engine, const Family& family, size_t wanted);

}  // namespace kvstore::rocks
