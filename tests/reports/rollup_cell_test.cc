#include "reports/rollup_cell.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "reports/aggregate.h"
#include "reports/chunk.h"
#include "reports/crc32c.h"
#include "reports/rollup_parts.h"
#include "reports/rollup_reader.h"
#include "reports/series_reader.h"
#include "tests/reports/hex.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::Hex;
using kvstore::testing::Random;

constexpr int64_t kHour = 3'600'000;
const RowVersion kVersion{77, "0123456789abcdef01"};

/// Returns the bytes with their right checksum, so that the decoders see them.
std::string Resealed(std::string bytes) {
  if (bytes.size() < 5) return bytes;
  const uint32_t crc =
      Crc32c(std::string_view(bytes).substr(5), Crc32c(std::string_view(bytes).substr(0, 1)));
  for (int i = 0; i < 4; ++i) bytes[static_cast<size_t>(1 + i)] = static_cast<char>(crc >> (24 - 8 * i));
  return bytes;
}

/// A report of hours with the keys a and b, in periods of ten hours.
ReportInfo Info() {
  return {.name = "r",
          .settings = {.id = 1, .resolution_ms = 1'000, .period_s = 36'000, .salts = 1},
          .keys = {{"a", std::nullopt}, {"b", std::nullopt}}};
}

/// A row of these series, and its only chunk.
struct OneChunk {
  explicit OneChunk(const PointBlock& block) {
    auto bytes = EncodeChunk(block, {});
    EXPECT_OK(bytes);
    row.chunks.push_back({ChunkName(kChunkNameBytes, 'x'), 1, *bytes});
    auto live_chunks = LiveChunks(row);
    EXPECT_OK(live_chunks);
    live = *std::move(live_chunks);
  }
  StoredRow row;
  std::vector<LiveChunk> live;
};

std::vector<Number> NumbersOf(const std::string& bytes) {
  auto chunk = Chunk::Open(bytes);
  EXPECT_OK(chunk);
  auto reader = SeriesReader::Make(*chunk, 2);
  EXPECT_OK(reader);
  std::vector<Number> numbers;
  SeriesPoints points;
  while (*(*reader)->Next()) {
    EXPECT_OK((*reader)->Read(points));
    numbers.insert(numbers.end(), points.numbers.begin(), points.numbers.end());
  }
  return numbers;
}

TEST(RollupCell, HasTheseBytes) {
  const std::string chunks[] = {"chunk", "two"};
  EXPECT_EQ(Hex(EncodeRollupCell(kVersion, chunks)),
            "01ca99cd7d"        // version, checksum
            "000000000000004d"  // made of the version with this timestamp
            "303132333435363738396162636465663031"
            "02"
            "056368756e6b"
            "0374776f");
  EXPECT_EQ(Hex(EncodeMade({kVersion, {{1, true}, {300, false}}})),
            "0106c6c3be"
            "000000000000004d"
            "303132333435363738396162636465663031"
            "02"
            "0101"
            "ac0200");
  EXPECT_EQ(RollupColumn(12, RollupPart::kSum), "12/s");
  std::string parts;
  for (const RollupPart part : kRollupParts) parts.push_back(static_cast<char>(part));
  EXPECT_EQ(parts, "csnxlu");
}

TEST(RollupCell, ComesBackAndAnyChangedByteIsFound) {
  const std::string chunks[] = {"chunk", "", "two"};
  const std::string bytes = EncodeRollupCell(kVersion, chunks);
  ASSERT_OK_AND_ASSIGN(const RollupCell cell, DecodeRollupCell(bytes));
  EXPECT_EQ(cell.made_of, kVersion);
  EXPECT_EQ(cell.chunks, (std::vector<std::string_view>{"chunk", "", "two"}));
  const MadeRollups made{kVersion, {{1, true}, {2, false}, {UINT32_MAX, true}}};
  EXPECT_EQ(*DecodeMade(EncodeMade(made)), made);
  EXPECT_EQ(*DecodeMade(EncodeMade({kVersion, {}})), (MadeRollups{kVersion, {}}));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    EXPECT_THAT(DecodeRollupCell(changed), FailsWith(absl::StatusCode::kDataLoss, "roll-up")) << i;
    EXPECT_THAT(DecodeRollupCell(bytes.substr(0, i)), FailsWith(absl::StatusCode::kDataLoss, "roll-up")) << i;
    EXPECT_THAT(DecodeMade(changed), FailsWith(absl::StatusCode::kDataLoss, "roll-up")) << i;
  }
}

