#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "backends/cached/protocol/guard.h"
#include "backends/cached/protocol/ring.h"
#include "backends/cached/protocol/view.h"
#include "backends/cached/stores.h"
#include "tests/support/status_matchers.h"

namespace kvstore::cached {
namespace {

// Processes of other versions read these stored formats, too, so the tests pin them.

TEST(GuardTest, HasThisForm) {
  const Guard guard{.number = 77, .trusted = true, .list = 3, .left = {{5, {.epoch = 2, .trusted = false}}}};
  const std::string text =
      R"({"left":[{"epoch":2,"incarnation":5,"trusted":false}],"list":3,"number":77,"trusted":true,"version":1})";
  EXPECT_EQ(ToText(guard), text);
  EXPECT_EQ(ParseGuard(text), guard);
}

TEST(GuardTest, WhatIsNoneIsNotUnderstood) {
  for (const char* text : {"", "1", "{}", R"({"version":2,"number":1,"list":1,"left":[]})",
                           R"({"version":1,"number":1,"list":1,"left":[{}]})",
                           R"({"version":1,"number":1,"list":1,"left":[],"more":1})"}) {
    EXPECT_EQ(ParseGuard(text), std::nullopt) << text;
  }
}

TEST(ViewTest, HasThisForm) {
  const View view{.id = 99,
                  .list = 2,
                  .memcached = {"a:1"},
                  .redis = {"b:2", "c:3"},
                  .lease_ms = 4,
                  .quarantine_s = 5,
                  .suspended = {{"redis c:3", 1700000000000}},
                  .changing = 7,
                  .before = {"memcached d:4"}};
  const std::string text =
      R"({"version":1,"id":99,"list":2,"memcached":["a:1"],"redis":["b:2","c:3"],"lease_ms":4,"quarantine_s":5,"suspended":{"redis c:3":1700000000000},)"
      R"("changing":7,"before":["memcached d:4"]})";
  EXPECT_EQ(*ParseView(text), view);
  EXPECT_EQ(*ParseView(ToText(view)), view);
  EXPECT_THAT(ParseView(R"({"version":1,"id":1,"list":0})"),
              testing::FailsWith(absl::StatusCode::kInvalidArgument, "list"));
  EXPECT_THAT(
      ParseView(
          R"({"version":1,"id":1,"list":1,"memcached":[1],"redis":[],"lease_ms":1,"quarantine_s":1,"suspended":{},"changing":0,"before":[]})"),
      testing::FailsWith(absl::StatusCode::kInvalidArgument, "memcached"));
}

TEST(CachedFormTest, ObjectsAreFlagsTimestampAndDocument) {
  const Object object{.id = 9, .data = R"({"a":1})", .timestamp = 0x0102030405060708};
  EXPECT_EQ(EncodeCached(object), std::string("\0\1\2\3\4\5\6\7\10", 9) + object.data);
  const auto decoded = DecodeCachedObject(9, EncodeCached(object));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->object.id, 9U);
  EXPECT_EQ(decoded->object.data, object.data);
  EXPECT_EQ(decoded->object.timestamp, object.timestamp);
  EXPECT_FALSE(decoded->inactive);
  EXPECT_TRUE(DecodeCachedObject(9, EncodeCached(Object{.id = 9, .data = R"({"active":false})"}))->inactive);
  EXPECT_FALSE(DecodeCachedObject(9, "short"));
  EXPECT_FALSE(DecodeCachedObject(9,
                                  "\x02"
                                  "12345678{}"));
}

TEST(CachedFormTest, ListsAreAByteAndPairs) {
  const MappingList list{.entries = {{.to = 1, .sequence = 2}, {.to = 3, .sequence = 4}}, .more = true};
  EXPECT_EQ(EncodeCached(list),
            std::string("\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4", 33));
  EXPECT_EQ(DecodeCachedList(EncodeCached(list))->entries, list.entries);
  EXPECT_TRUE(DecodeCachedList(EncodeCached(list))->more);
  EXPECT_TRUE(DecodeCachedList(EncodeCached(MappingList{}))->entries.empty());
  EXPECT_FALSE(DecodeCachedList(""));
  EXPECT_FALSE(
      DecodeCachedList("\x01"
                       "123"));
  EXPECT_FALSE(DecodeCachedList("\x02"));
}

TEST(RingTest, SharesAreEvenAndOneMoreServerMovesFewKeys) {
  const std::vector<std::string> four = {"a:1", "b:1", "c:1", "d:1"};
  std::vector<std::string> five = four;
  five.insert(five.begin(), "e:1");
  const Ring before(four);
  const Ring after(five);
  constexpr int kKeys = 100'000;
  std::array<int, 4> shares{};
  int moved = 0;
  for (int i = 0; i < kKeys; ++i) {
    const uint64_t hash = RingHash(1, static_cast<uint64_t>(i));
    ++shares[before.Find(hash)];
    if (four[before.Find(hash)] != five[after.Find(hash)]) ++moved;
  }
  for (const int share : shares) EXPECT_NEAR(share, kKeys / 4, kKeys / 4 / 4);
  EXPECT_LT(moved, kKeys / 4);
  EXPECT_GT(moved, kKeys / 8);
}

TEST(RingTest, PlacesStayWhereTheyAre) {
  // Another place would make a process of an earlier version look, and mark, elsewhere.
  EXPECT_EQ(RingHash(1, 2), 583880340377267059U);
  EXPECT_TRUE(Ring({}).empty());
}

}  // namespace
}  // namespace kvstore::cached
