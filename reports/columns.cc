#include "reports/columns.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvstore::reports {
namespace {

constexpr int kFormBits = 3;
enum Form : uint64_t {
  kIntegers = 0,
  kRealsByXor = 1,
  kWholeReals = 2,
  kIntegersByXor = 3,
  kBoth = 4,
};

constexpr uint64_t kMaxTimeUnits = uint64_t{1} << 53;

/// Differences of differences, by their size: a prefix of ones that ends with a zero, and so many bits.
struct DifferenceClass {
  uint64_t prefix;  // as it is written, lowest bit first
  int prefix_bits;
  int bits;
};
constexpr DifferenceClass kClasses[] = {
    {0b0, 1, 0}, {0b01, 2, 7}, {0b011, 3, 12}, {0b0111, 4, 20}, {0b1111, 4, 64}};

/// The integers that stand for numbers: themselves, or whole real numbers.
int64_t IntegerOf(const Number& number) {
  return number.is_integer() ? number.integer() : static_cast<int64_t>(number.real());
}

/// The least and the greatest of the integers that stand for numbers.
std::pair<int64_t, int64_t> BoundsOf(std::span<const Number> numbers) {
  int64_t least = INT64_MAX;
  int64_t greatest = INT64_MIN;
  for (const Number& number : numbers) {
    const int64_t integer = IntegerOf(number);
    least = std::min(least, integer);
    greatest = std::max(greatest, integer);
  }
  return {least, greatest};
}

void PackFrame(BitWriter& out, std::span<const Number> numbers) {
  const auto [least, greatest] = BoundsOf(numbers);
  out.WriteSized(ZigZag(least));
  if (numbers.size() == 1) return;
  const auto base = static_cast<uint64_t>(least);
  const int width = BitWidth(static_cast<uint64_t>(greatest) - base);
  out.Write(static_cast<uint64_t>(width), 7);
  for (const Number& number : numbers) out.Write(static_cast<uint64_t>(IntegerOf(number)) - base, width);
}

size_t FrameBits(std::span<const Number> numbers) {
  const auto [least, greatest] = BoundsOf(numbers);
  const size_t base = 7 + static_cast<size_t>(BitWidth(ZigZag(least)));
  if (numbers.size() == 1) return base;
  const int width = BitWidth(static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least));
  return base + 7 + numbers.size() * static_cast<size_t>(width);
}

/// The width of each number of a frame; fails on one above 64.
int ReadWidth(BitReader& in) {
  const uint64_t width = in.Read(7);
  if (width <= 64) return static_cast<int>(width);
  in.Fail();
  return 0;
}

template <typename Take>
void UnpackFrame(BitReader& in, size_t count, const Take& take) {
  const auto base = static_cast<uint64_t>(UnZigZag(in.ReadSized()));
  if (count == 1) return take(static_cast<int64_t>(base));
  const int width = ReadWidth(in);
  in.ReadEach(width, count, [&](uint64_t above) { take(static_cast<int64_t>(base + above)); });
}

void SkipFrame(BitReader& in, size_t count) {
  in.ReadSized();
  if (count == 1) return;
  const auto width = static_cast<uint64_t>(ReadWidth(in));
  in.Skip(count * width);
}

/// Writes the bits of numbers to a BitWriter, or counts them with a BitCounter.
template <typename Out>
void PackXor(Out& out, std::span<const Number> numbers) {
  uint64_t before = numbers.front().bits();
  out.Write(before, 64);
  int window_shift = 0;
  int window_bits = 0;  // none yet
  for (const Number& number : numbers.subspan(1)) {
    const uint64_t changed = number.bits() ^ before;
    before = number.bits();
    if (changed == 0) {
      out.Write(0, 1);
      continue;
    }
    out.Write(1, 1);
    const int shift = std::countr_zero(changed);
    const int bits = BitWidth(changed) - shift;
    const bool fits = window_bits > 0 && shift >= window_shift && shift + bits <= window_shift + window_bits;
    // A new window costs 12 bits more than the old one, if that is not much too wide.
    if (fits && window_bits <= bits + 12) {
      out.Write(0, 1);
    } else {
      out.Write(1, 1);
      window_shift = shift;
      window_bits = bits;
      out.Write(static_cast<uint64_t>(shift), 6);
      out.Write(static_cast<uint64_t>(bits - 1), 6);
    }
    out.Write(changed >> window_shift, window_bits);
  }
}

