#include "json/plain_json.h"

#include <gtest/gtest.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/json_text.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using Kind = FlatValue::Kind;

/// A value of `flat` as a tree. A kOther stands for "other".
Json TreeOf(const FlatJson& flat, const FlatValue& value) {
  switch (value.kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInteger:
      return value.integer;
    case Kind::kLargeInteger:
    case Kind::kReal:
      return value.real;
    case Kind::kString:
      return std::string(value.text);
    case Kind::kArray: {
      Json array = Json::array();
      for (const FlatValue& element : flat.Elements(value)) array.push_back(TreeOf(flat, element));
      return array;
    }
    case Kind::kObject: {
      Json object = Json::object();
      for (const FlatField& field : flat.Fields(value))
        object[std::string(field.name)] = TreeOf(flat, field.value);
      return object;
    }
    case Kind::kOther:
      break;
  }
  return "other";
}

/// Whether two trees have the same numbers, bit for bit, and the same of all else. Json's own comparison
/// holds 1 and 1.0 for equal.
bool AreSame(const Json& a, const Json& b) {
  if (a.is_number_float() != b.is_number_float()) return false;
  if (a.is_number_float()) {
    return std::bit_cast<uint64_t>(a.get<double>()) == std::bit_cast<uint64_t>(b.get<double>());
  }
  if (!a.is_structured() || a.size() != b.size() || a.type() != b.type()) return a == b;
  if (a.is_array()) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (!AreSame(a[i], b[i])) return false;
    }
    return true;
  }
  for (const auto& [name, value] : a.items()) {
    if (!b.contains(name) || !AreSame(value, b[name])) return false;
  }
  return true;
}

/// Reads a text both ways. Returns whether it was plain; then it must be JSON, and say the same.
bool IsPlain(const std::string& text) {
  FlatJson flat;
  PlainJson plain(text);
  const FlatValue value = plain.Value(flat);
  if (!plain.IsWhole()) return false;
  const auto tree = ParseJson(text);
  EXPECT_OK(tree) << text;
  if (!tree.ok()) return true;
  EXPECT_TRUE(AreSame(TreeOf(flat, value), *tree)) << text << " is read as " << TextOf(TreeOf(flat, value));
  // A tree that is made flat says the same, too.
  FlatJson other;
  const FlatValue added = other.Add(*tree);
  EXPECT_TRUE(AreSame(TreeOf(other, added), *tree)) << text;
  return true;
}

TEST(PlainJson, SaysWhatATreeSays) {
  for (const char* text : {"0",
                           "-0",
                           "7",
                           "-12",
                           "123456789012345678",
                           "-123456789012345678",
                           "1.5",
                           "-0.0",
                           "1e3",
                           "2E-2",
                           "0.1",
                           "1.7976931348623157e308",
                           "5e-324",
                           "0.30000000000000004",
                           "100000000000000000000000.5",
                           "true",
                           "false",
                           "null",
                           R"("")",
                           R"("a b")",
                           R"("Zürich")",
                           "[]",
                           R"([1,"a",null,true,-2.5])",
                           "{}",
                           R"({"b":1,"a":{"d":[2,3],"c":"x"},"":null})",
                           " { \"a\" :\t[ 1 ,\n2 ] } \r\n"}) {
    EXPECT_TRUE(IsPlain(text)) << text;
  }
}

TEST(PlainJson, GivesUpWhereATreeIsNeeded) {
  for (const char* text :
       {R"("\n")", R"("\u0041")", R"({"\u0061":1})", "1234567890123456789", "9223372036854775808", "[[1]]",
        R"([{"a":1}])", R"({"a":1,"a":2})", R"({"a":{"b":1,"b":1}})", R"({"a":{"b":{"c":{"d":{}}}}})"}) {
    EXPECT_FALSE(IsPlain(text)) << text;
    EXPECT_OK(ParseJson(text)) << text;
  }
}

TEST(PlainJson, GivesUpAtAnyMistake) {
  for (const char* text : {"",           " ",
                           "{",          "}",
                           "[",          "[1",
                           "[1,]",       "[,1]",
                           "{\"a\"}",    "{\"a\":}",
                           "{\"a\":1,}", "{a:1}",
                           "1 2",        "1,",
                           "01",         "-",
                           "+1",         "1.",
                           ".5",         "1e",
                           "1e+",        "0x1",
                           "1.e3",       "--1",
                           "tru",        "nul",
                           "truefalse",  "'a'",
                           "\"a",        "\"a\nb\"",
                           "\"\xff\"",   "\"\xed\xa0\x80\"",
                           "NaN",        "1e999",
                           "-1e999",     "[1 2]",
                           "{\"a\" 1}",  "\xef\xbb\xbf{}",
                           "// x\n1"}) {
    EXPECT_FALSE(IsPlain(text)) << text;
  }
}

TEST(PlainJson, StringsOfAnyLengthEndWhereTheyEnd) {
  for (size_t size = 1; size <= 26; ++size) {
    for (size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string string(size, 'a');
        string[at] = static_cast<char>(byte);
        // Neither another string after it nor the end of the text makes a difference.
        for (const std::string behind : {"", ",\"bbbbbbbbbbbb\""}) {
          const std::string text = "\"" + string + "\"" + behind;
          PlainJson plain(text);
          const std::string_view read = plain.String();
          const bool ends = byte == '"';
          if (byte < 0x20 || byte == '\\' || byte >= 0x80) {
            EXPECT_TRUE(plain.failed()) << size << " " << at << " " << byte;
          } else {
            EXPECT_FALSE(plain.failed()) << size << " " << at << " " << byte;
            EXPECT_EQ(read, ends ? string.substr(0, at) : string);
          }
        }
      }
      const std::string wide = "\"" + std::string(at, 'a') + "ü" + std::string(size - at, 'b') + "\"";
      PlainJson plain(wide);
      EXPECT_EQ(plain.String(), wide.substr(1, wide.size() - 2));
      EXPECT_TRUE(plain.IsWhole());
    }
  }
}

