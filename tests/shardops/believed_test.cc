#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/clock.h"
#include "base/fail_point.h"
#include "router/router.h"
#include "shardops/copy.h"
#include "shardops/fleet_check.h"
#include "shardops/map_check.h"
#include "shardops/map_history.h"
#include "shardops/notes.h"
#include "shardops/remember.h"
#include "shardops/replace.h"
#include "shardops/status.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Tests of what operators' commands take to be true about hosts: from earlier inspections, from notes, and
/// from maps.
namespace kvstore::testing {
namespace {

using shardops::Promote;
using shardops::ReplaceSlave;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RecordedStateTest : public ::testing::Test {
 protected:
  RecordedStateTest() : store_(pair_.OpenStore(dir_.path())) {
    EXPECT_OK(store_->CreateDataset({.name = "events", .backend = "mysql"}));
  }
  ~RecordedStateTest() override { SetFailPointHook(nullptr); }

  void Put(const std::string& row) {
    const CellWrite cell{"c", "v", std::nullopt};
    ASSERT_OK(store_->PutRow("events", row, {&cell, 1}, {})) << row;
  }
  std::vector<std::string> Problems() {
    std::vector<std::string> all;
    const auto reports = shardops::InspectFleet(pair_.fleet());
    EXPECT_OK(reports.status());
    for (const shardops::HostReport& report : *reports) {
      for (const std::string& problem : report.problems)
        all.push_back(report.host.ToString() + ": " + problem);
    }
    return all;
  }
  std::string ProblemsOf(const Host& host) {
    std::string all;
    for (const std::string& problem : Problems()) {
      if (problem.starts_with(host.ToString() + ": ")) all += problem + "\n";
    }
    return all;
  }
  /// Returns "1\n" if a server's commits wait also while it has no slave.
  static std::string Waits(MariaDbServer& server) {
    return server.Run("SELECT @@rpl_semi_sync_master_enabled AND @@rpl_semi_sync_master_wait_no_slave");
  }

  const TempDir dir_;
  PairFleet pair_;
  std::unique_ptr<Router> store_;
};

TEST_F(RecordedStateTest, AnEmergencyThatIsRepeatedAsksAgainWhenWhatCameInWasThrownAway) {
  // The slave receives all that is acknowledged, and would apply it an hour later.
  pair_.b().Run("STOP SLAVE; CHANGE MASTER TO master_delay = 3600; START SLAVE");
  ASSERT_TRUE(Eventually([&] { return Problems().empty(); }));
  for (int i = 0; i < 5; ++i) Put(fmt::format("row{}", i));
  pair_.a().Kill();
  EXPECT_THAT(
      Promote(pair_.fleet(), pair_.host_b(), {.emergency = true, .catch_up = std::chrono::milliseconds(200)}),
      FailsWith(absl::StatusCode::kDeadlineExceeded, "has not applied"));
  // A slave that restarts throws away what it has not applied, to fetch it again from the master, which is
  // gone.
  pair_.b().Kill();
  pair_.b().Start();
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "Bring"));
  EXPECT_EQ(pair_.Master(), pair_.host_a());
}

TEST_F(RecordedStateTest, ASlaveIsTrustedOnlyIfItIsTheOneThatWasWaitedFor) {
  // The note about a master as `kv shards status` writes it, and a slave that has all that was in the log
  // then.
  shardops::HostState slave{.host = pair_.host_b(), .gtid = "1-1-100", .semi_sync_slave_active = true};
  slave.following = shardops::Following{.master = pair_.host_a(), .applies = true, .thread = 7};
  slave.started_s = 1001;
  const uint64_t now_ms = WallClockMs();
  nlohmann::json seen = {{"semi_sync", true}, {"wait_no_slave", true}, {"timeout_ms", shardops::kForEverMs},
                         {"gtid", "1-1-100"}, {"at_ms", now_ms},       {"at_slave", nullptr}};
  EXPECT_THAT(shardops::MayLackAcknowledged(seen, pair_.host_a(), slave), HasSubstr("no other"));
  seen["at_slave"] = {{"gtid", "1-1-100"}, {"slave", "another:1"}, {"thread", 7}, {"slave_started_s", 1000}};
  EXPECT_THAT(shardops::MayLackAcknowledged(seen, pair_.host_a(), slave), HasSubstr("no other"));
  seen["at_slave"]["slave"] = pair_.host_b().ToString();
  EXPECT_EQ(shardops::MayLackAcknowledged(seen, pair_.host_a(), slave), "");
  slave.started_s = 1003;
  EXPECT_THAT(shardops::MayLackAcknowledged(seen, pair_.host_a(), slave), HasSubstr("started again"));
  slave.started_s = 999;
  slave.gtid = "1-1-98";
  EXPECT_THAT(shardops::MayLackAcknowledged(seen, pair_.host_a(), slave), HasSubstr("lost 2 transactions"));
  seen["at_slave"]["thread"] = 6;
  EXPECT_THAT(shardops::MayLackAcknowledged(seen, pair_.host_a(), slave), HasSubstr("started again"));
}

