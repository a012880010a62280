#include "server/resp/protocol/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/random.h"

namespace kvstore::server::resp {
namespace {

using State = Decoder::State;
using Words = std::vector<std::string>;

constexpr DecoderLimits kLimits{
    .argument_bytes = 1000, .arguments = 10, .command_bytes = 2000, .inline_bytes = 100};
constexpr DecoderLimits kLargeLimits{.argument_bytes = size_t{8} << 20,
                                     .arguments = size_t{1} << 20,
                                     .command_bytes = size_t{20} << 20,
                                     .inline_bytes = 100};

void Feed(Decoder& decoder, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto room = decoder.Prepare();
    ASSERT_FALSE(room.empty());
    const size_t some = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), some);
    decoder.Commit(some);
    bytes.remove_prefix(some);
  }
}

/// The decoded commands, and how decoding ended.
struct Decoded {
  std::vector<Words> commands;
  State end = State::kMore;
  std::string error;
};

void DecodeAll(Decoder& decoder, Decoded& decoded) {
  std::vector<std::string_view> arguments;
  for (;;) {
    decoded.end = decoder.Next(arguments);
    if (decoded.end != State::kCommand) break;
    decoded.commands.emplace_back(arguments.begin(), arguments.end());
  }
  decoded.error = decoder.error();
}

/// Decodes bytes that arrive in pieces of this size.
Decoded Decode(std::string_view bytes, size_t piece = SIZE_MAX) {
  Decoder decoder(kLimits);
  Decoded decoded;
  while (!bytes.empty() && decoded.end == State::kMore) {
    const std::string_view some = bytes.substr(0, piece);
    Feed(decoder, some);
    bytes.remove_prefix(some.size());
    DecodeAll(decoder, decoded);
  }
  return decoded;
}

std::string Bulk(const std::string& bytes) {
  return "$" + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n";
}

TEST(Decoder, TakesCommandsOutOfBytesHoweverTheyArrive) {
  const std::string nul("a\0b\r\n", 5);
  const std::string bytes = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*3\r\n" + Bulk("SET") + Bulk(nul) + Bulk("") +
                            "PING\r\n*0\r\n\r\n*-1\r\n  echo   \"a b\"  \n*1\r\n" + Bulk("QUIT");
  const std::vector<Words> expected = {{"GET", "k"}, {"SET", nul, ""}, {"PING"}, {"echo", "a b"}, {"QUIT"}};
  for (size_t piece = 1; piece < 12; ++piece) {
    const Decoded decoded = Decode(bytes, piece);
    EXPECT_EQ(decoded.commands, expected) << piece;
    EXPECT_EQ(decoded.end, State::kMore) << decoded.error;
  }
  EXPECT_EQ(Decode(bytes).commands, expected);
}

TEST(Decoder, ArgumentsStayValidWhileMoreCommandsAreDecoded) {
  Decoder decoder(kLimits);
  Feed(decoder, "*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\nc\r\n");
  std::vector<std::string_view> first;
  std::vector<std::string_view> second;
  std::vector<std::string_view> third;
  ASSERT_EQ(decoder.Next(first), State::kCommand);
  ASSERT_EQ(decoder.Next(second), State::kCommand);
  ASSERT_EQ(decoder.Next(third), State::kCommand);
  EXPECT_EQ(first[0], "a");
  EXPECT_EQ(second[0], "b");
  EXPECT_EQ(third[0], "c");
  EXPECT_FALSE(decoder.IsInsideCommand());
}

TEST(Decoder, WhatIsNoCommandIsAnErrorForGood) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"*x\r\n", "invalid multibulk length"},
      {"*\r\n", "invalid multibulk length"},
      {"*1 \r\n", "invalid multibulk length"},
      {"*11\r\n", "invalid multibulk length"},
      {"*99999999999999999999\r\n", "invalid multibulk length"},
      {"*1\r\n:5\r\n", "expected '$', got ':'"},
      {"*1\r\n*1\r\n$1\r\na\r\n", "expected '$', got '*'"},
      {std::string("*1\r\n\0", 5), "expected '$', got '?'"},
      {"*1\r\n$-1\r\n", "invalid bulk length"},
      {"*1\r\n$x\r\n", "invalid bulk length"},
      {"*1\r\n$1001\r\n", "invalid bulk length"},
      {"*1\r\n$1\r\nabc\r\n", "expected CRLF"},
      {"*1\r\n$1\r\na\n\n", "expected CRLF"},
      {"*" + std::string(40, '0'), "too big mbulk count string"},
      {"*1\r\n$" + std::string(40, '0'), "too big bulk count string"},
      {std::string(103, 'a'), "too big inline request"},
      {"set k \"v\r\n", "unbalanced quotes"},
      {"set k \"v\"w\r\n", "unbalanced quotes"},
      {"a b c d e f g h i j k\r\n", "too many words"},
      {"*3\r\n" + Bulk(std::string(1000, 'a')) + Bulk(std::string(900, 'b')) + "$900\r\n",
       "more than 2000 bytes"},
  };
  for (const auto& [bytes, error] : mistakes) {
    for (const size_t piece : {size_t{1}, size_t{7}, SIZE_MAX}) {
      const Decoded decoded = Decode("PING\r\n" + bytes, piece);
      EXPECT_EQ(decoded.end, State::kError) << bytes;
      EXPECT_NE(decoded.error.find("Protocol error: "), std::string::npos) << decoded.error;
      EXPECT_NE(decoded.error.find(error), std::string::npos) << decoded.error << " of " << bytes;
      EXPECT_EQ(decoded.commands, std::vector<Words>({{"PING"}}));
    }
  }
  Decoder decoder(kLimits);
  std::vector<std::string_view> arguments;
  Feed(decoder, "*x\r\n");
  EXPECT_EQ(decoder.Next(arguments), State::kError);
  Feed(decoder, "PING\r\n");
  EXPECT_EQ(decoder.Next(arguments), State::kError);
}

