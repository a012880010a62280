#pragma once

#include <cstdint>
#include <string_view>

#include "base/varint.h"

namespace kvstore::reports {

/// Reads bytes from the front of a string. After the end, and after bytes that are no varint, it gives zeros
/// and says so by failed().
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t Varint() {
    uint64_t value = 0;
    if (ConsumeVarint(bytes_, value)) return value;
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
