#include "reports/chunk.h"

#include <gtest/gtest.h>

#include <map>

#include "reports/chunk_directory.h"
#include "reports/crc32c.h"
#include "reports/hyperloglog.h"
#include "reports/series_reader.h"
#include "tests/reports/hex.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::Hex;
using kvstore::testing::Random;

using Series = std::map<std::vector<uint32_t>, SeriesPoints>;

PointBlock BlockOf(const Series& series, MetricKind kind, uint32_t keys) {
  PointBlock block(kind, keys);
  for (const auto& [segments, points] : series) block.Append(segments, points);
  return block;
}

/// All series of a chunk; with `every` above 1 only every so manieth is read, the others are passed over.
absl::StatusOr<Series> ReadAll(const std::string& bytes, uint32_t keys, size_t every = 1) {
  auto chunk = Chunk::Open(bytes);
  if (!chunk.ok()) return chunk.status();
  auto reader = SeriesReader::Make(*chunk, keys);
  if (!reader.ok()) return reader.status();
  Series series;
  for (size_t i = 0;; ++i) {
    const auto more = (*reader)->Next();
    if (!more.ok()) return more.status();
    if (!*more) return series;
    if (i % every != 0) continue;
    auto& points = series[{(*reader)->segments().begin(), (*reader)->segments().end()}];
    if (auto status = (*reader)->Read(points); !status.ok()) return status;
  }
}

void ExpectEqual(const Series& a, const Series& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [segments, points] : a) {
    const auto other = b.find(segments);
    ASSERT_NE(other, b.end());
    EXPECT_EQ(points.times, other->second.times);
    EXPECT_EQ(points.numbers, other->second.numbers);
    EXPECT_EQ(points.sketches, other->second.sketches);
    EXPECT_EQ(points.adds, other->second.adds);
  }
}

Series RandomSeries(Random& random, MetricKind kind, uint32_t keys) {
  Series series;
  const uint64_t adds = random.Below(3);
  const bool same_times = random.OneIn(2);
  for (uint64_t i = 1 + random.Below(30); i > 0; --i) {
    std::vector<uint32_t> segments;
    for (uint32_t key = 0; key < keys; ++key)
      segments.push_back(static_cast<uint32_t>(random.Below(6)) * 1'000);
    SeriesPoints& points = series[segments];
    points.clear();
    int64_t time = 1'356'998'400'000 + (same_times ? 0 : static_cast<int64_t>(random.Below(100)) * 3'600'000);
    for (uint64_t p = same_times ? 8 : 1 + random.Below(10); p > 0; --p) {
      points.times.push_back(time);
      time += 3'600'000 * (same_times ? 1 : 1 + static_cast<int64_t>(random.Below(5)));
      points.adds.push_back(adds == 2 ? static_cast<uint8_t>(random.Below(2)) : static_cast<uint8_t>(adds));
      if (kind == MetricKind::kValue) {
        points.numbers.push_back(random.OneIn(9) ? Number::Real(static_cast<double>(random.Below(100)) / 7)
                                                 : Number::Integer(static_cast<int64_t>(random.Below(50))));
      } else {
        points.sketches.push_back(std::string(random.Below(20), 'x'));
      }
    }
  }
  return series;
}

TEST(Crc32c, IsTheOneOfThePublishedExample) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c("56789", Crc32c("1234")), 0xE3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Chunk, HasTheseBytes) {
  PointBlock block(MetricKind::kValue, 2);
  block.Append(std::vector<uint32_t>{1, 2}, {.times = {86'400'000, 2 * 86'400'000},
                                             .numbers = {Number::Integer(5), Number::Integer(7)},
                                             .adds = {0, 0}});
  block.Append(std::vector<uint32_t>{1, 3}, {.times = {86'400'000, 2 * 86'400'000},
                                             .numbers = {Number::Real(0.5), Number::Real(0.5)},
                                             .adds = {0, 0}});
  ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodeChunk(block, {}));
  EXPECT_EQ(Hex(bytes),
            "010055f77b88"  // version, form, checksum
            "2d"            // 45 bytes of directory
            "010002000000"  // values, replacing, 2 keys, no notes
            "0402"
            "80b89929"
            "80f0b252"
            "80b89929"  // 4 points, 2 series, times, a day
            "003fe0000000000000"
            "010000000000000007"  // from 0.5 to 7
            "00"                  // not all are integers
            "12"
            "0101"
            "020201"  // 18 bytes of body, the IDs
            "11"
            "08040482a0023c8720000000000000f80f");
  const ChunkNotes notes{.deletes = {{1'000, 2'000}},
                         .merged = ChunkStretch{{70, "0123456789abcdef01"}, {77, "0123456789abcdef02"}},
                         .covers = {"0123456789abcdef01", "0123456789abcdef02"},
                         .repeatable = true};
  ASSERT_OK_AND_ASSIGN(const std::string noted, EncodeChunk(PointBlock(MetricKind::kDistinct, 0), notes));
  EXPECT_EQ(Hex(noted),
            "01000c4cea76"  // version, form, checksum
            "55"            // 85 bytes of directory
            "020000"        // sets, replacing, no keys
            "01e807d00f"    // a delete
            "02"            // two covers
            "303132333435363738396162636465663031"
            "303132333435363738396162636465663032"
            "03"  // merged, repeatable
            "46303132333435363738396162636465663031"
            "4d303132333435363738396162636465663032"
            "00");  // no points
  ASSERT_OK_AND_ASSIGN(const Chunk chunk, Chunk::Open(noted));
  EXPECT_EQ(chunk.directory().notes, notes);
  EXPECT_EQ(chunk.directory().points, 0u);
}