TEST(Decoder, ALimitIsTheLastThatIsAccepted) {
  const Decoded longest = Decode("*2\r\n" + Bulk(std::string(1000, 'a')) + Bulk("b"));
  EXPECT_EQ(longest.commands.size(), 1u) << longest.error;
  std::string many = "*10\r\n";
  for (int i = 0; i < 10; ++i) many += Bulk("x");
  EXPECT_EQ(Decode(many).commands.size(), 1u);
  EXPECT_EQ(Decode(std::string(100, 'a') + "\r\n").commands.size(), 1u);
}

TEST(Decoder, ACommandThatSaysItIsLargeTakesNoMemoryUntilItComes) {
  Decoder decoder(kLargeLimits);
  std::vector<std::string_view> arguments;
  Feed(decoder, "*1000000\r\n$8000000\r\n");
  EXPECT_EQ(decoder.Next(arguments), State::kMore);
  EXPECT_LT(decoder.MemoryAfterPrepare(), 20'000u);
  EXPECT_TRUE(decoder.IsInsideCommand());
}

TEST(Decoder, MemoryIsGivenBackBehindALargeCommand) {
  Decoder decoder(kLargeLimits);
  Decoded decoded;
  const std::string large(4 << 20, 'x');
  Feed(decoder, "*2\r\n" + Bulk("a") + Bulk(large));
  EXPECT_GE(decoder.memory(), large.size());
  DecodeAll(decoder, decoded);
  ASSERT_EQ(decoded.commands.size(), 1u);
  EXPECT_EQ(decoded.commands[0][1], large);
  decoder.Prepare();
  EXPECT_LE(decoder.memory(), 40'000u);
  std::string many = "*500000\r\n";
  for (int i = 0; i < 500'000; ++i) many += "$0\r\n\r\n";
  Feed(decoder, many);
  DecodeAll(decoder, decoded);
  ASSERT_EQ(decoded.commands.size(), 2u);
  decoder.Prepare();
  EXPECT_LE(decoder.memory(), 40'000u);
}

TEST(Decoder, AnyBytesInAnyPiecesGiveTheSame) {
  testing::Random random(testing::Seed("Decoder.AnyBytesInAnyPiecesGiveTheSame"));
  const std::vector<std::string> parts = {"*1\r\n", "*2\r\n",  "$1\r\n",  "$3\r\n", "a",        "\r\n",
                                          "\n",     "abc\r\n", "\"a b\"", "'",      "\\x41",    "*",
                                          "$",      " ",       "-1",      "*0",     "PING\r\n", "$0\r\n\r\n"};
  for (int round = 0; round < 3'000; ++round) {
    std::string bytes;
    for (uint64_t i = random.Below(30); i > 0; --i) bytes += parts[random.Below(parts.size())];
    const Decoded whole = Decode(bytes);
    const Decoded pieces = Decode(bytes, 1 + random.Below(9));
    ASSERT_EQ(pieces.commands, whole.commands) << bytes;
    ASSERT_EQ(pieces.error, whole.error) << bytes;
  }
}

// ---- lines ----

Words Split(std::string line) {
  std::vector<Piece> pieces;
  if (!SplitInline(line, pieces)) return {"(unbalanced)"};
  Words words;
  for (const Piece& piece : pieces) words.push_back(line.substr(piece.begin, piece.size));
  return words;
}

TEST(InlineCommand, IsSplitAsRedisDoes) {
  EXPECT_EQ(Split(""), Words());
  EXPECT_EQ(Split("  \t "), Words());
  EXPECT_EQ(Split("set k v"), (Words{"set", "k", "v"}));
  EXPECT_EQ(Split(R"(set "a b" 'c d')"), (Words{"set", "a b", "c d"}));
  EXPECT_EQ(Split(R"("\x41\n\r\t\b\a\"\\\q\x4")"), (Words{"A\n\r\t\b\a\"\\qx4"}));
  EXPECT_EQ(Split(R"('it\'s \n')"), (Words{"it's \\n"}));
  EXPECT_EQ(Split(R"(a"b c")"), (Words{"ab c"}));
  EXPECT_EQ(Split("\"\" ''"), (Words{"", ""}));
  EXPECT_EQ(Split("\"a\"b"), Words{"(unbalanced)"});
  EXPECT_EQ(Split("\"a"), Words{"(unbalanced)"});
  EXPECT_EQ(Split("'a"), Words{"(unbalanced)"});
  EXPECT_EQ(Split("\"a\\"), Words{"(unbalanced)"});
}

}  // namespace
}  // namespace kvstore::server::resp
