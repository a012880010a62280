#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "backends/cached/servers/memcached_answers.h"
#include "backends/cached/servers/redis_answers.h"

/// The bytes of the answers of cache servers, taken apart in whatever pieces they arrive.
namespace kvstore::cached {
namespace {

/// Gives bytes to the decoder in pieces of this size, and returns all answers as text.
std::string DecodeMemcached(std::string_view bytes, size_t piece) {
  MemcachedAnswers answers;
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    answers.Append(bytes.substr(at, piece));
    for (;;) {
      const auto answer = answers.Next();
      if (!answer.ok()) return text + "error";
      if (!*answer) break;
      text += (*answer)->code + "(" + (*answer)->value + "," + std::to_string((*answer)->cas) + "," +
              std::to_string((*answer)->client) + ((*answer)->won ? ",W)" : ")");
    }
  }
  return text + (answers.empty() ? "" : "...");
}

TEST(MemcachedAnswersTest, AreDecodedInAnyPieces) {
  const std::string bytes =
      "EN\r\nVA 3 c7 f2\r\na\r\n\r\nHD c12\r\nVA 0 c1 f0 t30 W\r\n\r\nNS c0\r\nEX\r\nNF\r\nMN\r\nVA 5 c1 "
      "f1\r\nab";
  for (const size_t piece : {1UL, 2UL, 3UL, 7UL, 1000UL}) {
    EXPECT_EQ(DecodeMemcached(bytes, piece),
              "EN(,0,0)VA(a\r\n,7,2)HD(,12,0)VA(,1,0,W)NS(,0,0)EX(,0,0)NF(,0,0)MN(,0,0)...");
  }
}

TEST(MemcachedAnswersTest, WhatIsNoneIsRefused) {
  for (const std::string bytes :
       {"VALUE k 0 1\r\n", "\r\n", "VA\r\n", "VA -1\r\n", "VA 18446744073709551616\r\n", "VA 9000000 c1\r\n",
        "VA 1 cx\r\na\r\n", "VA 1 c1\r\nabc\r\n", "ERROR\r\n",
        "SERVER_ERROR out of memory storing object\r\n"}) {
    EXPECT_EQ(DecodeMemcached(bytes, 1000), "error") << bytes;
  }
  EXPECT_EQ(DecodeMemcached(std::string(5000, 'x'), 100), "error");
}

std::string AsText(const RedisAnswer& answer) {
  using Kind = RedisAnswer::Kind;
  switch (answer.kind) {
    case Kind::kText:
      return "'" + answer.text + "'";
    case Kind::kNumber:
      return std::to_string(answer.number);
    case Kind::kNothing:
      return "nothing";
    case Kind::kError:
      return "!" + answer.text;
    case Kind::kList:
      break;
  }
  std::string text = "[";
  for (const RedisAnswer& part : answer.parts) text += AsText(part) + ";";
  return text + "]";
}

/// Gives bytes to the decoder in pieces of this size, and returns all answers as text.
std::string DecodeRedis(std::string_view bytes, size_t piece) {
  RedisAnswers answers;
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    answers.Append(bytes.substr(at, piece));
    for (;;) {
      const auto answer = answers.Next(/*most_parts=*/4);
      if (!answer.ok()) return text + "error";
      if (!*answer) break;
      text += AsText(**answer);
    }
  }
  return text + (answers.empty() ? "" : "...");
}

TEST(RedisAnswersTest, AreDecodedInAnyPieces) {
  const std::string bytes =
      "+OK\r\n-ERR no\r\n:-7\r\n$-1\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*-1\r\n*0\r\n*3\r\n$1\r\nH\r\n:1\r\n$-1\r\n"
      "*2\r\n:1\r\n";
  for (const size_t piece : {1UL, 2UL, 3UL, 7UL, 1000UL}) {
    EXPECT_EQ(DecodeRedis(bytes, piece), "'OK'!ERR no-7nothing'''a\r\nb'nothing[]['H';1;nothing;]...");
  }
}

TEST(RedisAnswersTest, WhatIsNoneOrTooLargeIsRefused) {
  for (const std::string bytes :
       {"\r\n", "x\r\n", ":\r\n", ":1x\r\n", ":99999999999999999999\r\n", "$\r\n", "$-2\r\n", "$1\r\nabc\r\n",
        "$1048577\r\n", "$9223372036854775807\r\n", "*-2\r\n", "*5\r\n", "*9223372036854775807\r\n",
        "*1\r\n*1\r\n", "%1\r\n"}) {
    EXPECT_EQ(DecodeRedis(bytes, 1000), "error") << bytes;
  }
  EXPECT_EQ(DecodeRedis("+" + std::string(5000, 'x'), 100), "error");
  EXPECT_EQ(DecodeRedis("+" + std::string(RedisAnswers::kMaxLineBytes + 1, 'x') + "\r\n", 10'000), "error");
  const std::string largest = "$1048576\r\n" + std::string(size_t{1} << 20, 'x') + "\r\n";
  EXPECT_EQ(DecodeRedis(largest, 4096).size(), (size_t{1} << 20) + 2);
}

}  // namespace
}  // namespace kvstore::cached