TEST(RollupCell, HostileBytesAreRefusedOrComeBack) {
  Random random(testing::Seed("hostile roll-up"));
  const std::string chunks[] = {"chunk", "two"};
  const std::string seeds[] = {EncodeRollupCell(kVersion, chunks),
                               EncodeMade({kVersion, {{1, true}, {300, false}}})};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = seeds[random.Below(2)];
    for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
      bytes[5 + random.Below(bytes.size() - 5)] =
          static_cast<char>(random.OneIn(2) ? random.Below(4) : random.Next());
    }
    if (random.OneIn(3)) bytes.resize(random.Below(bytes.size() + 4));
    bytes = Resealed(bytes);
    if (const auto made = DecodeMade(bytes); made.ok()) {
      EXPECT_EQ(EncodeMade(*made), bytes);
    } else {
      EXPECT_THAT(made, FailsWith(absl::StatusCode::kDataLoss, "roll-up"));
    }
    if (const auto cell = DecodeRollupCell(bytes); cell.ok()) {
      const std::vector<std::string> back(cell->chunks.begin(), cell->chunks.end());
      EXPECT_EQ(EncodeRollupCell(cell->made_of, back), bytes);
    } else {
      EXPECT_THAT(cell, FailsWith(absl::StatusCode::kDataLoss, "roll-up"));
    }
  }
}

TEST(Summary, HasTheExactSum) {
  Random random(testing::Seed("summary"));
  for (int round = 0; round < 500; ++round) {
    Aggregate direct;
    Aggregate in_parts;
    const int spread = 1 << random.Below(8);
    for (uint64_t parts = 1 + random.Below(4); parts > 0; --parts) {
      Aggregate part;
      for (uint64_t i = 1 + random.Below(20); i > 0; --i) {
        const auto integer = static_cast<int64_t>(random.Next()) >> (12 + random.Below(50));
        const double real = std::ldexp(static_cast<double>(integer),
                                       static_cast<int>(random.Below(static_cast<uint64_t>(spread))));
        const Number number = random.OneIn(3) ? Number::Integer(integer) : Number::Real(real);
        const auto time = static_cast<int64_t>(random.Below(5));
        direct.Add(time, number, false);
        part.Add(time, number, false);
      }
      const auto summary = part.Summarize();
      if (summary) {
        in_parts.Add(*summary);
      } else {
        EXPECT_OK(in_parts.Merge(std::move(part)));
      }
    }
    for (const char* name : {"sum", "count", "avg", "min", "max", "last"}) {
      const Function function = *ParseFunction("function", name);
      EXPECT_EQ(in_parts.Result(function), direct.Result(function)) << name;
    }
  }
}

TEST(Summary, TakesFourRealNumbersAndNoMore) {
  const auto of = [](std::initializer_list<double> values) {
    Aggregate aggregate;
    for (const double value : values) aggregate.Add(0, Number::Real(value), false);
    return aggregate.Summarize();
  };
  ASSERT_TRUE(of({0.5}));
  EXPECT_EQ(of({0.5})->real_count, 1u);
  EXPECT_EQ(of({0.5, -0.5})->real_count, 1u) << "a sum of 0.0 is a real number";
  EXPECT_EQ(of({1e100, 1.0, 1e-100})->real_count, 3u);
  EXPECT_EQ(of({1e200, 1e100, 1.0, 1e-100})->real_count, 4u);
  EXPECT_FALSE(of({1e200, 1e100, 1.0, 1e-100, 1e-200}));
  EXPECT_FALSE(of({1.7e308, 1.7e308})) << "beyond the range of doubles";
  Aggregate integers;
  integers.Add(0, Number::Integer(INT64_MAX), false);
  EXPECT_TRUE(integers.Summarize());
  integers.Add(0, Number::Integer(1), false);
  EXPECT_FALSE(integers.Summarize());
}

