#pragma once

#include <rocksdb/compaction_filter.h>

#include <memory>

#include "backends/rocksdb/family.h"

namespace kvstore::rocks {

class Trimmer;

/// Makes the compaction filters of a dataset of rows. A filter drops cells whose time to live has passed:
/// whatever else is stored, such a cell is never visible again, so its key alone decides.
///
/// It never drops surplus versions: it sees the files of its own compaction, and a newer version there may be
/// deleted by a tombstone elsewhere. It only suggests columns that look too long to the trimmer, which looks
/// at all that is stored.
class ExpiredFilterFactory : public rocksdb::CompactionFilterFactory {
 public:
  ExpiredFilterFactory(std::shared_ptr<FamilySettings> settings, std::shared_ptr<Trimmer> trimmer)
      : settings_(std::move(settings)), trimmer_(std::move(trimmer)) {}

  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context& context) override;
  const char* Name() const override { return "kvstore.ExpiredFilter"; }

 private:
  const std::shared_ptr<FamilySettings> settings_;
  const std::shared_ptr<Trimmer> trimmer_;
};

}  // namespace kvstore::rocks
