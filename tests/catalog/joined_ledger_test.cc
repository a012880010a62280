#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "catalog/ledger.h"
#include "tests/catalog/ledger_fixture.h"
#include "tests/support/status_matchers.h"

/// The ledger of a process and that of its fleet, joined: what touches shards is in both.
namespace kvstore {
namespace {

using testing::FailsWith;

TEST(JoinedLedger, WhatTouchesShardsIsBegunInBoth) {
  MemoryLedger own;
  auto owned = std::make_unique<MemoryLedger>();
  MemoryLedger& fleet = *owned;
  JoinedLedger both(own, std::move(owned));
  ASSERT_OK_AND_ASSIGN(
      Held create,
      both.Begin(Of("create", {Claim::Dataset("a", kExclusive),
                               Claim::Shards(ShardSpace::kMod, 0, Claim::kLastShard, kShared)})));
  ASSERT_OK_AND_ASSIGN(const Held drop, both.Begin(Of("drop", {Claim::Dataset("b", kExclusive)})));
  EXPECT_EQ(own.List()->size(), 2u);
  ASSERT_EQ(fleet.List()->size(), 1u);
  EXPECT_EQ(both.List()->size(), 2u);
  EXPECT_THAT(fleet.Begin(Of("open", {Claim::Shards(ShardSpace::kMod, 4, 7, kExclusive)})),
              FailsWith(kRefused, "'create'"));
  EXPECT_OK(create.Check());
  EXPECT_OK(fleet.Release(fleet.List()->front().id, true).status());
  EXPECT_THAT(create.Check(), FailsWith(absl::StatusCode::kAborted, ""));
  EXPECT_OK(create.End());
  // An operation that the fleet's ledger refuses is not begun in the own one.
  ASSERT_OK_AND_ASSIGN(const Held open,
                       fleet.Begin(Of("open", {Claim::Shards(ShardSpace::kMod, 4, 7, kExclusive)})));
  EXPECT_THAT(both.Begin(Of("create", {Claim::Dataset("a", kExclusive),
                                       Claim::Shards(ShardSpace::kMod, 0, 9, kShared)})),
              FailsWith(kRefused, "'open'"));
  EXPECT_EQ(own.List()->size(), 1u);
}

/// The ledger of a fleet whose ZooKeeper cannot be reached for a while; like a real one it keeps the claims.
class CutOffLedger : public MemoryLedger {
 public:
  absl::Status End(std::string_view id) override {
    ++ends;
    return away ? absl::UnavailableError("is away") : MemoryLedger::End(id);
  }
  bool away = false;
  int ends = 0;
};

TEST(JoinedLedger, WhatCannotBeEndedThereIsEndedHereUnlessItLasts) {
  MemoryLedger own;
  auto owned = std::make_unique<CutOffLedger>();
  CutOffLedger& fleet = *owned;
  JoinedLedger both(own, std::move(owned));
  ASSERT_OK_AND_ASSIGN(Held create,
                       both.Begin(Of("create", {Claim::Shards(ShardSpace::kMod, 0, 9, kShared)})));
  ASSERT_OK_AND_ASSIGN(Held migrate,
                       both.Begin(Lasting("migrate", {Claim::Shards(ShardSpace::kMod, 0, 9, kShared)})));
  ASSERT_OK(both.Begin(Lasting("here", {Claim::Dataset("a", kUpdate)})).status());
  fleet.away = true;
  EXPECT_THAT(create.End(), FailsWith(absl::StatusCode::kUnavailable, "is away"));
  EXPECT_THAT(migrate.End(), FailsWith(absl::StatusCode::kUnavailable, "is away"));
  EXPECT_EQ(fleet.ends, 2);
  EXPECT_OK(both.EndLasting("here"));
  EXPECT_EQ(fleet.ends, 2) << "it has no part there";
  ASSERT_EQ(own.List()->size(), 1u);
  EXPECT_EQ(own.List()->front().what, "migrate");
  fleet.away = false;
  EXPECT_OK(both.EndLasting("migrate"));
  EXPECT_TRUE(own.List()->empty());
  ASSERT_EQ(fleet.List()->size(), 1u);
  EXPECT_EQ(fleet.List()->front().what, "create") << "which that ledger sees to";
}

TEST(JoinedLedger, ALastingOneOfAnotherProcessIsEndedInBoth) {
  MemoryLedger own;
  auto owned = std::make_unique<MemoryLedger>();
  MemoryLedger& fleet = *owned;
  JoinedLedger both(own, std::move(owned));
  // The other process has a JoinedLedger of its own on the same two, and knows which parts belong together.
  const Operation migrate = Lasting("migrate", {Claim::Shards(ShardSpace::kMod, 0, 9, kShared)});
  for (MemoryLedger* const one : {&own, &fleet}) ASSERT_OK(one->Begin(migrate));
  EXPECT_OK(both.EndLasting("migrate"));
  for (MemoryLedger* const one : {&own, &fleet}) EXPECT_TRUE(one->List()->empty());
}

TEST(JoinedLedger, ALastingOneIsTakenOverInBoth) {
  MemoryLedger own;
  auto owned = std::make_unique<MemoryLedger>();
  MemoryLedger& fleet = *owned;
  JoinedLedger both(own, std::move(owned));
  const Operation migrate = Lasting("migrate", {Claim::Shards(ShardSpace::kMod, 0, 9, kShared)});
  ASSERT_OK_AND_ASSIGN(const Held first, both.Begin(migrate));
  ASSERT_OK_AND_ASSIGN(const Held second, both.Begin(migrate));
  EXPECT_TRUE(second.taken_over());
  EXPECT_THAT(first.Check(), FailsWith(absl::StatusCode::kAborted, ""));
  EXPECT_OK(second.Check());
  EXPECT_EQ(both.List()->size(), 1u);
  // After the fleet's ledger has refused, the operation is held as before, and both parts of it are found.
  ASSERT_OK_AND_ASSIGN(Held move,
                       fleet.Begin(Of("move", {Claim::Homes(ShardSpace::kMod, 0, 3, kExclusive)})));
  Operation more = migrate;
  more.claims.push_back(Claim::Homes(ShardSpace::kMod, 0, 3, kShared));
  EXPECT_THAT(both.Begin(more), FailsWith(kRefused, "'move'"));
  EXPECT_OK(both.EndLasting("migrate"));
  EXPECT_EQ(fleet.List()->size(), 1u);
  EXPECT_TRUE(own.List()->empty());
}

}  // namespace
}  // namespace kvstore
