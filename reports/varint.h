#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Numbers of 1 to 10 bytes, 7 bits in each, the lowest first; the highest bit of a byte says that another
/// follows.
namespace kvstore::reports {

inline void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

/// Reads bytes from the front of a string. Behind the end, and after bytes that are no varint, it gives zeros
/// and says so by failed().
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      if (shift == 63 && byte > 1) break;
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) {
        // One number has one form: a last byte of zero would be another.
        if (byte == 0 && shift > 0) break;
        return value;
      }
    }
    Fail();
    return 0;
  }
  std::string_view Bytes(uint64_t size) {
    if (size > bytes_.size()) {
      Fail();
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  uint8_t Byte() {
    const std::string_view byte = Bytes(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte.front());
  }
  std::string_view rest() const { return bytes_; }
  bool failed() const { return failed_; }
  void Fail() {
    failed_ = true;
    bytes_ = {};
  }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace kvstore::reports
