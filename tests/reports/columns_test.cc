#include "reports/columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/byte_reader.h"
#include "tests/reports/hex.h"
#include "tests/support/random.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::Hex;
using kvstore::testing::Random;

std::string Packed(std::span<const Number> numbers) {
  BitWriter out;
  PackNumbers(out, numbers);
  return std::move(out).Finish();
}

std::vector<Number> Integers(std::initializer_list<int64_t> values) {
  std::vector<Number> numbers;
  for (const int64_t value : values) numbers.push_back(Number::Integer(value));
  return numbers;
}

void ComesBack(const std::vector<Number>& numbers) {
  BitWriter out;
  PackNumbers(out, numbers);
  out.Write(0b101, 3);  // what follows is not touched
  const std::string bytes = std::move(out).Finish();
  BitReader in(bytes);
  std::vector<Number> back;
  UnpackNumbers(in, numbers.size(), back);
  ASSERT_FALSE(in.failed());
  EXPECT_EQ(back, numbers);
  EXPECT_EQ(in.Read(3), 0b101u);
  BitReader skipping(bytes);
  SkipNumbers(skipping, numbers.size());
  EXPECT_EQ(skipping.Read(3), 0b101u);
  EXPECT_FALSE(skipping.failed());
  BitReader alone(bytes);
  std::vector<int64_t> integers;
  if (UnpackIntegers(alone, numbers.size(), integers)) {
    std::vector<Number> same;
    for (const int64_t integer : integers) same.push_back(Number::Integer(integer));
    EXPECT_EQ(same, numbers);
    EXPECT_EQ(alone.Read(3), 0b101u);
    EXPECT_FALSE(alone.failed());
  } else {
    alone.ReturnTo(bytes.size() * 8);
    UnpackNumbers(alone, numbers.size(), back);
    EXPECT_EQ(back, numbers) << "what is not taken can be read otherwise";
  }
}

TEST(Bits, AnyWidthsComeBack) {
  Random random(testing::Seed("bits"));
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<uint64_t, int>> written;
    BitWriter out;
    BitCounter counter;
    size_t all = 0;
    for (uint64_t i = random.Below(100); i > 0; --i) {
      const int bits = static_cast<int>(random.Below(65));
      const uint64_t value = bits == 0 ? 0 : random.Next() >> (64 - bits);
      written.emplace_back(value, bits);
      out.Write(value, bits);
      counter.Write(value, bits);
      all += static_cast<size_t>(bits);
      EXPECT_EQ(out.bits(), all);
      EXPECT_EQ(counter.bits(), all);
    }
    const std::string bytes = std::move(out).Finish();
    EXPECT_EQ(bytes.size(), (all + 7) / 8);
    BitReader in(bytes);
    for (const auto& [value, bits] : written) EXPECT_EQ(in.Read(bits), value);
    EXPECT_FALSE(in.failed());
  }
}

TEST(Bits, ManyOfOneWidthAreReadAsOneByOne) {
  Random random(testing::Seed("bits of one width"));
  for (int bits = 0; bits <= 64; ++bits) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{100}}) {
      BitWriter out;
      const auto before = static_cast<int>(random.Below(9));
      out.Write(0, before);
      std::vector<uint64_t> values;
      for (size_t i = 0; i < count; ++i) {
        values.push_back(bits == 0 ? 0 : random.Next() >> (64 - bits));
        out.Write(values.back(), bits);
      }
      out.Write(0b101, 3);
      const std::string bytes = std::move(out).Finish();
      BitReader in(bytes);
      in.Skip(static_cast<uint64_t>(before));
      std::vector<uint64_t> back;
      const auto take = [&](uint64_t value) { back.push_back(value); };
      in.ReadEach(bits, count, take);
      EXPECT_EQ(back, values) << bits;
      EXPECT_EQ(in.Read(3), 0b101u) << bits;
      EXPECT_FALSE(in.failed());
      // There are not so many, and none of them is given.
      if (bits == 0) continue;
      BitReader short_of(bytes);
      back.clear();
      short_of.ReadEach(bits, bytes.size() * 8 / static_cast<size_t>(bits) + 1, take);
      EXPECT_TRUE(short_of.failed());
      EXPECT_TRUE(back.empty());
    }
  }
}

TEST(Bits, BehindTheEndAreZerosAndAFailure) {
  BitReader in("\xFF");
  EXPECT_EQ(in.Read(8), 0xFFu);
  EXPECT_FALSE(in.failed());
  EXPECT_EQ(in.Read(0), 0u);
  EXPECT_FALSE(in.failed());
  EXPECT_EQ(in.Read(1), 0u);
  EXPECT_TRUE(in.failed());
}