TEST(Chunk, AnySeriesComeBack) {
  Random random(testing::Seed("chunk"));
  for (int round = 0; round < 300; ++round) {
    const auto kind = static_cast<MetricKind>(1 + random.Below(3));
    const auto keys = static_cast<uint32_t>(random.Below(4));
    const Series series = RandomSeries(random, kind, keys);
    ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodeChunk(BlockOf(series, kind, keys), {}));
    ASSERT_OK_AND_ASSIGN(const Series back, ReadAll(bytes, keys));
    ExpectEqual(series, back);
    // Passing over series changes nothing in the others.
    ASSERT_OK_AND_ASSIGN(const Series some, ReadAll(bytes, keys, 3));
    for (const auto& [segments, points] : some) {
      EXPECT_EQ(points.times, series.at(segments).times);
      EXPECT_EQ(points.numbers, series.at(segments).numbers);
    }
  }
}

TEST(Chunk, IntegersAreReadAloneAsTheyAreWithTheirPoints) {
  Random random(testing::Seed("integers alone"));
  size_t alone = 0;
  for (int round = 0; round < 100; ++round) {
    const auto kind = static_cast<MetricKind>(1 + random.Below(3));
    const Series series = RandomSeries(random, kind, 2);
    ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodeChunk(BlockOf(series, kind, 2), {}));
    ASSERT_OK_AND_ASSIGN(const Chunk chunk, Chunk::Open(bytes));
    ASSERT_OK_AND_ASSIGN(const auto reader, SeriesReader::Make(chunk, 2));
    uint64_t number = 0;
    std::vector<int64_t> times_before;
    for (const auto& [segments, points] : series) {
      ASSERT_OK_AND_ASSIGN(const bool more, reader->Next());
      ASSERT_TRUE(more);
      EXPECT_EQ(reader->times(), points.times);
      EXPECT_EQ(reader->times_number() == number, reader->times() == times_before);
      number = reader->times_number();
      times_before = reader->times();
      if (random.OneIn(5)) continue;  // passed over
      std::vector<int64_t> integers;
      ASSERT_OK_AND_ASSIGN(const bool read, reader->ReadIntegers(integers));
      SeriesPoints others;
      if (read) {
        ++alone;
        for (const int64_t integer : integers) others.numbers.push_back(Number::Integer(integer));
      } else {
        ASSERT_OK(reader->Read(others));
      }
      EXPECT_EQ(others.numbers, points.numbers);
      EXPECT_EQ(others.sketches, points.sketches);
    }
    ASSERT_OK_AND_ASSIGN(const bool more, reader->Next());
    EXPECT_FALSE(more);
  }
  EXPECT_GT(alone, 100u);
}

TEST(Chunk, OlderLayoutsHaveTheDefaultOfNewKeys) {
  PointBlock block(MetricKind::kValue, 1);
  block.Append(std::vector<uint32_t>{4}, {.times = {0}, .numbers = {Number::Integer(1)}, .adds = {0}});
  ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodeChunk(block, {}));
  ASSERT_OK_AND_ASSIGN(const Series back, ReadAll(bytes, 3));
  EXPECT_EQ(back.begin()->first, (std::vector<uint32_t>{4, 0, 0}));
  EXPECT_THAT(ReadAll(bytes, 0), FailsWith(absl::StatusCode::kDataLoss, "more segment keys"));
}

TEST(Chunk, TheDirectorySaysWhatOccurs) {
  Random random(testing::Seed("directory"));
  const Series series = RandomSeries(random, MetricKind::kValue, 2);
  ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodeChunk(BlockOf(series, MetricKind::kValue, 2), {}));
  ASSERT_OK_AND_ASSIGN(const Chunk chunk, Chunk::Open(bytes));
  const ChunkDirectory& directory = chunk.directory();
  EXPECT_EQ(directory.series, series.size());
  for (const auto& [segments, points] : series) {
    for (size_t key = 0; key < 2; ++key) {
      const auto& values = directory.segment_values[key];
      EXPECT_NE(std::find(values.begin(), values.end(), segments[key]), values.end());
    }
    EXPECT_LE(directory.min_time, points.times.front());
    EXPECT_GE(directory.max_time, points.times.back());
    for (const Number& number : points.numbers) {
      EXPECT_FALSE(Less(number, directory.min_value));
      EXPECT_FALSE(Less(directory.max_value, number));
    }
  }
}