TEST_F(RecordedStateTest, AMasterThatWasStartedAgainWaitsForItsSlaveAsBefore) {
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
  for (const Host& next : {pair_.host_b(), pair_.host_a()}) {
    ASSERT_OK(Promote(pair_.fleet(), next, {}).status());
  }
  EXPECT_EQ(Waits(pair_.a()), "0\n") << "as it was told";
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON");
  pair_.a().Kill();
  pair_.a().Start();
  // The slave has not noticed the restart yet.
  const auto promotion = Promote(pair_.fleet(), pair_.host_a(), {.catch_up = std::chrono::seconds(60)});
  ASSERT_OK(promotion.status());
  EXPECT_TRUE(promotion->follows);
  EXPECT_EQ(Waits(pair_.a()), "1\n");
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(RecordedStateTest, WhoSleptUntilAHostWasAnothersLoadsNothing) {
  const std::string before = pair_.b().Run("SHOW DATABASES");
  const auto position = shardops::CopyDatabases(pair_.host_a(), pair_.host_b(), pair_.fleet().access,
                                                {.claim = 123'456, .unlogged = true});
  EXPECT_FALSE(position.ok());
  EXPECT_EQ(pair_.b().Run("SHOW DATABASES"), before);
  EXPECT_EQ(pair_.b().Run("SELECT COUNT(*) FROM mod00000.events"), "0\n") << "the table was not made anew";
}

/// Is thrown at a fail point, as if the process had died there.
struct Died {};

TEST_F(RecordedStateTest, ACopyThatWasCutOffNeverBecomesAMaster) {
  Put("r");
  for (const char* const point : {"replace.begun", "replace.empty", "replace.copied"}) {
    SCOPED_TRACE(point);
    SetFailPointHook([&](std::string_view name) {
      if (name == point) throw Died();
    });
    EXPECT_THROW(EXPECT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.discard = true})), Died);
    SetFailPointHook(nullptr);
    // The unfinished copy gets a transaction that the master lacks. Its promotion must not be proposed for
    // that.
    pair_.b().Run("SET GLOBAL read_only = OFF; CREATE DATABASE other; SET GLOBAL read_only = ON");
    const std::string again = "kv shards replace-slave " + pair_.host_b().ToString() + " --discard";
    EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {}),
                FailsWith(absl::StatusCode::kFailedPrecondition, again));
    const auto kept = Promote(pair_.fleet(), pair_.host_a(), {});
    ASSERT_OK(kept.status());
    EXPECT_FALSE(kept->follows);
    EXPECT_THAT(ProblemsOf(pair_.host_b()), HasSubstr(again));
    pair_.a().Kill();
    EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true, .accept_loss = 1'000'000}),
                FailsWith(absl::StatusCode::kFailedPrecondition, "has not ended"));
    EXPECT_THAT(ProblemsOf(pair_.host_a()), Not(HasSubstr("--emergency")));
    pair_.a().Start();
    ASSERT_OK(Promote(pair_.fleet(), pair_.host_a(), {}));
    ASSERT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.discard = true}));
    EXPECT_EQ(ProblemsOf(pair_.host_b()), "");
    EXPECT_EQ(ProblemsOf(pair_.host_a()), "") << "it waits for its slave again";
  }
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_b(), {}));
  EXPECT_EQ(store_->GetRow("events", "r", {})->items.size(), 1u);
}

