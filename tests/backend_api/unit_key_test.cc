#include "backend_api/unit_key.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "kvstore_api/dataset.h"
#include "tests/support/random.h"

namespace kvstore {
namespace {

using namespace std::string_literals;

TEST(UnitKey, HasTheBytesThatItsFormatSays) {
  EXPECT_EQ(RowUnitKey("r", "c"),
            "r\0\x01"s
            "c\0\x01"s);
  EXPECT_EQ(RowUnitKey("r\0s"s, ""),
            "r\0\xff"s
            "s\0\x01"s
            "\0\x01"s);
  EXPECT_EQ(ObjectUnitKey(0x0102030405060708), "\x01\x02\x03\x04\x05\x06\x07\x08"s);
  EXPECT_EQ(MappingUnitKey(1, 2), "\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02"s);
  EXPECT_EQ(EndOf("r\0\x01"s), "r\0\x02"s);
}

TEST(UnitKey, TellsARowFromOneOfItsColumns) {
  const auto row = ParseRowUnitKey("r\0\x01"s);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->row, "r");
  EXPECT_FALSE(row->column);
  EXPECT_FALSE(IsUnitKey(Shape::kRows, "r\0\x01"s));
  EXPECT_TRUE(IsUnitKey(Shape::kRows, RowUnitKey("r", "")));
}

TEST(UnitKey, WhatIsMalformedIsNone) {
  const std::string whole = RowUnitKey("r\0"s, "c");
  for (const std::string& bad : {""s, "r"s, "r\0"s, "r\0\x02"s,
                                 "r\0\x01"s
                                 "c"s,
                                 "r\0\x01"s
                                 "c\0"s,
                                 whole + "x", whole + "\0\x01"s}) {
    EXPECT_FALSE(ParseRowUnitKey(bad)) << ::testing::PrintToString(bad);
  }
  EXPECT_FALSE(EncodedSize("abc\0"s));
  EXPECT_FALSE(IsUnitKey(Shape::kObjects, "1234567"));
  EXPECT_FALSE(IsUnitKey(Shape::kMappings, "12345678"));
}

std::string Draw(size_t min) { return testing::Random(*rc::gen::arbitrary<uint64_t>()).HostileBytes(min, 4); }

RC_GTEST_PROP(UnitKey, KeepsTheOrderOfRowsAndColumnsAndComesBack, ()) {
  const auto a = std::pair(Draw(1), Draw(0));
  const auto b = std::pair(Draw(1), Draw(0));
  const std::string key = RowUnitKey(a.first, a.second);
  const std::string other = RowUnitKey(b.first, b.second);
  RC_ASSERT((key < other) == (a < b));
  RC_ASSERT((key == other) == (a == b));
  const auto parsed = ParseRowUnitKey(key);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->row == a.first);
  RC_ASSERT(parsed->column == a.second);
  // All keys of a row, and no others, lie before the end of its key.
  std::string row;
  AppendEncoded(row, a.first);
  RC_ASSERT((other >= row && other < EndOf(row)) == (a.first == b.first));
}

}  // namespace
}  // namespace kvstore
