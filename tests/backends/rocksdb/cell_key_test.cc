#include "backends/rocksdb/rows/cell_key.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <tuple>

#include "kvstore_api/limits.h"
#include "tests/support/random.h"

namespace kvstore::rocks {
namespace {

using namespace std::string_literals;

std::string Encoded(std::string_view bytes) {
  std::string out;
  AppendEncoded(out, bytes);
  return out;
}

std::string Key(std::string_view row, std::string_view column, uint64_t timestamp) {
  std::string key;
  AppendEncoded(key, row);
  AppendEncoded(key, column);
  AppendTimestamp(key, timestamp);
  return key;
}

// These are the stored format, and must never change. docs/key-format.md explains the first one.
TEST(CellKey, Golden) {
  EXPECT_EQ(Key("user:7", "click", 1'700'000'000'000),
            "user:7\x00\x01"
            "click\x00\x01"
            "\xFF\xFF\xFE\x74\x30\x1A\x97\xFF"s);
  EXPECT_EQ(Key("\0"s, "", 0),
            "\x00\xFF\x00\x01"
            "\x00\x01"
            "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(Key("\xFF"s, "\x01"s, kMaxTimestamp),
            "\xFF\x00\x01"
            "\x01\x00\x01"
            "\x80\x00\x00\x00\x00\x00\x00\x00"s);
  EXPECT_EQ(Encoded("a\0\0b"s),
            "a\x00\xFF\x00\xFF"
            "b\x00\x01"s);
}

TEST(CellKey, ComesApartAgain) {
  const std::string key = Key("a\0b"s, "c", 9);
  const auto parts = ParseCellKey(key);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->row, Encoded("a\0b"s));
  EXPECT_EQ(parts->column, Encoded("c"));
  EXPECT_EQ(parts->timestamp, 9u);
  EXPECT_EQ(TimestampOf(key), 9u);
}

TEST(CellKey, MalformedBytesAreFoundOut) {
  for (const std::string& bytes : {""s, "a"s, "a\0"s, "a\0\x02"s, "\0"s, "\0\0"s}) {
    EXPECT_FALSE(EncodedSize(bytes)) << bytes;
    std::string out;
    EXPECT_FALSE(Decode(bytes, out)) << bytes;
  }
  std::string out;
  EXPECT_FALSE(
      Decode("a\0\x01"
             "b"s,
             out));  // bytes after the end mark
  const std::string good = Key("row", "column", 1);
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(ParseCellKey(good.substr(0, size))) << size;
  EXPECT_FALSE(ParseCellKey(good + "x"));
}

TEST(CellKey, EndOfIsBehindAllThatItBeginsAndBeforeTheNext) {
  const std::string row = Encoded("a");
  const std::string end = EndOf(row);
  EXPECT_LT(Key("a", std::string(1024, '\xFF'), 0), end);
  EXPECT_LT(end, Key("a\0"s, "", kMaxTimestamp));
  EXPECT_LT(end, Key("b", "", kMaxTimestamp));
}

std::string Draw(size_t min) { return testing::Random(*rc::gen::arbitrary<uint64_t>()).HostileBytes(min, 4); }

RC_GTEST_PROP(CellKeyProperty, EncodingKeepsOrderAndComesBack, ()) {
  const std::string a = Draw(0);
  const std::string b = Draw(0);
  RC_ASSERT((a < b) == (Encoded(a) < Encoded(b)));
  std::string out;
  RC_ASSERT(Decode(Encoded(a), out) && out == a);
  RC_ASSERT(EncodedSize(Encoded(a) + b) == Encoded(a).size());
}

RC_GTEST_PROP(CellKeyProperty, NoEncodingIsAPrefixOfAnother, ()) {
  const std::string a = Encoded(Draw(0));
  const std::string b = Encoded(Draw(0));
  RC_ASSERT(a == b || !b.starts_with(a));
}

RC_GTEST_PROP(CellKeyProperty, KeysSortByRowThenColumnThenNewestFirst, ()) {
  const auto draw = [] { return std::tuple(Draw(1), Draw(0), *rc::gen::arbitrary<uint64_t>() >> 1); };
  const auto [row_a, column_a, time_a] = draw();
  const auto [row_b, column_b, time_b] = draw();
  RC_ASSERT((std::tie(row_a, column_a, time_b) < std::tie(row_b, column_b, time_a)) ==
            (Key(row_a, column_a, time_a) < Key(row_b, column_b, time_b)));
}

RC_GTEST_PROP(CellKeyProperty, HostileBytesAreParsedOnlyIfTheyAreAKey, ()) {
  const std::string bytes = testing::Random(*rc::gen::arbitrary<uint64_t>()).HostileBytes(0, 24);
  const auto parts = ParseCellKey(bytes);
  if (!parts) return;
  std::string row;
  std::string column;
  RC_ASSERT(Decode(parts->row, row) && Decode(parts->column, column));
  RC_ASSERT(Key(row, column, parts->timestamp) == bytes);
}

}  // namespace
}  // namespace kvstore::rocks
