#pragma once

#include <rocksdb/compaction_filter.h>

#include <memory>

#include "backends/rocksdb/engine/family.h"

namespace kvstore::rocks {

class Trimmer;

/// Makes the compaction filters of a dataset of rows. A filter drops cells whose time to live has passed:
/// such a cell is never visible again, whatever else is stored, so its key alone decides.
///
/// A filter never drops surplus versions. It sees only the files of its own compaction, and a tombstone in
/// another file may delete a newer version that it has counted. It only suggests columns that look too long
/// to the trimmer, which reads all that is stored.
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
