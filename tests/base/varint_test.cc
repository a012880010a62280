#include "base/varint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace kvstore {
namespace {

TEST(Varint, EachNumberHasOneFormAndIsReadBack) {
  const auto form = [](uint64_t value) {
    std::string bytes;
    AppendVarint(bytes, value);
    return bytes;
  };
  EXPECT_EQ(form(0), std::string(1, '\0'));
  EXPECT_EQ(form(127), "\x7F");
  EXPECT_EQ(form(300), "\xAC\x02");
  EXPECT_EQ(form(std::numeric_limits<uint64_t>::max()), std::string(9, '\xFF') + "\x01");
  for (uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 35, uint64_t{1} << 63,
                         std::numeric_limits<uint64_t>::max()}) {
    const std::string bytes = form(value) + "rest";
    std::string_view in = bytes;
    uint64_t read = 0;
    EXPECT_TRUE(ConsumeVarint(in, read)) << value;
    EXPECT_EQ(read, value);
    EXPECT_EQ(in, "rest") << value;
  }
}

TEST(Varint, OtherBytesAreNone) {
  for (const std::string& bytes : {std::string(), std::string("\x80"), std::string("\x80\0", 2),
                                   std::string(9, '\xFF') + "\x02", std::string(10, '\xFF') + "\x01"}) {
    std::string_view in = bytes;
    uint64_t read = 0;
    EXPECT_FALSE(ConsumeVarint(in, read)) << bytes.size();
  }
}

}  // namespace
}  // namespace kvstore