TEST_F(RecordedStateTest, ACopysMarkIsRemovedByItsOwnOperationOnly) {
  const auto begin = [&](const std::string& what) {
    return *pair_.fleet().ledger->Begin({.what = what, .claims = {Claim::Host(what, ClaimMode::kExclusive)}});
  };
  const Held first = begin("one");
  const Held second = begin("another");
  ASSERT_OK(shardops::BeginCopy(pair_.fleet(), first, pair_.host_b(), pair_.host_a()));
  ASSERT_OK(shardops::BeginCopy(pair_.fleet(), second, pair_.host_b(), pair_.host_a()));
  ASSERT_OK(shardops::EndCopy(pair_.fleet(), first, pair_.host_b()));
  EXPECT_FALSE(shardops::CheckCopyEnded(pair_.fleet(), pair_.host_b()).ok());
  // The mark survives when the rest of the note is replaced.
  ASSERT_OK(shardops::WriteNote(pair_.fleet(), pair_.host_b(), {{"gtid", "1-1-1"}}));
  EXPECT_FALSE(shardops::CheckCopyEnded(pair_.fleet(), pair_.host_b()).ok());
  ASSERT_OK(shardops::EndCopy(pair_.fleet(), second, pair_.host_b()));
  EXPECT_OK(shardops::CheckCopyEnded(pair_.fleet(), pair_.host_b()));

  // An operation that is not held any more cannot set the mark.
  ASSERT_OK(pair_.fleet().ledger->End(first.id()));
  EXPECT_THAT(shardops::BeginCopy(pair_.fleet(), first, pair_.host_b(), pair_.host_a()),
              FailsWith(absl::StatusCode::kAborted, ""));
  EXPECT_OK(shardops::CheckCopyEnded(pair_.fleet(), pair_.host_b()));

  // A host with an unfinished copy, which a map that somebody has edited names the master.
  ASSERT_OK(shardops::BeginCopy(pair_.fleet(), second, pair_.host_a(), pair_.host_b()));
  const std::string way_out =
      "kv shards promote " + pair_.host_b().ToString() + " makes that the master first";
  EXPECT_THAT(Problems(), Contains(HasSubstr(way_out)));
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_a(), {}).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, way_out));
}

TEST_F(RecordedStateTest, ANoteThatWasWrittenMeanwhileIsNotOverwrittenByAnOlderLook) {
  const auto before = shardops::LoadNote(pair_.fleet(), pair_.host_a());
  ASSERT_OK(before);
  ASSERT_OK(shardops::RecordCommitsWithoutSlave(pair_.fleet(), pair_.host_a()));
  EXPECT_FALSE(shardops::WriteNote(pair_.fleet(), pair_.host_a(), {{"semi_sync", true}}, &*before).ok());
  EXPECT_FALSE(shardops::NoteOrEmpty(pair_.fleet(), pair_.host_a()).value("semi_sync", true));
}

ShardMap MapOf(const Host& master, const Host& slave, uint32_t last = PairFleet::kShards - 1) {
  return *ShardMap::Create({{.first = 0, .last = last, .master = master, .slave = slave}});
}