size_t XorBits(std::span<const Number> numbers) {
  BitCounter counter;
  PackXor(counter, numbers);
  return counter.bits();
}

/// Writes the XOR form after its length in bits, so that it can be skipped.
void WriteXor(BitWriter& out, std::span<const Number> numbers, size_t bits) {
  out.WriteSized(bits);
  PackXor(out, numbers);
}

template <typename Take>
void UnpackXor(BitReader& in, size_t count, const Take& take) {
  const uint64_t length = in.ReadSized();
  const uint64_t before_left = in.left();
  if (length > before_left) return in.Fail();
  uint64_t value = in.Read(64);
  take(value);
  int window_shift = 0;
  int window_bits = 0;
  for (size_t i = 1; i < count && !in.failed(); ++i) {
    if (in.Read(1) == 1) {
      if (in.Read(1) == 1) {
        window_shift = static_cast<int>(in.Read(6));
        window_bits = static_cast<int>(in.Read(6)) + 1;
        if (window_shift + window_bits > 64) return in.Fail();
      } else if (window_bits == 0) {
        return in.Fail();
      }
      value ^= in.Read(window_bits) << window_shift;
    }
    take(value);
  }
  // The length is what a reader that skips relies on.
  if (before_left - in.left() != length) in.Fail();
}

void SkipXor(BitReader& in) { in.Skip(in.ReadSized()); }

/// A real number that an integer stands for bit for bit; minus zero has none.
bool IsWhole(double value) {
  return std::fabs(value) <= 9007199254740992.0 && std::trunc(value) == value &&
         !(value == 0 && std::signbit(value));
}

/// Packs integers, or whole real numbers, by XOR or as a frame, whichever takes fewer bits.
void PackIntegers(BitWriter& out, std::span<const Number> numbers, Form form_by_frame, Form form_by_xor) {
  const size_t frame_bits = FrameBits(numbers);
  // The XOR form starts with 64 bits and its length, so that short series need not try.
  if (frame_bits > 78) {
    const size_t xor_bits = XorBits(numbers);
    if (xor_bits + 7 + static_cast<size_t>(BitWidth(xor_bits)) < frame_bits) {
      out.Write(form_by_xor, kFormBits);
      return WriteXor(out, numbers, xor_bits);
    }
  }
  out.Write(form_by_frame, kFormBits);
  PackFrame(out, numbers);
}

/// Packs numbers of both kinds: which is which, then those of each kind.
void PackBoth(BitWriter& out, std::span<const Number> numbers) {
  std::vector<Number> integers;
  std::vector<Number> reals;
  out.Write(kBoth, kFormBits);
  for (const Number& number : numbers) {
    out.Write(number.is_integer() ? 1 : 0, 1);
    (number.is_integer() ? integers : reals).push_back(number);
  }
  PackFrame(out, integers);
  WriteXor(out, reals, XorBits(reals));
}

}  // namespace

void PackTimes(BitWriter& out, std::span<const uint64_t> times) {
  out.WriteSized(times.front());
  if (times.size() == 1) return;
  uint64_t difference = times[1] - times[0];
  out.WriteSized(difference);
  for (size_t i = 2; i < times.size(); ++i) {
    const uint64_t next = times[i] - times[i - 1];
    const uint64_t change = ZigZag(static_cast<int64_t>(next - difference));
    difference = next;
    const int bits = BitWidth(change);
    for (const DifferenceClass& c : kClasses) {
      if (bits > c.bits) continue;
      out.Write(c.prefix, c.prefix_bits);
      out.Write(change, c.bits);
      break;
    }
  }
}

void UnpackTimes(BitReader& in, size_t count, std::vector<uint64_t>& times) {
  times.clear();
  uint64_t time = in.ReadSized();
  if (time >= kMaxTimeUnits) return in.Fail();
  times.push_back(time);
  if (count == 1) return;
  uint64_t difference = in.ReadSized();
  for (size_t i = 1;; ++i) {
    // Both are below 2^53, so that the sum cannot overflow.
    if (in.failed() || difference == 0 || difference >= kMaxTimeUnits) return in.Fail();
    time += difference;
    if (time >= kMaxTimeUnits) return in.Fail();
    times.push_back(time);
    if (i + 1 == count) return;
    size_t form = 0;
    while (form < 4 && in.Read(1) == 1) ++form;
    difference += static_cast<uint64_t>(UnZigZag(in.Read(kClasses[form].bits)));
  }
}