TEST(Varint, OneNumberHasOneForm) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{300}, UINT64_MAX}) {
    std::string bytes;
    AppendVarint(bytes, value);
    ByteReader in(bytes);
    EXPECT_EQ(in.Varint(), value);
    EXPECT_TRUE(in.rest().empty() && !in.failed());
  }
  for (const std::string_view bad :
       {std::string_view(""), std::string_view("\x80"), std::string_view("\x80\x00", 2),
        std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02")}) {
    ByteReader in(bad);
    in.Varint();
    EXPECT_TRUE(in.failed()) << Hex(bad);
  }
}

TEST(Columns, TimesComeBack) {
  Random random(testing::Seed("times"));
  for (int round = 0; round < 500; ++round) {
    std::vector<uint64_t> times = {random.Next() >> (12 + random.Below(52))};
    const uint64_t regular = 1 + random.Below(1'000'000);
    for (uint64_t i = random.Below(50); i > 0; --i) {
      times.push_back(times.back() +
                      (random.OneIn(4) ? 1 + (random.Next() >> (20 + random.Below(44))) : regular));
    }
    if (times.back() >= uint64_t{1} << 53) continue;
    BitWriter out;
    PackTimes(out, times);
    const std::string bytes = std::move(out).Finish();
    BitReader in(bytes);
    std::vector<uint64_t> back;
    UnpackTimes(in, times.size(), back);
    ASSERT_FALSE(in.failed());
    EXPECT_EQ(back, times);
  }
}