TEST_F(RecordedStateTest, AMapIsComparedWithTheHosts) {
  ASSERT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  const auto maps = shardops::Maps::Load(pair_.fleet().zookeeper, pair_.fleet().root);
  ASSERT_OK(maps);
  const auto why_not = [&](ShardSpace space, const ShardMap& next) {
    return shardops::FindMapProblems(pair_.fleet(), *maps, space, next, shardops::AskHosts::kChanges);
  };
  EXPECT_THAT(why_not(ShardSpace::kId, MapOf(pair_.host_a(), pair_.host_b())), IsEmpty());
  MariaDbServer other({"--log-bin=binlog", "--gtid-strict-mode=ON", "--server-id=9", "--gtid-domain-id=9"});
  const Host typo{"127.0.0.1", other.port()};
  const auto wrong = why_not(ShardSpace::kId, MapOf(typo, pair_.host_b()));
  EXPECT_THAT(wrong, Contains(HasSubstr("has no db00000")));
  EXPECT_THAT(wrong, Contains(HasSubstr("takes writes")));
  EXPECT_THAT(wrong, Contains(HasSubstr("2 pairs"))) << "the map of mod shards has the old one";
  const auto swapped = why_not(ShardSpace::kId, MapOf(pair_.host_b(), pair_.host_a()));
  EXPECT_THAT(swapped, Contains(HasSubstr("is read-only")));
  EXPECT_THAT(swapped, Contains(HasSubstr("kv shards promote " + pair_.host_b().ToString())));
  // In the place of a map that cannot be read, a map is compared as a whole.
  const auto for_damaged = [&](const ShardMap& next) {
    return shardops::FindMapProblems(pair_.fleet(), *maps, ShardSpace::kId, next, shardops::AskHosts::kAll);
  };
  EXPECT_THAT(for_damaged(MapOf(pair_.host_a(), pair_.host_b())), IsEmpty());
  EXPECT_THAT(for_damaged(MapOf(pair_.host_a(), pair_.host_b(), 8)), Contains(HasSubstr("has no db00008")));
  // A map that opens a shard which another host has already.
  other.Run("CREATE DATABASE db00008");
  ASSERT_OK(shardops::WriteNote(pair_.fleet(), typo, nlohmann::json::object()));
  EXPECT_THAT(why_not(ShardSpace::kId, MapOf(pair_.host_a(), pair_.host_b(), 8)),
              Contains(HasSubstr("has db00008 already")));
}

TEST_F(RecordedStateTest, ShardsInWhichNothingIsStoredMayChangeHands) {
  MariaDbServer other({"--log-bin=binlog", "--gtid-strict-mode=ON", "--server-id=9", "--gtid-domain-id=9"});
  const ShardMap next = MapOf({"127.0.0.1", other.port()}, pair_.host_b());
  const auto is_refused = [&] {
    const auto maps = shardops::Maps::Load(pair_.fleet().zookeeper, pair_.fleet().root);
    EXPECT_OK(maps);
    const auto problems =
        shardops::FindMapProblems(pair_.fleet(), *maps, ShardSpace::kId, next, shardops::AskHosts::kChanges);
    // The map of mod shards has another pair, which is another matter.
    EXPECT_THAT(problems, Contains(HasSubstr("2 pairs")));
    const bool lacks = ::testing::Value(problems, Contains(HasSubstr("has no db00000")));
    EXPECT_EQ(lacks, ::testing::Value(problems, Contains(HasSubstr("takes writes"))));
    return lacks;
  };
  EXPECT_FALSE(is_refused()) << "there is no dataset of objects or mappings";
  pair_.a().Run("CREATE DATABASE db00003_moved; CREATE TABLE db00003_moved.pins (id INT PRIMARY KEY)");
  EXPECT_TRUE(is_refused()) << "old tables of a move";
  pair_.a().Run("DROP DATABASE db00003_moved");
  ASSERT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  EXPECT_TRUE(is_refused());
  ASSERT_OK(store_->DropDataset("pins", {}));
  EXPECT_TRUE(Eventually([&] { return !is_refused(); })) << "also once the slave has dropped the tables";
  ASSERT_OK(shardops::WriteNote(pair_.fleet(), {"127.0.0.1", 1}, nlohmann::json::object()));
  EXPECT_TRUE(is_refused()) << "a host that may have something does not answer";
}

TEST_F(RecordedStateTest, AMapIsNotPutInForceBesideAnotherOneThanItWasComparedWith) {
  shardops::FleetOperator& fleet = pair_.fleet();
  const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  ASSERT_OK(maps);
  const shardops::StoredMap& ids = *maps->Find(ShardSpace::kId);
  const shardops::StoredMap& mods = *maps->Find(ShardSpace::kMod);
  ASSERT_OK_AND_ASSIGN(const Held edit, fleet.ledger->Begin({.what = "edit"}));
  // While an operator is asked about the map of ID shards, another one edits the other map.
  ASSERT_OK(fleet.zookeeper.Set(mods.path, mods.map.ToJson(), mods.version));
  EXPECT_THAT(maps->SetText(*fleet.ledger, edit, ShardSpace::kId, ids.map.ToJson(), ids.version),
              FailsWith(absl::StatusCode::kFailedPrecondition, ""));
  const auto now = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  ASSERT_OK(now);
  EXPECT_EQ(now->Find(ShardSpace::kId)->version, ids.version) << "nothing was written";
  EXPECT_OK(now->SetText(*fleet.ledger, edit, ShardSpace::kId, ids.map.ToJson(), ids.version));
}

