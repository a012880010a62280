#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "reports/bits.h"
#include "reports/byte_reader.h"
#include "reports/chunk.h"
#include "reports/exact_sum.h"
#include "reports/steps.h"

namespace kvstore::reports {

/// Walks the series of a chunk in the order of their segments. Externally synchronised; neither copied nor
/// moved.
///
/// It keeps all that it looks at for each series in itself, in cache lines of its own: small pieces of the
/// heap are neighbours of those that other threads write.
class alignas(64) SeriesReader {
 public:
  /// `keys` is how many segment keys the report has by now: a chunk that was written before the last ones
  /// were added has the ID 0, their default, for them. The chunk must outlive the reader.
  static absl::StatusOr<std::unique_ptr<SeriesReader>> Make(const Chunk& chunk, uint32_t keys);
  SeriesReader(const SeriesReader&) = delete;
  SeriesReader& operator=(const SeriesReader&) = delete;

  /// Goes to the next series, passing over the values of the one before unless they were read. False at the
  /// end. DATA_LOSS if the chunk does not decode, also when its end is found to be wrong.
  absl::StatusOr<bool> Next();
  /// The IDs of the series that Next has found, one for each key.
  std::span<const uint32_t> segments() const { return {segments_.data(), segments_.size()}; }
  /// The times of its points, ms, ascending strictly.
  const std::vector<int64_t>& times() const { return times_; }
  /// Changes whenever times() does: most series have the times of the one before, so that what was made of
  /// these need not be made again.
  uint64_t times_number() const { return times_number_; }
  /// Reads its points, once. DATA_LOSS as Next.
  absl::Status Read(SeriesPoints& points);
  /// Reads the values of its points alone, in place of Read. False, and nothing was read, if they are not
  /// integers, or some that only Read unpacks. DATA_LOSS as Next.
  absl::StatusOr<bool> ReadIntegers(std::vector<int64_t>& integers);
  /// Reads only their sums over runs of times(), in place of Read; false as ReadIntegers. DATA_LOSS as Next.
  absl::StatusOr<bool> ReadSums(std::span<const StepRun> runs, std::vector<Int128>& sums);

 private:
  SeriesReader(const Chunk& chunk, uint32_t keys);
  absl::Status Damaged() const;
  bool ReadSegments();
  bool ReadTimes();
  void SkipValues();
  /// Reads the values by a function of BitReader&, which says whether it can.
  template <typename Unpack>
  absl::StatusOr<bool> ReadBy(const Unpack& unpack);

  /// A segment key that the chunk has.
  struct Key {
    std::span<const uint32_t> values;  // the list of the directory
    int width = 0;                     // of a position in it, in bits
    uint32_t position = 0;             // of the series
  };

  const ChunkDirectory& directory_;
  const bool has_numbers_;  // not sketches
  const ChunkDirectory::Writes writes_;
  std::string room_;  // what the body is decompressed into
  BitReader bits_;
  ByteReader sketches_;
  absl::InlinedVector<Key, 8> keys_;
  absl::InlinedVector<uint32_t, 8> segments_;
  std::vector<uint64_t> units_;  // where times are unpacked, in units from the chunk's first
  std::vector<int64_t> times_;
  uint64_t times_number_ = 0;  // how many lists of times were unpacked
  uint64_t series_ = 0;        // how many were found
  uint64_t points_ = 0;        // of those
  bool unread_ = false;        // the values of the series are still in front
};

}  // namespace kvstore::reports