TEST(Columns, EvenTimesTakeABitEach) {
  std::vector<uint64_t> times;
  for (uint64_t i = 0; i < 1'000; ++i) times.push_back(i * 24);
  BitWriter out;
  PackTimes(out, times);
  EXPECT_LT(out.bits(), 1'030u);
}

TEST(Columns, NumbersHaveTheseBytes) {
  // Form 0 in 3 bits, the width 4 in 7, zigzag(5) = 10 in 4, the width 2 in 7, then 0, 2, 1.
  BitWriter expected;
  expected.Write(0, 3);
  expected.Write(4, 7);
  expected.Write(10, 4);
  expected.Write(2, 7);
  for (const uint64_t above : {0, 2, 1}) expected.Write(above, 2);
  EXPECT_EQ(Packed(Integers({5, 7, 6})), std::move(expected).Finish());
  EXPECT_EQ(Hex(Packed(Integers({5, 7, 6}))), "20a80003");
}

TEST(Columns, NumbersOfAllFormsComeBackBitForBit) {
  const double denormal = std::numeric_limits<double>::denorm_min();
  ComesBack(Integers({0}));
  ComesBack(Integers({INT64_MIN, INT64_MAX, 0, -1}));
  ComesBack(Integers({7, 7, 7, 7}));
  ComesBack({Number::Real(0.1), Number::Real(0.2), Number::Real(0.1)});
  ComesBack({Number::Real(1), Number::Real(-3), Number::Real(9007199254740992.0)});
  ComesBack({Number::Real(-0.0), Number::Real(0.0), Number::Real(denormal), Number::Real(-1e308)});
  ComesBack({Number::Integer(1), Number::Real(1), Number::Integer(-9)});
  ComesBack({Number::Real(0.5)});
  std::vector<Number> steady(200, Number::Integer(123'456'789));
  steady[100] = Number::Integer(-987'654'321'000);
  ComesBack(steady);
  EXPECT_LT(Packed(steady).size(), 60u) << "XOR is chosen where one value is far away";
}

TEST(Columns, IntegersOfAFrameAreReadAlone) {
  const auto reads = [](const std::vector<Number>& numbers) {
    const std::string bytes = Packed(numbers);
    BitReader in(bytes);
    std::vector<int64_t> integers;
    return UnpackIntegers(in, numbers.size(), integers);
  };
  EXPECT_TRUE(reads(Integers({5})));
  EXPECT_TRUE(reads(Integers({5, -7, 6})));
  EXPECT_FALSE(reads({Number::Real(5), Number::Real(6)}));
  EXPECT_FALSE(reads({Number::Integer(5), Number::Real(0.5)}));
}

TEST(Columns, SumsAreThoseOfTheNumbers) {
  Random random(testing::Seed("sums of columns"));
  std::vector<Int128> sums;
  int too_wide = 0;
  int summed = 0;
  for (int round = 0; round < 2'000; ++round) {
    const size_t count = 1 + random.Below(300);
    const uint64_t shift = random.Below(64);
    const auto far = static_cast<int64_t>(random.Next()) >> random.Below(64);
    std::vector<Number> numbers;
    for (size_t i = 0; i < count; ++i) {
      const auto near = static_cast<int64_t>(random.Next() >> shift);
      numbers.push_back(Number::Integer(random.OneIn(50) ? far : near));
    }
    std::vector<StepRun> runs;
    for (size_t at = random.Below(3); at < count; at += random.Below(3)) {
      const size_t end = at + 1 + random.Below(std::min<size_t>(count - at, 1 + random.Below(200)));
      runs.push_back({.step = runs.size(), .begin = at, .end = end});
      at = end;
    }
    BitWriter out;
    out.Write(0b10, 2);
    PackNumbers(out, numbers);
    out.Write(0b101, 3);
    const std::string bytes = std::move(out).Finish();
    BitReader in(bytes);
    in.Skip(2);
    std::vector<int64_t> integers;
    const bool unpacked = UnpackIntegers(in, count, integers);
    in.ReturnTo(bytes.size() * 8 - 2);
    if (!SumIntegers(in, count, runs, sums)) {
      if (!unpacked) continue;
      ++too_wide;
      const auto [least, greatest] = std::minmax_element(integers.begin(), integers.end());
      const uint64_t most = static_cast<uint64_t>(*greatest) - static_cast<uint64_t>(*least);
      EXPECT_GT(BitWidth(most) + BitWidth(count), 64) << "could have been summed";
      continue;
    }
    ++summed;
    ASSERT_TRUE(unpacked);
    EXPECT_EQ(in.Read(3), 0b101u);
    EXPECT_FALSE(in.failed());
    ASSERT_EQ(sums.size(), runs.size());
    for (size_t run = 0; run < runs.size(); ++run) {
      Int128 sum = 0;
      for (size_t i = runs[run].begin; i < runs[run].end; ++i) sum += integers[i];
      EXPECT_TRUE(sums[run] == sum) << "run " << run << " of round " << round;
    }
  }
  EXPECT_GT(too_wide, 0);
  EXPECT_GT(summed, 0);
}

TEST(Columns, RandomNumbersComeBack) {
  Random random(testing::Seed("numbers"));
  for (int round = 0; round < 500; ++round) {
    std::vector<Number> numbers;
    const uint64_t kind = random.Below(4);
    const uint64_t shift = random.Below(64);
    for (uint64_t i = 1 + random.Below(60); i > 0; --i) {
      const auto integer = static_cast<int64_t>(random.Next()) >> shift;
      const bool real = kind == 1 || kind == 2 || (kind == 3 && random.OneIn(2));
      const double value =
          kind == 1 ? static_cast<double>(integer) : std::ldexp(static_cast<double>(integer), -20);
      numbers.push_back(real ? Number::Real(value) : Number::Integer(integer));
    }
    ComesBack(numbers);
  }
}

TEST(Columns, HostileBytesNeverReadBeyondTheEnd) {
  Random random(testing::Seed("hostile columns"));
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (uint64_t i = random.Below(40); i > 0; --i) bytes.push_back(static_cast<char>(random.Next()));
    const size_t count = 1 + random.Below(100);
    std::vector<Number> numbers;
    std::vector<uint64_t> times;
    BitReader reading(bytes);
    UnpackNumbers(reading, count, numbers);
    BitReader skipping(bytes);
    SkipNumbers(skipping, count);
    if (!reading.failed()) {
      EXPECT_EQ(numbers.size(), count);
      EXPECT_FALSE(skipping.failed());
      EXPECT_EQ(skipping.left(), reading.left()) << "to skip and to read end at one place";
    }
    BitReader alone(bytes);
    std::vector<int64_t> integers;
    if (UnpackIntegers(alone, count, integers)) {
      EXPECT_EQ(alone.failed(), reading.failed());
      EXPECT_EQ(alone.left(), reading.left());
      for (size_t i = 0; i < count && !reading.failed(); ++i) EXPECT_EQ(integers[i], numbers[i].integer());
    }
    BitReader summing(bytes);
    const StepRun runs[] = {{.step = 0, .begin = 0, .end = count / 2},
                            {.step = 1, .begin = count / 2, .end = count}};
    std::vector<Int128> sums;
    if (SumIntegers(summing, count, runs, sums)) {
      EXPECT_EQ(summing.failed(), reading.failed());
      EXPECT_EQ(summing.left(), reading.left());
    }
    BitReader timing(bytes);
    UnpackTimes(timing, count, times);
    if (!timing.failed()) {
      EXPECT_EQ(times.size(), count);
    }
  }
}

}  // namespace
}  // namespace kvstore::reports