TEST(PlainJson, FieldsAreSortedByTheBytesOfTheirNames) {
  const std::string text = R"({"b":1,"ab":2,"":3,"zü":4,"aa":5,"ü":6,"a":7,"abc":8})";
  FlatJson flat;
  PlainJson plain(text);
  std::vector<std::string> names;
  for (const FlatField& field : flat.Fields(plain.Value(flat))) names.emplace_back(field.name);
  EXPECT_TRUE(plain.IsWhole());
  EXPECT_EQ(names, (std::vector<std::string>{"", "a", "aa", "ab", "abc", "b", "zü", "ü"}));
}

TEST(PlainJson, LeavesNothingOfAValueThatIsNotPlain) {
  FlatJson flat;
  PlainJson first(R"({"a":[1,2],"b":{"c":3}})");
  const FlatValue kept = first.Value(flat);
  ASSERT_TRUE(first.IsWhole());
  PlainJson second(R"({"a":[1,2],"b":{"c":"\n"}})");
  EXPECT_EQ(second.Value(flat).kind, Kind::kNull);
  EXPECT_TRUE(second.failed());
  PlainJson third(R"({"z":[4]})");
  const FlatValue next = third.Value(flat);
  EXPECT_EQ(TreeOf(flat, kept), Json::parse(R"({"a":[1,2],"b":{"c":3}})"));
  EXPECT_EQ(TreeOf(flat, next), Json::parse(R"({"z":[4]})"));
  EXPECT_EQ(next.begin, kept.end) << "what the second has added is gone";
}

TEST(PlainJson, PiecesAreReadOneByOne) {
  PlainJson json(R"( { "op" : "write", "add":false,"points":[{"a":1}, {"a":2}] })");
  FlatJson flat;
  json.Expect('{');
  EXPECT_EQ(json.String(), "op");
  json.Expect(':');
  EXPECT_EQ(json.String(), "write");
  EXPECT_TRUE(json.Take(','));
  EXPECT_EQ(json.String(), "add");
  json.Expect(':');
  EXPECT_FALSE(json.Bool());
  json.Expect(',');
  EXPECT_EQ(json.String(), "points");
  json.Expect(':');
  json.Expect('[');
  int64_t sum = 0;
  do {
    const FlatValue point = json.Value(flat);
    sum += flat.Find(point, "a")->integer;
    EXPECT_EQ(flat.Find(point, "b"), nullptr);
  } while (json.Take(','));
  EXPECT_EQ(sum, 3);
  json.Expect(']');
  EXPECT_FALSE(json.IsWhole());
  json.Expect('}');
  EXPECT_TRUE(json.IsWhole());
  json.Expect('}');
  EXPECT_TRUE(json.failed());
  EXPECT_EQ(json.String(), "");
}

/// A text of plain JSON, mostly.
std::string RandomText(testing::Random& random, int depth) {
  static const std::vector<std::string> kWords = {"true",
                                                  "null",
                                                  "0",
                                                  "-17",
                                                  "3.25",
                                                  "1e3",
                                                  "\"\"",
                                                  "\"abc\"",
                                                  "\"Z\xc3\xbcrich\"",
                                                  "\"\\u00fc\"",
                                                  "\"\\\"\"",
                                                  "999999999999999999",
                                                  "9223372036854775808",
                                                  "-0.0",
                                                  "false"};
  const uint64_t choice = depth > 3 ? 0 : random.Below(6);
  if (choice < 4) return kWords[random.Below(kWords.size())];
  std::string text = choice == 4 ? "[" : "{";
  const uint64_t count = random.Below(4);
  for (uint64_t i = 0; i < count; ++i) {
    if (i > 0) text += random.OneIn(4) ? " ,\n" : ",";
    if (choice == 5) text += "\"" + std::string(1, static_cast<char>('a' + random.Below(5))) + "\":";
    text += RandomText(random, depth + 1);
  }
  return text + (choice == 4 ? "]" : "}");
}

TEST(PlainJson, NeverAcceptsWhatATreeRefusesOrReadsDifferently) {
  testing::Random random(testing::Seed("plain JSON"));
  uint64_t plain = 0;
  const uint64_t rounds = testing::Rounds("KV_TEST_OPERATIONS", 20'000);
  for (uint64_t i = 0; i < rounds && !HasFailure(); ++i) {
    std::string text = RandomText(random, 0);
    // Any byte in any place, removed, added or changed.
    for (uint64_t changes = random.Below(3); changes > 0 && !text.empty(); --changes) {
      const size_t at = random.Below(text.size());
      static constexpr std::string_view kBytes = "{}[],:\"0123456789-+.eEtfn \\\x01\x7f\xc3\xbc\xff";
      const char byte = kBytes[random.Below(kBytes.size())];
      switch (random.Below(3)) {
        case 0:
          text.erase(at, 1);
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text[at] = byte;
      }
    }
    plain += IsPlain(text) ? 1 : 0;
  }
  EXPECT_GT(plain, rounds / 10) << "otherwise this has tested nothing";
}

}  // namespace
}  // namespace kvstore
