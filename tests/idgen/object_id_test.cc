#include "idgen/object_id.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <tuple>
#include <vector>

#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ObjectId, TakesApartThePublishedExamples) {
  // "Sharding Pinterest" decodes the first ID by hand; the others are the IDs of a user and a board on the
  // same shard.
  const std::vector<std::tuple<uint64_t, uint32_t, uint32_t, uint64_t>> published = {
      {241294492511762325, 3429, 1, 7075733},
      {241294561224164665, 3429, 2, 1337},
      {241294629943640797, 3429, 3, 733}};
  for (const auto& [value, shard, type, local] : published) {
    ASSERT_OK_AND_ASSIGN(const ObjectId id, ObjectId::FromValue(value));
    EXPECT_EQ(id.shard(), shard);
    EXPECT_EQ(id.type(), type);
    EXPECT_EQ(id.local(), local);
    ASSERT_OK_AND_ASSIGN(const ObjectId made, ObjectId::Make(shard, type, local));
    EXPECT_EQ(made, id);
    EXPECT_EQ(made.ToString(), std::to_string(value));
  }
}

TEST(ObjectId, HoldsTheExtremes) {
  ASSERT_OK_AND_ASSIGN(const ObjectId last, ObjectId::Make(65535, 1023, ObjectId::kMaxLocal));
  EXPECT_EQ(last.value(), (uint64_t{1} << 62) - 1);
  ASSERT_OK_AND_ASSIGN(const ObjectId first, ObjectId::Make(0, 1, 1));
  EXPECT_EQ(first.value(), (uint64_t{1} << 36) + 1);
  EXPECT_LT(first, last);
}

TEST(ObjectId, RefusesPartsOutOfRange) {
  EXPECT_THAT(ObjectId::Make(65536, 1, 1), FailsWith(kInvalid, "shard"));
  EXPECT_THAT(ObjectId::Make(0, 0, 1), FailsWith(kInvalid, "type"));
  EXPECT_THAT(ObjectId::Make(0, 1024, 1), FailsWith(kInvalid, "type"));
  EXPECT_THAT(ObjectId::Make(0, 1, 0), FailsWith(kInvalid, "local"));
  EXPECT_THAT(ObjectId::Make(0, 1, uint64_t{1} << 36), FailsWith(kInvalid, "local"));
}

TEST(ObjectId, RefusesValuesThatAreNone) {
  EXPECT_THAT(ObjectId::FromValue(0), FailsWith(kInvalid, ""));
  EXPECT_THAT(ObjectId::FromValue(uint64_t{1} << 62 | uint64_t{1} << 36 | 1), FailsWith(kInvalid, ""));
  EXPECT_THAT(ObjectId::FromValue(UINT64_MAX), FailsWith(kInvalid, ""));
  EXPECT_THAT(ObjectId::FromValue(uint64_t{1} << 36), FailsWith(kInvalid, "local"));
  EXPECT_THAT(ObjectId::FromValue(1), FailsWith(kInvalid, "type"));
}

TEST(ObjectId, ParsesDigitsOnly) {
  ASSERT_OK_AND_ASSIGN(const ObjectId id, ObjectId::Parse("241294492511762325"));
  EXPECT_EQ(id.shard(), 3429u);
  for (const char* text : {"", " 241294492511762325", "241294492511762325 ", "+1", "-1", "0x1", "1e3",
                           "99999999999999999999999", "241294492511762325x"}) {
    EXPECT_THAT(ObjectId::Parse(text), FailsWith(kInvalid, "")) << text;
  }
}

RC_GTEST_PROP(ObjectIdProperty, EveryIdComesBackFromItsPartsAndItsText, ()) {
  const uint64_t shard = *rc::gen::inRange<uint64_t>(0, 65536);
  const uint64_t type = *rc::gen::inRange<uint64_t>(1, 1024);
  const uint64_t local = *rc::gen::inRange<uint64_t>(1, uint64_t{1} << 36);
  const auto id = ObjectId::Make(shard, type, local);
  RC_ASSERT(id.ok());
  RC_ASSERT(id->shard() == shard && id->type() == type && id->local() == local);
  RC_ASSERT(*ObjectId::FromValue(id->value()) == *id);
  RC_ASSERT(*ObjectId::Parse(id->ToString()) == *id);
}

RC_GTEST_PROP(ObjectIdProperty, IdsSortByShardThenTypeThenLocal, ()) {
  const auto draw = [] {
    return std::tuple(*rc::gen::inRange<uint64_t>(0, 65536), *rc::gen::inRange<uint64_t>(1, 1024),
                      *rc::gen::inRange<uint64_t>(1, uint64_t{1} << 36));
  };
  const auto a = draw();
  const auto b = draw();
  RC_ASSERT((a < b) == (*std::apply(ObjectId::Make, a) < *std::apply(ObjectId::Make, b)));
}

}  // namespace
}  // namespace kvstore
