#include "server/resp/protocol/encoder.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace kvstore::server::resp {
namespace {

template <typename Append>
std::string Encoded(Version version, const Append& append) {
  std::string text;
  Encoder out(text, version);
  append(out);
  return text;
}

TEST(Encoder, WhatExceedsTheLimitIsLeftOut) {
  std::string text = "before";
  Encoder out(text, Version::kResp2);
  out.Limit(20);
  out.Bulk("abc");
  EXPECT_FALSE(out.is_too_large());
  out.Bulk(std::string(1'000, 'x'));
  EXPECT_TRUE(out.is_too_large());
  out.Ok();
  EXPECT_LE(text.size(), 26u) << "nothing comes behind what was left out";
  out.Truncate(6);
  EXPECT_FALSE(out.is_too_large());
  out.Error("ERR too large");
  EXPECT_EQ(text, "before-ERR too large\r\n");
}

TEST(Encoder, BothVersionsHaveStringsNumbersAndArrays) {
  for (const Version version : {Version::kResp2, Version::kResp3}) {
    EXPECT_EQ(Encoded(version, [](Encoder& out) { out.Ok(); }), "+OK\r\n");
    EXPECT_EQ(Encoded(version, [](Encoder& out) { out.Bulk(std::string_view("a\0\r\n", 4)); }),
              std::string("$4\r\na\0\r\n\r\n", 10));
    EXPECT_EQ(Encoded(version, [](Encoder& out) { out.Bulk(""); }), "$0\r\n\r\n");
    EXPECT_EQ(Encoded(version, [](Encoder& out) { out.Integer(-5); }), ":-5\r\n");
    EXPECT_EQ(Encoded(version, [](Encoder& out) { out.Integer(std::numeric_limits<int64_t>::min()); }),
              ":-9223372036854775808\r\n");
    EXPECT_EQ(Encoded(version, [](Encoder& out) { out.Array(3); }), "*3\r\n");
    EXPECT_EQ(Encoded(version, [](Encoder& out) { out.Error("ERR a\r\nb\tc\x7F"); }), "-ERR a  b c \r\n");
  }
}

TEST(Encoder, TheOlderVersionHasItsOwnFormsForTheRest) {
  const auto in2 = [](auto append) { return Encoded(Version::kResp2, append); };
  const auto in3 = [](auto append) { return Encoded(Version::kResp3, append); };
  EXPECT_EQ(in2([](Encoder& out) { out.Null(); }), "$-1\r\n");
  EXPECT_EQ(in3([](Encoder& out) { out.Null(); }), "_\r\n");
  EXPECT_EQ(in2([](Encoder& out) { out.NullArray(); }), "*-1\r\n");
  EXPECT_EQ(in3([](Encoder& out) { out.NullArray(); }), "_\r\n");
  EXPECT_EQ(in2([](Encoder& out) { out.Map(2); }), "*4\r\n");
  EXPECT_EQ(in3([](Encoder& out) { out.Map(2); }), "%2\r\n");
  EXPECT_EQ(in2([](Encoder& out) { out.Set(2); }), "*2\r\n");
  EXPECT_EQ(in3([](Encoder& out) { out.Set(2); }), "~2\r\n");
  EXPECT_EQ(in2([](Encoder& out) { out.Score(std::numeric_limits<uint64_t>::max()); }),
            "$20\r\n18446744073709551615\r\n");
  EXPECT_EQ(in3([](Encoder& out) { out.Score(7); }), ",7\r\n");
  EXPECT_EQ(in2([](Encoder& out) { out.Verbatim("abc"); }), "$3\r\nabc\r\n");
  EXPECT_EQ(in3([](Encoder& out) { out.Verbatim("abc"); }), "=7\r\ntxt:abc\r\n");
}

TEST(Encoder, WhatWasAppendedCanBeTakenBack) {
  std::string text = "+before\r\n";
  Encoder out(text, Version::kResp2);
  const size_t before = out.size();
  out.Array(2);
  out.Bulk("a");
  out.Truncate(before);
  out.Error("ERR no");
  EXPECT_EQ(text, "+before\r\n-ERR no\r\n");
}

}  // namespace
}  // namespace kvstore::server::resp
