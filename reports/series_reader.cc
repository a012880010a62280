#include "reports/series_reader.h"

#include <memory>
#include <utility>

#include "reports/columns.h"

namespace kvstore::reports {
namespace {

/// The bit stream at the front of a body, and the sketches behind it.
std::string_view BitStream(std::string_view body) {
  ByteReader in(body);
  return in.Bytes(in.Varint());
}

ByteReader BehindBitStream(std::string_view body) {
  ByteReader in(body);
  in.Bytes(in.Varint());
  return in;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SeriesReader>> SeriesReader::Make(const Chunk& chunk, uint32_t keys) {
  auto body = chunk.Body();
  if (!body.ok()) return body.status();
  if (chunk.directory().segment_values.size() > keys) {
    return absl::DataLossError("a chunk has more segment keys than its report");
  }
  return std::unique_ptr<SeriesReader>(new SeriesReader(chunk, keys, *std::move(body)));
}

SeriesReader::SeriesReader(const Chunk& chunk, uint32_t keys, std::string body)
    : directory_(chunk.directory()),
      body_(std::move(body)),
      bits_(BitStream(body_)),
      sketches_(BehindBitStream(body_)),
      segments_(keys, 0) {}

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
  points_ += units_.size();
  if (points_ > directory_.points) return Damaged();
  unread_ = true;
  return true;
}

bool SeriesReader::ReadSegments() {
  segments_before_ = segments_;
  for (size_t key = 0; key < directory_.segment_values.size(); ++key) {
    const auto& values = directory_.segment_values[key];
    const uint64_t at = bits_.Read(BitWidth(values.size() - 1));
    if (bits_.failed() || at >= values.size()) return false;
    segments_[key] = values[at];
  }
  // Merges rely on the order.
  return series_ == 0 || segments_before_ < segments_;
}

bool SeriesReader::ReadTimes() {
  const bool same = bits_.Read(1) == 1;
  if (bits_.failed() || (same && series_ == 0)) return false;
  if (same) return true;
  const uint64_t count = bits_.ReadSized();
  if (bits_.failed() || count == 0 || count > directory_.points - points_) return false;
  UnpackTimes(bits_, count, units_);
  const auto range = static_cast<uint64_t>(directory_.max_time - directory_.min_time);
  return !bits_.failed() && units_.back() <= range / directory_.time_unit;
}

absl::Status SeriesReader::Read(SeriesPoints& points) {
  points.clear();
  unread_ = false;
  const size_t count = units_.size();
  for (const uint64_t unit : units_) {
    points.times.push_back(directory_.min_time + static_cast<int64_t>(unit * directory_.time_unit));
  }
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

void SeriesReader::SkipValues() {
  unread_ = false;
  const size_t count = units_.size();
  if (directory_.writes == ChunkDirectory::Writes::kBoth) bits_.Skip(count);
  if (directory_.kind == MetricKind::kValue) {
    SkipNumbers(bits_, count);
  } else {
    for (size_t i = 0; i < count; ++i) sketches_.Bytes(sketches_.Varint());
  }
}

}  // namespace kvstore::reports