TEST(RollUp, PartsHoldThis) {
  PointBlock block(MetricKind::kValue, 2);
  block.Append(std::vector<uint32_t>{1, 1},
               {.times = {0, 1'000, kHour + 2'000},
                .numbers = {Number::Integer(5), Number::Real(0.5), Number::Integer(7)},
                .adds = {0, 0, 1}});
  block.Append(std::vector<uint32_t>{1, 2},
               {.times = {3'000}, .numbers = {Number::Integer(-2)}, .adds = {0}});
  block.Append(std::vector<uint32_t>{2, 1}, {.times = {0}, .numbers = {Number::Real(1e100)}, .adds = {0}});
  block.Append(std::vector<uint32_t>{2, 2}, {.times = {0}, .numbers = {Number::Real(1)}, .adds = {0}});
  const OneChunk row(block);
  ASSERT_OK_AND_ASSIGN(const auto chunks,
                       RollUp(Info(), {}, row.live, {.keys = {"a"}, .step_ms = 3'600'000}));
  ASSERT_TRUE(chunks);
  const auto numbers = [&](RollupPart part) {
    std::vector<std::vector<Number>> all;
    for (const std::string& chunk : chunks->at(part)) all.push_back(NumbersOf(chunk));
    return all;
  };
  using Lists = std::vector<std::vector<Number>>;
  const auto integers = [](std::initializer_list<int64_t> values) {
    std::vector<Number> list;
    for (const int64_t value : values) list.push_back(Number::Integer(value));
    return list;
  };
  // The series of segment 1 has values of its hours 0 and 1, that of segment 2 of its hour 0.
  EXPECT_EQ(numbers(RollupPart::kCount), Lists{integers({3, 1, 2})});
  EXPECT_EQ(numbers(RollupPart::kSum),
            (Lists{integers({3, 7, 0}), {Number::Real(0.5), Number::Real(1e100)}, {Number::Real(1)}}));
  EXPECT_EQ(numbers(RollupPart::kMin), (Lists{{Number::Integer(-2), Number::Integer(7), Number::Real(1)}}));
  EXPECT_EQ(numbers(RollupPart::kMax),
            (Lists{{Number::Integer(5), Number::Integer(7), Number::Real(1e100)}}));
  EXPECT_EQ(numbers(RollupPart::kLast), (Lists{{Number::Integer(-2), Number::Integer(7), Number::Real(1e100)},
                                               integers({3'000, 2'000, 0})}));
  EXPECT_FALSE(chunks->contains(RollupPart::kSketch));
}

/// Any points by any keys and steps: each series of the roll-up has what its points sum up to.
TEST(RollUp, IsWhatTheReaderReads) {
  Random random(testing::Seed("roll up"));
  for (int round = 0; round < 200; ++round) {
    std::map<std::vector<uint32_t>, std::map<int64_t, Number>> points;
    for (uint64_t i = random.Below(200); i > 0; --i) {
      const auto value = static_cast<int64_t>(random.Below(1'000));
      points[{static_cast<uint32_t>(random.Below(4)), static_cast<uint32_t>(random.Below(4))}]
            [static_cast<int64_t>(random.Below(36'000)) * 1'000] =
                random.OneIn(3) ? Number::Real(static_cast<double>(value) / 10) : Number::Integer(value);
    }
    if (points.empty()) continue;
    PointBlock block(MetricKind::kValue, 2);
    for (const auto& [segments, of_series] : points) {
      SeriesPoints series;
      for (const auto& [time, number] : of_series) {
        series.times.push_back(time);
        series.numbers.push_back(number);
        series.adds.push_back(0);
      }
      block.Append(segments, series);
    }
    const uint64_t step = 1'000 * (uint64_t{1} << random.Below(6)) * (random.OneIn(2) ? 1 : 1'125);
    Rollup rollup{.step_ms = step};
    if (random.OneIn(2)) rollup.keys.push_back("a");
    if (random.OneIn(2)) rollup.keys.push_back("b");
    const OneChunk row(block);
    ASSERT_OK_AND_ASSIGN(const auto chunks, RollUp(Info(), {}, row.live, rollup));
    ASSERT_TRUE(chunks);
    std::map<std::pair<std::vector<uint32_t>, int64_t>, Aggregate> expected;
    for (const auto& [segments, of_series] : points) {
      std::vector<uint32_t> group = {0, 0};
      for (const std::string& key : rollup.keys) group[key == "a" ? 0 : 1] = segments[key == "a" ? 0 : 1];
      for (const auto& [time, number] : of_series) {
        expected[{group, time - time % static_cast<int64_t>(step)}].Add(time, number, false);
      }
    }
    std::map<RollupPart, std::string> cells;
    RollupReader::Parts parts;
    for (const auto& [part, of_part] : *chunks) {
      cells[part] = EncodeRollupCell(kVersion, of_part);
      ASSERT_OK_AND_ASSIGN(parts[part], DecodeRollupCell(cells[part]));
    }
    ASSERT_OK_AND_ASSIGN(const auto reader, RollupReader::Make(parts, MetricKind::kValue, step, 2));
    size_t read = 0;
    for (size_t at = 0;; ++at) {
      ASSERT_OK_AND_ASSIGN(const bool more, reader->Next());
      if (!more) break;
      const std::vector<uint32_t> segments(reader->segments().begin(), reader->segments().end());
      // Passing over series changes nothing in the others.
      if (round % 2 == 1 && at % 2 == 1) {
        for (const auto& [key, aggregate] : expected) read += key.first == segments ? 1 : 0;
        continue;
      }
      SeriesSummary series;
      ASSERT_OK(reader->Read(series));
      for (size_t i = 0; i < series.times.size(); ++i, ++read) {
        const auto found = expected.find({segments, series.times[i]});
        ASSERT_NE(found, expected.end());
        Aggregate got;
        got.Add(series.values[i]);
        for (const char* name : {"sum", "count", "avg", "min", "max", "last"}) {
          const Function function = *ParseFunction("function", name);
          EXPECT_EQ(got.Result(function), found->second.Result(function)) << name;
        }
      }
    }
    EXPECT_EQ(read, expected.size());
  }
}

TEST(RollupReader, PartsThatDoNotFitAreRefused) {
  const auto chunk = [](std::vector<int64_t> times, const Number& number) {
    PointBlock block(MetricKind::kValue, 2);
    SeriesPoints series;
    for (const int64_t time : times) {
      series.times.push_back(time);
      series.numbers.push_back(number);
      series.adds.push_back(0);
    }
    block.Append(std::vector<uint32_t>{1, 1}, series);
    return *EncodeChunk(block, {});
  };
  using Chunks = std::map<RollupPart, std::vector<std::string>>;
  const auto read = [](const Chunks& chunks) -> absl::Status {
    RollupReader::Parts parts;
    for (const auto& [part, of_part] : chunks) {
      parts[part] = {kVersion, {of_part.begin(), of_part.end()}};
    }
    auto reader = RollupReader::Make(parts, MetricKind::kValue, 3'600'000, 2);
    if (!reader.ok()) return reader.status();
    SeriesSummary series;
    while (true) {
      const auto more = (*reader)->Next();
      if (!more.ok()) return more.status();
      if (!*more) return absl::OkStatus();
      if (auto status = (*reader)->Read(series); !status.ok()) return status;
    }
  };
  const Number one = Number::Integer(1);
  const std::string good = chunk({0, kHour}, one);
  EXPECT_OK(read({{RollupPart::kCount, {good}}}));
  EXPECT_OK(
      read({{RollupPart::kCount, {good}}, {RollupPart::kSum, {good, chunk({kHour}, Number::Real(1))}}}));
  const auto refused = [&](const Chunks& chunks) {
    EXPECT_THAT(read(chunks), FailsWith(absl::StatusCode::kDataLoss, "do not fit"));
  };
  refused({});
  refused({{RollupPart::kSum, {good}}});
  refused({{RollupPart::kCount, {}}});
  refused({{RollupPart::kCount, {good, good}}});
  refused({{RollupPart::kCount, {chunk({0}, Number::Integer(0))}}});
  refused({{RollupPart::kCount, {chunk({0}, Number::Real(1))}}});
  refused({{RollupPart::kCount, {chunk({1'000}, one)}}});
  refused({{RollupPart::kCount, {good}}, {RollupPart::kSketch, {good}}});
  refused({{RollupPart::kCount, {good}}, {RollupPart::kMin, {chunk({0}, one)}}});
  refused({{RollupPart::kCount, {chunk({0}, one)}}, {RollupPart::kMin, {good}}});
  refused({{RollupPart::kCount, {good}}, {RollupPart::kMin, {chunk({0, kHour}, Number::Real(NAN))}}});
  refused({{RollupPart::kCount, {good}}, {RollupPart::kSum, {good, good}}});
  refused({{RollupPart::kCount, {good}},
           {RollupPart::kSum, {good, chunk({0}, Number::Real(1)), chunk({kHour}, Number::Real(1))}}});
  refused({{RollupPart::kCount, {good}}, {RollupPart::kLast, {good}}});
  refused(
      {{RollupPart::kCount, {good}}, {RollupPart::kLast, {good, chunk({0, kHour}, Number::Integer(kHour))}}});
  PointBlock other(MetricKind::kValue, 2);
  other.Append(std::vector<uint32_t>{1, 0}, {.times = {0}, .numbers = {one}, .adds = {0}});
  refused({{RollupPart::kCount, {good}}, {RollupPart::kMin, {*EncodeChunk(other, {})}}});
}

}  // namespace
}  // namespace kvstore::reports
