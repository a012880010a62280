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
      bits_(""),
      sketches_(""),
      positions_(directory_.segment_values.size(), 0),
      segments_(keys, 0) {
  for (const auto& values : directory_.segment_values) {
    widths_.push_back(values.empty() ? 0 : BitWidth(values.size() - 1));
  }
}

absl::Status SeriesReader::Damaged() const { return absl::DataLossError("a chunk's body does not decode"); }

absl::StatusOr<bool> SeriesReader::Next() {
  if (directory_.points == 0) return false;
  if (unread_) SkipValues();
  if (bits_.failed() || sketches_.failed()) return Damaged();
  if (series_ == directory_.series) {
    // What fills the last byte is all that may be left.
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
  for (size_t key = 0; key < positions_.size(); ++key) {
    const uint64_t at = bits_.Read(widths_[key]);
    const auto& values = directory_.segment_values[key];
    if (at >= values.size() || (!greater && at < positions_[key])) return false;
    greater = greater || at > positions_[key];
    positions_[key] = static_cast<uint32_t>(at);
    segments_[key] = values[at];
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
  if (directory_.writes == ChunkDirectory::Writes::kBoth) {
    for (size_t i = 0; i < count; ++i) points.adds.push_back(static_cast<uint8_t>(bits_.Read(1)));
  } else {
    points.adds.assign(count, directory_.writes == ChunkDirectory::Writes::kAdd ? 1 : 0);
  }
  if (directory_.kind == MetricKind::kValue) {
    UnpackNumbers(bits_, count, points.numbers);
  } else {
    for (size_t i = 0; i < count && !sketches_.failed(); ++i) {
      points.sketches.emplace_back(sketches_.Bytes(sketches_.Varint()));
    }
  }
  if (bits_.failed() || sketches_.failed()) return Damaged();
  return absl::OkStatus();
}

absl::StatusOr<bool> SeriesReader::ReadIntegers(std::vector<int64_t>& integers) {
  if (directory_.kind != MetricKind::kValue) return false;
  BitReader bits = bits_;
  if (directory_.writes == ChunkDirectory::Writes::kBoth) bits.Skip(times_.size());
  if (!UnpackIntegers(bits, times_.size(), integers)) return false;
  if (bits.failed()) return Damaged();
  bits_ = bits;
  unread_ = false;
  return true;
}

void SeriesReader::SkipValues() {
  unread_ = false;
  const size_t count = times_.size();
  if (directory_.writes == ChunkDirectory::Writes::kBoth) bits_.Skip(count);
  if (directory_.kind == MetricKind::kValue) {
    SkipNumbers(bits_, count);
  } else {
    for (size_t i = 0; i < count; ++i) sketches_.Bytes(sketches_.Varint());
  }
}

}  // namespace kvstore::reports
