#include "backends/rocksdb/rows/expired_filter.h"

#include <string>
#include <string_view>

#include "backends/rocksdb/engine/trimmer.h"
#include "backends/rocksdb/rows/cell_key.h"
#include "base/fail_point.h"

namespace kvstore::rocks {
namespace {

/// The filter of one compaction, used by one thread.
class ExpiredFilter : public rocksdb::CompactionFilter {
 public:
  ExpiredFilter(std::shared_ptr<FamilySettings> settings, std::shared_ptr<Trimmer> trimmer)
      : settings_(std::move(settings)),
        trimmer_(std::move(trimmer)),
        oldest_(settings_->OldestVisible()),
        max_versions_(settings_->max_versions) {}

  ~ExpiredFilter() override { settings_->expired_cells += expired_; }

  const char* Name() const override { return "kvstore.ExpiredFilter"; }

  // The key decides, so values in blob files are not read.
  Decision FilterBlobByKey(int, const rocksdb::Slice& key, std::string*, std::string*) const override {
    return Expired(key.ToStringView()) ? Decision::kRemove : Decision::kKeep;
  }

  Decision FilterV2(int, const rocksdb::Slice& key, ValueType, const rocksdb::Slice&, std::string*,
                    std::string*) const override {
    return Expired(key.ToStringView()) ? Decision::kRemove : Decision::kKeep;
  }

 private:
  bool Expired(std::string_view key) const {
    if (key.size() < kTimestampBytes) return false;
    if (TimestampOf(key) < oldest_) {
      ++expired_;
      return true;
    }
    if (max_versions_ != 0) Count(key.substr(0, key.size() - kTimestampBytes));
    return false;
  }

  void Count(std::string_view column) const {
    if (column != column_) {
      column_.assign(column);
      versions_ = 0;
    }
    if (++versions_ == max_versions_ + uint64_t{1}) trimmer_->Suggest(settings_, column_);
  }

  const std::shared_ptr<FamilySettings> settings_;
  const std::shared_ptr<Trimmer> trimmer_;
  const uint64_t oldest_;
  const uint32_t max_versions_;
  // RocksDB calls const methods, but one filter serves one compaction, key by key, so it may keep state.
  mutable std::string column_;  // enc(row) enc(column) of the last key
  mutable uint64_t versions_ = 0;
  mutable uint64_t expired_ = 0;
};

}  // namespace

std::unique_ptr<rocksdb::CompactionFilter> ExpiredFilterFactory::CreateCompactionFilter(
    const rocksdb::CompactionFilter::Context&) {
  auto filter = std::make_unique<ExpiredFilter>(settings_, trimmer_);
  Reached("compaction.begun");
  return filter;
}

}  // namespace kvstore::rocks