void PackNumbers(BitWriter& out, std::span<const Number> numbers) {
  size_t integers = 0;
  bool whole = true;  // of the real numbers
  for (const Number& number : numbers) {
    integers += number.is_integer() ? 1 : 0;
    whole = whole && (number.is_integer() || IsWhole(number.real()));
  }
  if (integers == numbers.size()) return PackIntegers(out, numbers, kIntegers, kIntegersByXor);
  if (integers > 0) return PackBoth(out, numbers);
  if (whole) return PackIntegers(out, numbers, kWholeReals, kRealsByXor);
  out.Write(kRealsByXor, kFormBits);
  WriteXor(out, numbers, XorBits(numbers));
}

void UnpackNumbers(BitReader& in, size_t count, std::vector<Number>& numbers) {
  numbers.clear();
  const auto integer = [&](int64_t value) { numbers.push_back(Number::Integer(value)); };
  const auto real = [&](uint64_t bits) { numbers.push_back(Number::Real(std::bit_cast<double>(bits))); };
  switch (in.Read(kFormBits)) {
    case kIntegers:
      return UnpackFrame(in, count, integer);
    case kRealsByXor:
      return UnpackXor(in, count, real);
    case kWholeReals:
      return UnpackFrame(in, count,
                         [&](int64_t value) { numbers.push_back(Number::Real(static_cast<double>(value))); });
    case kIntegersByXor:
      return UnpackXor(in, count, [&](uint64_t bits) { integer(static_cast<int64_t>(bits)); });
    case kBoth:
      break;
    default:
      return in.Fail();
  }
  std::vector<bool> is_integer;
  size_t integers = 0;
  for (size_t i = 0; i < count && !in.failed(); ++i) {
    is_integer.push_back(in.Read(1) == 1);
    integers += is_integer.back() ? 1 : 0;
  }
  if (in.failed() || integers == 0 || integers == count) return in.Fail();
  UnpackFrame(in, integers, integer);
  std::vector<Number> first = std::move(numbers);
  numbers.clear();
  UnpackXor(in, count - integers, real);
  if (in.failed()) return;
  std::vector<Number> reals = std::move(numbers);
  numbers.clear();
  size_t next_integer = 0;
  size_t next_real = 0;
  for (const bool chosen : is_integer) numbers.push_back(chosen ? first[next_integer++] : reals[next_real++]);
}

bool UnpackIntegers(BitReader& in, size_t count, std::vector<int64_t>& integers) {
  if (in.Read(kFormBits) != kIntegers) return false;
  integers.resize(count);
  int64_t* to = integers.data();
  UnpackFrame(in, count, [&](int64_t value) { *to++ = value; });
  return true;
}

bool SumIntegers(BitReader& in, size_t count, std::span<const StepRun> runs, std::vector<Int128>& sums) {
  if (in.Read(kFormBits) != kIntegers) return false;
  const int64_t base = UnZigZag(in.ReadSized());
  const int width = count == 1 ? 0 : ReadWidth(in);
  if (width + BitWidth(count) > 64) return false;
  sums.resize(runs.size());
  size_t at = 0;
  const auto skip_to = [&](size_t index) {
    in.Skip(uint64_t{index - at} * static_cast<uint64_t>(width));
    at = index;
  };
  for (size_t i = 0; i < runs.size(); ++i) {
    const size_t length = runs[i].end - runs[i].begin;
    skip_to(runs[i].begin);
    uint64_t above = 0;
    if (length == 1) {
      above = in.Read(width);
    } else if (width > 0) {
      in.ReadEach(width, length, [&](uint64_t number) { above += number; });
    }
    at = runs[i].end;
    sums[i] = Int128{base} * length + above;
  }
  skip_to(count);
  return true;
}

void SkipNumbers(BitReader& in, size_t count) {
  switch (in.Read(kFormBits)) {
    case kIntegers:
    case kWholeReals:
      return SkipFrame(in, count);
    case kRealsByXor:
    case kIntegersByXor:
      return SkipXor(in);
    case kBoth:
      break;
    default:
      return in.Fail();
  }
  size_t integers = 0;
  for (size_t i = 0; i < count && !in.failed(); ++i) integers += in.Read(1);
  if (integers == 0 || integers == count) return in.Fail();
  SkipFrame(in, integers);
  SkipXor(in);
}

}  // namespace kvstore::reports