TEST_F(RecordedStateTest, WhereTheMapsDisagreeNothingElseIsProposed) {
  auto& zookeeper = pair_.fleet().zookeeper;
  const std::string path = pair_.fleet().root + "/shards/id";
  ASSERT_OK(shardops::PrepareHistory(zookeeper, pair_.fleet().root));
  const auto node = zookeeper.Get(path, false);
  ASSERT_OK(node);
  ASSERT_OK(zookeeper.Set(path, MapOf(pair_.host_b(), pair_.host_a()).ToJson(), node->version));
  const auto problems = Problems();
  EXPECT_THAT(problems, Contains(HasSubstr("kv shards undo")));
  EXPECT_THAT(problems, Not(Contains(HasSubstr("kv shards fence"))));
  EXPECT_THAT(problems, Not(Contains(HasSubstr("kv shards promote"))));
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kv shards undo"));
  // The map from before is in the history.
  const auto history = shardops::ReadHistory(zookeeper, pair_.fleet().root, ShardSpace::kId);
  ASSERT_OK(history);
  ASSERT_EQ(history->size(), 1u);
  EXPECT_EQ(history->front().map, *ShardMap::Parse(node->data));
  // A damaged entry that somebody has put there by hand hides no others.
  const std::string folder = pair_.fleet().root + "/history/id/";
  for (const char* const damaged : {"", "[]", R"({"map": 7, "at_ms": "x", "who": {}})", R"({"map": "{}"})"}) {
    ASSERT_OK(zookeeper.Create(folder + "9", damaged));
    const auto both = shardops::ReadHistory(zookeeper, pair_.fleet().root, ShardSpace::kId);
    ASSERT_OK(both);
    ASSERT_EQ(both->size(), 2u);
    EXPECT_EQ(both->front().name, "9");
    EXPECT_EQ(both->front().map, std::nullopt) << damaged;
    EXPECT_EQ(both->back().map, history->front().map);
    ASSERT_OK(zookeeper.Delete(folder + "9"));
  }
}

TEST_F(RecordedStateTest, EmptyShardsAreNotMadeWhereAnotherHostHasThem) {
  auto& zookeeper = pair_.fleet().zookeeper;
  MariaDbServer other({"--log-bin=binlog", "--gtid-strict-mode=ON", "--server-id=9", "--gtid-domain-id=9"});
  other.Run(
      "CREATE USER kvstore@'127.0.0.1' IDENTIFIED BY 'kvstore'; GRANT ALL ON `db%`.* TO kvstore@'127.0.0.1';"
      "GRANT ALL ON `mod%`.* TO kvstore@'127.0.0.1';");
  const Host typo{"127.0.0.1", other.port()};
  Problems();  // Hosts that were in the maps when somebody looked are known.
  for (const char* const map : {"/shards/id", "/shards/mod"}) {
    const auto node = zookeeper.Get(pair_.fleet().root + map, false);
    ASSERT_OK(node);
    ASSERT_OK(zookeeper.Set(pair_.fleet().root + map, MapOf(typo, {"127.0.0.1", 1}).ToJson(), node->version));
  }
  const auto backend = pair_.OpenBackend();
  const std::vector<Host> known = {pair_.host_a(), pair_.host_b()};
  for (const auto empty : {mysql::EmptyElsewhere::kRefused, mysql::EmptyElsewhere::kIgnored}) {
    EXPECT_THAT(backend->CheckNowhereElse(known, empty),
                FailsWith(absl::StatusCode::kFailedPrecondition, "Either the map is wrong"));
  }
  // `kv shards check` proposes to look at the map instead of making the shards.
  const auto found = shardops::CheckFleet(pair_.fleet(), {});
  ASSERT_OK(found);
  EXPECT_THAT(found->problems, Not(Contains(HasSubstr("kv shards init"))));
  EXPECT_THAT(found->problems, Contains(HasSubstr("is the map right? kv shards history")));
}

}  // namespace
}  // namespace kvstore::testing
