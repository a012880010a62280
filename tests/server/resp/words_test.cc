#include "server/resp/commands/words.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "backend_api/outcome.h"
#include "server/call/call.h"
#include "server/resp/commands/cursors.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/glob.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/table.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Tests of the parts of commands: keys, patterns, cursors, errors, and the table itself.
namespace kvstore::server::resp {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(Key, NamesARowOrAColumn) {
  ASSERT_OK_AND_ASSIGN(const Key row, ParseRowKey("events:user7"));
  EXPECT_EQ(row.dataset, "events");
  EXPECT_EQ(row.row, "user7");
  EXPECT_FALSE(row.column);
  ASSERT_OK_AND_ASSIGN(const Key column, ParseColumnKey(R"(events:user\x3A7:cl\\ick)"));
  EXPECT_EQ(column.row, "user:7");
  EXPECT_EQ(column.column, R"(cl\ick)");
  ASSERT_OK_AND_ASSIGN(const Key unnamed, ParseColumnKey("events:r:"));
  EXPECT_EQ(unnamed.column, "");
}

TEST(Key, SaysWhatIsWrongAndNeverQuotesTheKey) {
  for (const auto& [status, problem] :
       {std::pair(ParseKey("secret").status(), "names no dataset"),
        std::pair(ParseRowKey("d:secret:c").status(), R"(\x3A)"),
        std::pair(ParseColumnKey("d:secret").status(), "names no column"),
        std::pair(ParseKey("d:secret:b:c").status(), "more than the three parts"),
        std::pair(ParseKey(R"(d:secret\q)").status(), "begins neither"),
        std::pair(ParseIdKey("d:secret").status(), "decimal number"),
        std::pair(ParseIdKey("secret").status(), "decimal number")}) {
    EXPECT_THAT(status, FailsWith(kInvalid, problem));
    EXPECT_EQ(std::string(status.message()).find("secret"), std::string::npos) << status;
  }
}

TEST(Key, AnyRowIsFoundAgainByItsKey) {
  testing::Random random(testing::Seed("Key.AnyRowIsFoundAgainByItsKey"));
  for (int i = 0; i < 1'000; ++i) {
    std::string row = random.HostileBytes(1, 10);
    for (char& c : row) {
      if (random.OneIn(3)) c = random.OneIn(2) ? ':' : '\\';
    }
    const auto key = ParseRowKey(RowKey("d", row));
    ASSERT_OK(key);
    EXPECT_EQ(key->row, row);
  }
}

TEST(Key, OfAnObjectHasItsId) {
  const std::string shown = IdKeyText("docs", 4611686018427387903);
  ASSERT_OK_AND_ASSIGN(const IdKey key, ParseIdKey(shown));
  EXPECT_EQ(key.dataset, "docs");
  EXPECT_EQ(key.id, 4611686018427387903u);
  for (const char* text : {"docs:", "docs:-1", "docs:1:2", "docs: 1", "docs:99999999999999999999", "docs:0x1",
                           "docs:000000000000000000001"})
    EXPECT_FALSE(ParseIdKey(text).ok()) << text;
}

TEST(Key, WithoutADatasetIsRecognised) {
  EXPECT_OK(CheckNamesDataset("rows:r"));
  EXPECT_THAT(CheckNamesDataset("secret"), FailsWith(kInvalid, "names no dataset"));
}

TEST(Glob, TheStepsOfAMatchHaveABound) {
  EXPECT_LE(MostSteps("*", std::string(1'024, 'a')), kMatchStepsHere);
  EXPECT_GT(4 * MostSteps(std::string(1'024, '*'), std::string(1'024, 'a')), kMatchStepsHere);
}

TEST(Glob, MatchesAsRedisDoes) {
  const auto matches = [](std::string_view pattern, std::string_view text) { return Matches(pattern, text); };
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_TRUE(matches("h?llo", "hello"));
  EXPECT_FALSE(matches("h?llo", "hllo"));
  EXPECT_TRUE(matches("h*llo", "heeeello"));
  EXPECT_TRUE(matches("h[ae]llo", "hallo"));
  EXPECT_FALSE(matches("h[ae]llo", "hillo"));
  EXPECT_TRUE(matches("h[^e]llo", "hallo"));
  EXPECT_FALSE(matches("h[^e]llo", "hello"));
  EXPECT_TRUE(matches("h[a-c]llo", "hbllo"));
  EXPECT_TRUE(matches("h[c-a]llo", "hbllo"));
  EXPECT_TRUE(matches(R"(a\*b)", "a*b"));
  EXPECT_FALSE(matches(R"(a\*b)", "axb"));
  EXPECT_TRUE(matches("*a*b*", "xxaxxbxx"));
  EXPECT_FALSE(matches("*a*b", "xxaxxbxx"));
  EXPECT_TRUE(matches("[a", "a"));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("a**", "a"));
}

TEST(Glob, APatternOfManyStarsEnds) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_FALSE(Matches(pattern + "b", std::string(2'000, 'a')));
}

TEST(Glob, EveryMatchBeginsWithThePrefix) {
  EXPECT_EQ(LiteralPrefix("events:*"), "events:");
  EXPECT_EQ(LiteralPrefix(R"(a\*b[c])"), "a*b");
  EXPECT_EQ(LiteralPrefix("*"), "");
  EXPECT_EQ(LiteralPrefix("plain"), "plain");
}

TEST(Cursors, BelongToTheirCallerAndTheirCommand) {
  Cursors cursors;
  const uint64_t cursor = cursors.Add("web", "scan", "here");
  EXPECT_GT(cursor, 0u);
  EXPECT_LT(cursor, uint64_t{1} << 53) << "some clients keep numbers in doubles";
  EXPECT_EQ(cursors.Find("web", cursor, "scan"), "here");
  EXPECT_EQ(cursors.Find("web", cursor, "scan"), "here") << "a cursor may be used again";
  EXPECT_EQ(cursors.Find("web", cursor, "hscan k"), std::nullopt);
  EXPECT_EQ(cursors.Find("other", cursor, "scan"), std::nullopt);
  EXPECT_EQ(cursors.Find("web", cursor + 1, "scan"), std::nullopt);
}

TEST(Cursors, ACallerLosesItsOldestAndNobodyElses) {
  Cursors cursors;
  const uint64_t other = cursors.Add("other", "scan", "there");
  const uint64_t first = cursors.Add("web", "scan", "0");
  const uint64_t second = cursors.Add("web", "scan", "1");
  for (size_t i = 2; i <= Cursors::kMostEach; ++i) cursors.Add("web", "scan", std::to_string(i));
  EXPECT_EQ(cursors.Find("web", first, "scan"), std::nullopt);
  EXPECT_EQ(cursors.Find("web", second, "scan"), "1");
  EXPECT_EQ(cursors.Find("other", other, "scan"), "there");
}

TEST(RespErrors, BeginWithTheWordByWhichClientsTellThemApart) {
  EXPECT_EQ(ErrorText(absl::InvalidArgumentError("row: too long")), "ERR row: too long");
  EXPECT_EQ(ErrorText(absl::UnauthenticatedError("no token")), "NOAUTH Authentication required.");
  EXPECT_EQ(ErrorText(WithWord(absl::UnauthenticatedError("no"), "WRONGPASS")), "WRONGPASS no");
  EXPECT_EQ(ErrorText(absl::PermissionDeniedError("'web' may not")), "NOPERM 'web' may not");
  EXPECT_EQ(ErrorText(MarkRefused(TooManyInFlightError())).substr(0, 5), "BUSY ");
  EXPECT_EQ(ErrorText(absl::ResourceExhaustedError("disk full")), "ERR disk full");
  EXPECT_EQ(ErrorText(absl::UnavailableError("host down")), "TRYAGAIN host down");
  EXPECT_EQ(ErrorText(WritesHeldError("held")), "TRYAGAIN held");
  EXPECT_EQ(ErrorText(MarkInDoubt(absl::UnavailableError("lost"))), "INDOUBT lost");
  EXPECT_EQ(ErrorText(WrongTypeError("x")).substr(0, 10), "WRONGTYPE ");
  EXPECT_LT(ErrorText(absl::NotFoundError(std::string(10'000, 'n'))).size(), 600u);
}

TEST(Table, EachCommandIsFoundInAnyCaseAndDescribed) {
  std::set<std::string_view> names;
  for (const Command* command : AllCommands()) {
    EXPECT_TRUE(names.insert(command->name).second) << command->name;
    EXPECT_EQ(FindCommand(command->name), command);
    std::string upper(command->name);
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    EXPECT_EQ(FindCommand(upper), command);
    EXPECT_EQ(LowerCase(std::string_view(upper)), command->name);
    EXPECT_FALSE(command->summary.empty()) << command->name;
    EXPECT_FALSE(command->group.empty()) << command->name;
    EXPECT_NE(command->arity, 0) << command->name;
    EXPECT_TRUE(WhyNotSupported(command->name).empty()) << command->name << " is there";
    const bool is_local = std::holds_alternative<Local>(command->handler);
    EXPECT_EQ(is_local, command->operation == Operation::kCalls) << command->name << " needs no right";
    const bool has_key = command->dataset == DatasetIn::kKey;
    EXPECT_EQ(has_key, command->keys.first == 1) << command->name;
    // A key, or a dataset, is there whenever the command has as many words as it needs.
    if (has_key || command->dataset == DatasetIn::kArgument) {
      EXPECT_FALSE(HasArity(*command, 1)) << command->name;
    }
  }
  EXPECT_EQ(FindCommand(""), nullptr);
  EXPECT_EQ(FindCommand(std::string(100, 'g')), nullptr);
}

TEST(Table, WhatIsNotSupportedIsRefusedWithWhatToDoInstead) {
  EXPECT_THAT(UnknownCommandError("MULTI"), FailsWith(absl::StatusCode::kUnimplemented, "KV.PUT"));
  EXPECT_THAT(UnknownCommandError("Expire"), FailsWith(absl::StatusCode::kUnimplemented, "ttl_ms"));
  const absl::Status unknown = UnknownCommandError(std::string(1'000'000, 'x'));
  EXPECT_LT(unknown.message().size(), 200u);
}

TEST(Numbers, AreWholeAndFit) {
  EXPECT_EQ(ParseUnsigned("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseSigned("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "18446744073709551616"})
    EXPECT_FALSE(ParseUnsigned(text)) << text;
  EXPECT_EQ(ParseSigned("0"), 0);
  EXPECT_EQ(ParseSigned("-10"), -10);
  for (const char* text : {"", "-", "00", "007", "-0", "-07", "+1"}) EXPECT_FALSE(ParseSigned(text)) << text;
  EXPECT_EQ(ParseUnsigned("00000000000000000001"), 1u);
  EXPECT_FALSE(ParseUnsigned(std::string(1'000'000, '0'))) << "a key would have as many bytes";
}

}  // namespace
}  // namespace kvstore::server::resp
