#include "reports/series_reader.h"

#include <memory>
#include <utility>

#include "reports/columns.h"

namespace kvstore::reports {

absl::StatusOr<std::unique_ptr<SeriesReader>> SeriesReader::Make(const Chunk& chunk, uint32_t keys) {
  if (chunk.directory().segment_values.size() > keys) {
    return absl::DataLossError("a chunk has more segment keys than its report");
  }
  std::unique_ptr<SeriesReader> reader(new SeriesReader(chunk, keys));
  const auto body = chunk.Body(reader->room_);
  if (!body.ok()) return body.status();
  ByteReader in(*body);
  reader->bits_ = BitReader(in.Bytes(in.Varint()));
  reader->sketches_ = in;
  return reader;
}

SeriesReader::SeriesReader(const Chunk& chunk, uint32_t keys)
    : directory_(chunk.directory()),
      has_numbers_(directory_.kind == MetricKind::kValue),
      writes_(directory_.writes),
      bits_(""),
      sketches_(""),
      segments_(keys, 0) {
  for (const auto& values : directory_.segment_values) {
    keys_.push_back({.values = values, .width = values.empty() ? 0 : BitWidth(values.size() - 1)});
  }
}

absl::Status SeriesReader::Damaged() const { return absl::DataLossError("a chunk's body does not decode"); }

absl::StatusOr<bool> SeriesReader::Next() {
  if (directory_.points == 0) return false;
  if (unread_) SkipValues();
  if (bits_.failed() || sketches_.failed()) return Damaged();
  if (series_ == directory_.series) {
    // Only the bits that fill the last byte may be left.
    if (points_ != directory_.points || bits_.left() >= 8 || !sketches_.rest().empty()) return Damaged();
    return false;
  }
  if (!ReadSegments() || !ReadTimes()) return Damaged();
  ++series_;
  points_ += times_.size();
  if (points_ > directory_.points) return Damaged();
  unread_ = true;
  return true;
}

bool SeriesReader::ReadSegments() {
  // Merges rely on the order: the first position that differs from the one before is greater.
  bool greater = series_ == 0;
  for (size_t i = 0; i < keys_.size(); ++i) {
    Key& key = keys_[i];
    const uint64_t at = bits_.Read(key.width);
    if (at >= key.values.size() || (!greater && at < key.position)) return false;
    greater = greater || at > key.position;
    key.position = static_cast<uint32_t>(at);
    segments_[i] = key.values[at];
  }
  return greater && !bits_.failed();
}

bool SeriesReader::ReadTimes() {
  const bool same = bits_.Read(1) == 1;
  if (bits_.failed() || (same && series_ == 0)) return false;
  if (same) return true;
  const uint64_t count = bits_.ReadSized();
  if (bits_.failed() || count == 0 || count > directory_.points - points_) return false;
  UnpackTimes(bits_, count, units_);
  const auto range = static_cast<uint64_t>(directory_.max_time - directory_.min_time);
  if (bits_.failed() || units_.back() > range / directory_.time_unit) return false;
  ++times_number_;
  times_.clear();
  for (const uint64_t unit : units_) {
    times_.push_back(directory_.min_time + static_cast<int64_t>(unit * directory_.time_unit));
  }
  return true;
}

absl::Status SeriesReader::Read(SeriesPoints& points) {
  points.clear();
  unread_ = false;
  const size_t count = times_.size();
  points.times = times_;
  if (writes_ == ChunkDirectory::Writes::kBoth) {
    for (size_t i = 0; i < count; ++i) points.adds.push_back(static_cast<uint8_t>(bits_.Read(1)));
  } else {
    points.adds.assign(count, writes_ == ChunkDirectory::Writes::kAdd ? 1 : 0);
  }
  if (has_numbers_) {
    UnpackNumbers(bits_, count, points.numbers);
  } else {
    for (size_t i = 0; i < count && !sketches_.failed(); ++i) {
      points.sketches.emplace_back(sketches_.Bytes(sketches_.Varint()));
    }
  }
  if (bits_.failed() || sketches_.failed()) return Damaged();
  return absl::OkStatus();
}

template <typename Unpack>
absl::StatusOr<bool> SeriesReader::ReadBy(const Unpack& unpack) {
  if (!has_numbers_) return false;
  const uint64_t left = bits_.left();
  if (writes_ == ChunkDirectory::Writes::kBoth) bits_.Skip(times_.size());
  if (!unpack(bits_)) {
    bits_.ReturnTo(left);
    return false;
  }
  if (bits_.failed()) return Damaged();
  unread_ = false;
  return true;
}

absl::StatusOr<bool> SeriesReader::ReadIntegers(std::vector<int64_t>& integers) {
  return ReadBy([&](BitReader& bits) { return UnpackIntegers(bits, times_.size(), integers); });
}

absl::StatusOr<bool> SeriesReader::ReadSums(std::span<const StepRun> runs, std::vector<Int128>& sums) {
  return ReadBy([&](BitReader& bits) { return SumIntegers(bits, times_.size(), runs, sums); });
}

void SeriesReader::SkipValues() {
  unread_ = false;
  const size_t count = times_.size();
  if (writes_ == ChunkDirectory::Writes::kBoth) bits_.Skip(count);
  if (has_numbers_) {
    SkipNumbers(bits_, count);
  } else {
    for (size_t i = 0; i < count; ++i) sketches_.Bytes(sketches_.Varint());
  }
}

}  // namespace kvstore::reports
