#include "reports/chunk_directory.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/big_endian.h"
#include "reports/byte_reader.h"

namespace kvstore::reports {
namespace {

using Writes = ChunkDirectory::Writes;

void AppendNumber(std::string& out, const Number& number) {
  out.push_back(number.is_integer() ? 1 : 0);
  AppendBigEndian(out, number.bits());
}

Number ReadNumber(ByteReader& in) {
  const uint8_t is_integer = in.Byte();
  const std::string_view bytes = in.Bytes(8);
  if (in.failed() || is_integer > 1) {
    in.Fail();
    return {};
  }
  const auto bits = ReadBigEndian<uint64_t>(bytes);
  return is_integer == 1 ? Number::Integer(static_cast<int64_t>(bits))
                         : Number::Real(std::bit_cast<double>(bits));
}

/// A time from 0 to `most`.
int64_t ReadStoredTime(ByteReader& in, int64_t most = kMaxTimeMs) {
  const uint64_t time = in.Varint();
  if (time <= static_cast<uint64_t>(most)) return static_cast<int64_t>(time);
  in.Fail();
  return 0;
}

/// Bits of the byte after the covers.
constexpr uint8_t kMerged = 1;
constexpr uint8_t kRepeatable = 2;

void AppendOrder(std::string& out, const ChunkOrder& order) {
  AppendVarint(out, order.timestamp);
  out += order.name;
}

void AppendNotes(std::string& out, const ChunkNotes& notes) {
  AppendVarint(out, notes.deletes.size());
  for (const TimeSpan& span : notes.deletes) {
    AppendVarint(out, static_cast<uint64_t>(span.from));
    AppendVarint(out, static_cast<uint64_t>(span.to));
  }
  AppendVarint(out, notes.covers.size());
  for (const ChunkName& name : notes.covers) out += name;
  out.push_back(static_cast<char>((notes.merged ? kMerged : 0) | (notes.repeatable ? kRepeatable : 0)));
  if (notes.merged) {
    AppendOrder(out, notes.merged->oldest);
    AppendOrder(out, notes.merged->newest);
  }
}

ChunkOrder ReadOrder(ByteReader& in) {
  const uint64_t timestamp = in.Varint();
  return {timestamp, ChunkName(in.Bytes(kChunkNameBytes))};
}

ChunkNotes ReadNotes(ByteReader& in) {
  ChunkNotes notes;
  const uint64_t deletes = in.Varint();
  for (uint64_t i = 0; i < deletes && !in.failed(); ++i) {
    const int64_t from = ReadStoredTime(in);
    const int64_t to = ReadStoredTime(in, kMaxTimeMs + 1);
    notes.deletes.push_back({from, to});
  }
  const uint64_t covers = in.Varint();
  for (uint64_t i = 0; i < covers && !in.failed(); ++i) {
    notes.covers.emplace_back(in.Bytes(kChunkNameBytes));
  }
  const uint8_t form = in.Byte();
  if (form > (kMerged | kRepeatable)) in.Fail();
  notes.repeatable = (form & kRepeatable) != 0;
  if ((form & kMerged) != 0) {
    notes.merged.emplace();
    notes.merged->oldest = ReadOrder(in);
    notes.merged->newest = ReadOrder(in);
    if (notes.merged->newest < notes.merged->oldest) in.Fail();
  }
  return notes;
}

/// The IDs of one key, as the first one and then the differences.
std::vector<uint32_t> ReadValues(ByteReader& in, uint64_t series) {
  std::vector<uint32_t> values;
  const uint64_t count = in.Varint();
  if (count == 0 || count > series) in.Fail();
  uint64_t id = 0;
  for (uint64_t i = 0; i < count && !in.failed(); ++i) {
    const uint64_t difference = in.Varint();
    if (difference > UINT32_MAX - id || (i > 0 && difference == 0)) {
      in.Fail();
      break;
    }
    id += difference;
    values.push_back(static_cast<uint32_t>(id));
  }
  return values;
}

void ReadPointFields(ByteReader& in, ChunkDirectory& directory) {
  directory.series = in.Varint();
  directory.min_time = ReadStoredTime(in);
  directory.max_time = ReadStoredTime(in);
  directory.time_unit = in.Varint();
  if (directory.series == 0 || directory.series > directory.points || directory.time_unit == 0 ||
      directory.min_time > directory.max_time) {
    return in.Fail();
  }
  if (directory.kind == MetricKind::kValue) {
    directory.min_value = ReadNumber(in);
    directory.max_value = ReadNumber(in);
    const uint8_t all_integers = in.Byte();
    const bool ends_are = directory.min_value.is_integer() && directory.max_value.is_integer();
    if (all_integers > (ends_are ? 1 : 0)) in.Fail();
    directory.all_integers = all_integers == 1;
  }
  directory.body_bytes = in.Varint();
  if (directory.body_bytes > kMaxChunkBodyBytes) return in.Fail();
  for (auto& values : directory.segment_values) values = ReadValues(in, directory.series);
}

/// Finds the range of the times, and the greatest unit in which all lie away from the first.
void SurveyTimes(const PointBlock& points, ChunkDirectory& directory) {
  directory.min_time = points.times(0).front();
  for (size_t i = 0; i < points.series(); ++i) {
    const auto times = points.times(i);
    directory.min_time = std::min(directory.min_time, times.front());
    directory.max_time = std::max(directory.max_time, times.back());
  }
  uint64_t unit = 0;
  for (size_t i = 0; i < points.series(); ++i) {
    const auto times = points.times(i);
    // Most series have the times of their neighbours, which are looked at once.
    if (i > 0 && std::ranges::equal(times, points.times(i - 1))) continue;
    for (const int64_t time : times) {
      const auto distance = static_cast<uint64_t>(time - directory.min_time);
      // A division is much cheaper than finding a divisor, which is rarely needed.
      if (unit == 0 || distance % unit != 0) unit = std::gcd(unit, distance);
    }
  }
  directory.time_unit = std::max<uint64_t>(unit, 1);
}

}  // namespace

ChunkDirectory Survey(const PointBlock& points) {
  ChunkDirectory directory{.kind = points.kind(), .series = points.series(), .points = points.points()};
  directory.segment_values.resize(points.keys());
  if (points.points() == 0) return directory;
  for (size_t key = 0; key < points.keys(); ++key) {
    auto& values = directory.segment_values[key];
    for (size_t i = 0; i < points.series(); ++i) {
      // Series are sorted, so that many have the same value as the one before.
      const uint32_t value = points.segments(i)[key];
      if (values.empty() || values.back() != value) values.push_back(value);
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  SurveyTimes(points, directory);
  const SeriesPoints& all = points.all();
  if (!all.numbers.empty()) {
    // A function object rather than a pointer, so that the comparison is inlined.
    const auto less = [](const Number& a, const Number& b) { return Less(a, b); };
    const auto [low, high] = std::minmax_element(all.numbers.begin(), all.numbers.end(), less);
    directory.min_value = *low;
    directory.max_value = *high;
    directory.all_integers = std::ranges::all_of(all.numbers, &Number::is_integer);
  }
  const auto adds = static_cast<size_t>(std::count(all.adds.begin(), all.adds.end(), uint8_t{1}));
  directory.writes = adds == 0 ? Writes::kReplace : adds == all.adds.size() ? Writes::kAdd : Writes::kBoth;
  return directory;
}

std::string EncodeDirectory(const ChunkDirectory& directory) {
  std::string out;
  out.push_back(static_cast<char>(directory.kind));
  out.push_back(static_cast<char>(directory.writes));
  AppendVarint(out, directory.segment_values.size());
  AppendNotes(out, directory.notes);
  AppendVarint(out, directory.points);
  if (directory.points == 0) return out;
  AppendVarint(out, directory.series);
  AppendVarint(out, static_cast<uint64_t>(directory.min_time));
  AppendVarint(out, static_cast<uint64_t>(directory.max_time));
  AppendVarint(out, directory.time_unit);
  if (directory.kind == MetricKind::kValue) {
    AppendNumber(out, directory.min_value);
    AppendNumber(out, directory.max_value);
    out.push_back(directory.all_integers ? 1 : 0);
  }
  AppendVarint(out, directory.body_bytes);
  for (const auto& values : directory.segment_values) {
    AppendVarint(out, values.size());
    uint32_t before = 0;
    for (const uint32_t value : values) {
      AppendVarint(out, value - before);
      before = value;
    }
  }
  return out;
}

absl::StatusOr<ChunkDirectory> DecodeDirectory(std::string_view bytes) {
  ByteReader in(bytes);
  ChunkDirectory directory;
  const uint8_t kind = in.Byte();
  const uint8_t writes = in.Byte();
  const uint64_t keys = in.Varint();
  const bool known = kind >= 1 && kind <= 3 && writes <= 2 && keys <= kMaxSegmentKeys;
  if (in.failed() || !known) return absl::DataLossError("a chunk's directory does not decode");
  directory.kind = static_cast<MetricKind>(kind);
  directory.writes = static_cast<Writes>(writes);
  directory.segment_values.resize(keys);
  directory.notes = ReadNotes(in);
  directory.points = in.Varint();
  if (directory.points > kMaxChunkPoints) in.Fail();
  if (directory.points > 0) ReadPointFields(in, directory);
  if (in.failed() || !in.rest().empty()) return absl::DataLossError("a chunk's directory does not decode");
  return directory;
}

}  // namespace kvstore::reports
