#include "base/big_endian.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace kvstore {
namespace {

TEST(BigEndian, HasTheMostSignificantByteFirst) {
  std::string bytes;
  AppendBigEndian<uint32_t>(bytes, 0x01020304);
  AppendBigEndian<uint16_t>(bytes, 0x0506);
  EXPECT_EQ(bytes, "\x01\x02\x03\x04\x05\x06");
  EXPECT_EQ(ReadBigEndian<uint16_t>(bytes), 0x0102);
  EXPECT_EQ(ReadBigEndian<uint64_t>(std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFE", 8)), UINT64_MAX - 1);
}

RC_GTEST_PROP(BigEndianProperty, OrderOfBytesIsOrderOfNumbers, (uint64_t a, uint64_t b)) {
  std::string x;
  std::string y;
  AppendBigEndian(x, a);
  AppendBigEndian(y, b);
  RC_ASSERT(ReadBigEndian<uint64_t>(x) == a);
  RC_ASSERT((x < y) == (a < b));
}

}  // namespace
}  // namespace kvstore
