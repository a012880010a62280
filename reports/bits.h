#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

/// Numbers packed bit by bit. Bit i of a stream is bit i % 8, from the lowest, of byte i / 8.
namespace kvstore::reports {

/// How many bits a number needs: 0 for 0, 64 at most.
constexpr int BitWidth(uint64_t value) { return static_cast<int>(std::bit_width(value)); }

/// Small numbers of either sign as small numbers without one: 0, -1, 1, -2 become 0, 1, 2, 3.
constexpr uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t UnZigZag(uint64_t value) { return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1)); }

class BitWriter {
 public:
  /// Appends the lowest `bits` (0..64) bits of `value`.
  void Write(uint64_t value, int bits) {
    if (bits == 0) return;
    if (bits < 64) value &= (uint64_t{1} << bits) - 1;
    pending_ |= value << filled_;
    if (filled_ + bits >= 64) {
      Flush(8);
      const int written = 64 - filled_;
      pending_ = written == 64 ? 0 : value >> written;
      filled_ = bits - written;
    } else {
      filled_ += bits;
    }
  }
  /// Appends a number as its width in 7 bits, and then as many bits.
  void WriteSized(uint64_t value) {
    const int width = BitWidth(value);
    Write(static_cast<uint64_t>(width), 7);
    Write(value, width);
  }

  size_t bits() const { return bytes_.size() * 8 + static_cast<size_t>(filled_); }
  /// The stream as bytes; the last one is filled up with zeros.
  std::string Finish() && {
    Flush((filled_ + 7) / 8);
    filled_ = 0;
    return std::move(bytes_);
  }

 private:
  /// Takes the first bytes of what is pending, at most 8.
  void Flush(int bytes) {
    std::array<char, 8> little;
    for (size_t i = 0; i < little.size(); ++i) little[i] = static_cast<char>(pending_ >> (8 * i));
    bytes_.append(little.data(), static_cast<size_t>(bytes));
  }

  std::string bytes_;     // whole groups of 8 bytes until Finish
  uint64_t pending_ = 0;  // the bits after them
  int filled_ = 0;        // how many those are, 0..63
};

/// Counts the bits that a BitWriter would write.
class BitCounter {
 public:
  void Write(uint64_t /*value*/, int bits) { bits_ += static_cast<size_t>(bits); }
  size_t bits() const { return bits_; }

 private:
  size_t bits_ = 0;
};

/// Reads what a BitWriter wrote. After the end it gives zeros and says so by failed(), so that a decoder can
/// look once for many reads.
class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes), end_(uint64_t{bytes.size()} * 8) {}

  uint64_t Read(int bits) {
    if (static_cast<uint64_t>(bits) > end_ - at_) {
      Fail();
      return 0;
    }
    if (bits > kBitsOfLoad) {
      const uint64_t low = ReadFew(32);
      return low | ReadFew(bits - 32) << 32;
    }
    return ReadFew(bits);
  }
  /// Gives `count` numbers of `bits` (0..64) bits each to `take`; none, and fails, if there are fewer.
  template <typename Take>
  void ReadEach(int bits, size_t count, const Take& take) {
    const auto width = static_cast<uint64_t>(bits);
    if (failed_ || (width > 0 && (count > left() || count * width > left()))) return Fail();
    size_t done = 0;
    if (std::endian::native == std::endian::little && bits > 0 && bits <= kBitsOfLoad && bytes_.size() >= 8) {
      // As long as 8 bytes can be loaded they have as many whole numbers as kBitsOfLoad bits, so that nothing
      // else need be looked at.
      const uint64_t last_start = (uint64_t{bytes_.size()} - 8) * 8 + 7;
      const uint64_t mask = (uint64_t{1} << bits) - 1;
      const size_t of_load = kNumbersOfLoad[width];
      uint64_t at = at_;
      for (; count - done >= of_load && at <= last_start; done += of_load, at += of_load * width) {
        uint64_t word = 0;
        std::memcpy(&word, bytes_.data() + at / 8, 8);
        word >>= at % 8;
        for (size_t i = 0; i < of_load; ++i, word >>= bits) take(word & mask);
      }
      at_ = at;
    }
    for (; done < count; ++done) take(Read(bits));
  }
  /// Reads what WriteSized wrote; fails on a width above 64.
  uint64_t ReadSized() {
    const uint64_t width = Read(7);
    if (width > 64) {
      Fail();
      return 0;
    }
    return Read(static_cast<int>(width));
  }
  void Skip(uint64_t bits) {
    if (bits > end_ - at_) {
      Fail();
    } else {
      at_ += bits;
    }
  }
  /// How many bits are left.
  uint64_t left() const { return end_ - at_; }
  /// Goes back to where so many bits were left, unless it has failed since. (A copy of the reader in its
  /// place would make the processor wait until what it has just written can be read as a whole.)
  void ReturnTo(uint64_t left) {
    if (!failed_) at_ = end_ - left;
  }
  bool failed() const { return failed_; }
  /// Marks the stream as one that does not decode; for decoders that find it out by other means.
  void Fail() {
    failed_ = true;
    at_ = end_;
  }

 private:
  /// A number of so many bits lies in 8 bytes, in whichever bit of the first one it begins.
  static constexpr int kBitsOfLoad = 57;
  /// How many numbers of each width lie in kBitsOfLoad bits. A division would take as long as several of
  /// them.
  static constexpr auto kNumbersOfLoad = [] {
    std::array<uint8_t, kBitsOfLoad + 1> numbers{};
    for (int bits = 1; bits <= kBitsOfLoad; ++bits) numbers[bits] = static_cast<uint8_t>(kBitsOfLoad / bits);
    return numbers;
  }();

  /// At most kBitsOfLoad bits, which are there.
  uint64_t ReadFew(int bits) {
    if (bits == 0) return 0;
    const size_t byte = at_ / 8;
    const auto shift = static_cast<int>(at_ % 8);
    uint64_t word = 0;
    if (std::endian::native == std::endian::little && byte + 8 <= bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, 8);
    } else {
      for (size_t i = 0; i < 8 && byte + i < bytes_.size(); ++i) {
        word |= uint64_t{static_cast<unsigned char>(bytes_[byte + i])} << (8 * i);
      }
    }
    at_ += static_cast<uint64_t>(bits);
    return (word >> shift) & ((uint64_t{1} << bits) - 1);
  }

  std::string_view bytes_;
  uint64_t at_ = 0;
  uint64_t end_;
  bool failed_ = false;
};

}  // namespace kvstore::reports
