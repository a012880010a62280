#include "backends/rocksdb/expired_filter.h"

#include <string>
#include <string_view>

#include "backends/rocksdb/cell_key.h"
#include "backends/rocksdb/trimmer.h"

namespace kvstore::rocks {
namespace {

/// Used by one compaction thread.
class ExpiredFilter : public rocksdb::CompactionFilter {
 public:
  ExpiredFilter(std::shared_ptr<FamilySettings> settings, std::shared_ptr<Trimmer> trimmer)
      : settings_(std::move(settings)),
        trimmer_(std::move(trimmer)),
        oldest_(settings_->OldestVisible()),
        max_versions_(settings_->max_versions) {}

  ~ExpiredFilter() override { settings_->expired_cells += expired_; }

  const char* Name() const override { return "kvstore.ExpiredFilter"; }

  // Decides by key, so that values kept apart are not read.
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
  // The interface is const, its use is not: one filter serves one compaction, key by key.
  mutable std::string column_;  // enc(row) enc(column) of the last key
  mutable uint64_t versions_ = 0;
  mutable uint64_t expired_ = 0;
};

}  // namespace

std::unique_ptr<rocksdb::CompactionFilter> ExpiredFilterFactory::CreateCompactionFilter(
    const rocksdb::CompactionFilter::Context&) {
  return std::make_unique<ExpiredFilter>(settings_, trimmer_);
}

}  // namespace kvstore::rocks