TEST(Chunk, TheDirectorySaysWhetherAllNumbersAreIntegers) {
  const auto says = [](const std::vector<Number>& numbers) {
    PointBlock block(MetricKind::kValue, 0);
    SeriesPoints points;
    for (const Number& number : numbers) {
      points.times.push_back(static_cast<int64_t>(points.times.size()));
      points.numbers.push_back(number);
      points.adds.push_back(1);
    }
    block.Append({}, points);
    const auto bytes = EncodeChunk(block, {});
    EXPECT_OK(bytes);
    const auto chunk = Chunk::Open(*bytes);
    EXPECT_OK(chunk);
    return chunk->directory().all_integers;
  };
  EXPECT_TRUE(says({Number::Integer(1), Number::Integer(3), Number::Integer(2)}));
  // The least and the greatest alone do not say it.
  EXPECT_FALSE(says({Number::Integer(1), Number::Real(2), Number::Integer(3)}));
  EXPECT_FALSE(says({Number::Real(1)}));
}

TEST(Chunk, DailyIntegersTakeFewBytes) {
  Random random(testing::Seed("daily"));
  PointBlock block(MetricKind::kValue, 3);
  for (uint32_t i = 0; i < 1'000; ++i) {
    SeriesPoints points;
    for (int64_t day = 0; day < 30; ++day) {
      points.times.push_back(day * 86'400'000);
      points.numbers.push_back(Number::Integer(static_cast<int64_t>(1'000 + random.Below(1'000))));
      points.adds.push_back(0);
    }
    block.Append(std::vector<uint32_t>{i / 100, i / 10 % 10, i % 10}, points);
  }
  ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodeChunk(block, {}));
  EXPECT_LT(bytes.size(), 30'000u * 3);
  RecordProperty("bytes_of_30000_points", static_cast<int>(bytes.size()));
}

TEST(Chunk, AnyChangedByteIsFound) {
  Random random(testing::Seed("changed"));
  const Series series = RandomSeries(random, MetricKind::kValue, 2);
  ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodeChunk(BlockOf(series, MetricKind::kValue, 2), {}));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ (1 << random.Below(8)));
    EXPECT_THAT(Chunk::Open(changed), FailsWith(absl::StatusCode::kDataLoss, "")) << i;
    EXPECT_THAT(Chunk::Open(bytes.substr(0, i)), FailsWith(absl::StatusCode::kDataLoss, "")) << i;
  }
}

/// Returns the chunk with the right checksum of its bytes, so that the decoders see them.
std::string Resealed(std::string bytes) {
  const uint32_t crc =
      Crc32c(std::string_view(bytes).substr(6), Crc32c(std::string_view(bytes).substr(0, 2)));
  for (int i = 0; i < 4; ++i) bytes[static_cast<size_t>(2 + i)] = static_cast<char>(crc >> (24 - 8 * i));
  return bytes;
}

TEST(Chunk, HostileBytesAreRefusedOrDecode) {
  Random random(testing::Seed("hostile chunk"));
  size_t decoded = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto kind = static_cast<MetricKind>(1 + random.Below(3));
    PointBlock block(kind, 0);
    if (round % 50 == 0) block = BlockOf(RandomSeries(random, kind, 2), kind, 2);
    static std::string bytes;
    if (round % 50 == 0) {
      ASSERT_OK_AND_ASSIGN(bytes, EncodeChunk(block, {.deletes = {{1, 5}}}));
    }
    std::string changed = bytes;
    for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
      // The directory is where most of the damage can be done.
      const size_t at = 6 + random.Below(random.OneIn(2) ? 40 : changed.size() - 6) % (changed.size() - 6);
      changed[at] = static_cast<char>(random.Next());
    }
    if (random.OneIn(5)) changed.resize(6 + random.Below(changed.size()));
    const auto series = ReadAll(Resealed(changed), 16, 1 + random.Below(2));
    if (series.ok()) {
      ++decoded;
    } else {
      EXPECT_THAT(series, FailsWith(absl::StatusCode::kDataLoss, ""));
    }
  }
  RecordProperty("decoded", static_cast<int>(decoded));
}

TEST(ChunkDirectory, HostileBytesAreRefusedOrComeBack) {
  Random random(testing::Seed("hostile directory"));
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = {static_cast<char>(1 + random.Below(3)), static_cast<char>(random.Below(3))};
    for (uint64_t i = random.Below(40); i > 0; --i) {
      bytes.push_back(static_cast<char>(random.OneIn(2) ? random.Below(4) : random.Next()));
    }
    const auto directory = DecodeDirectory(bytes);
    if (directory.ok()) {
      EXPECT_EQ(EncodeDirectory(*directory), bytes);
    }
  }
}

}  // namespace
}  // namespace kvstore::reports
