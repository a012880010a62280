#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/fail_point.h"
#include "operate/dead_masters.h"
#include "operate/switch.h"
#include "shardops/notes.h"
#include "shardops/promote.h"
#include "shardops/status.h"
#include "tests/blobstore/hostile_http.h"
#include "tests/operate/operated_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Tests of kv operate on a fleet of real servers. Partitions of the network are in partitions.py.
namespace kvstore::testing {
namespace {

using operate::Event;
using ::testing::HasSubstr;

class OperateTest : public ::testing::Test {
 protected:
  /// Waits until the master has run for so long that it can be told from a restarted one: a server says when
  /// it was started in whole seconds.
  bool HasRunForLong() {
    return Eventually([&] {
      const std::string uptime = fleet_.pair().a().Run("SHOW GLOBAL STATUS LIKE 'Uptime'");
      return std::stoi(uptime.substr(uptime.find('\t') + 1)) >= 8;
    });
  }
  /// Kills the master, and waits until each process takes it for dead.
  void KillAndAwaitSilence() {
    fleet_.pair().a().Kill();
    EXPECT_TRUE(fleet_.AwaitAlarm("is dead")) << "the death was not noticed";
  }
  /// Starts one process, which replaces nobody: on a busy machine the restart of a server may take so long
  /// that its slave would take its place.
  void StartOne() {
    fleet_.Start();
    EXPECT_TRUE(Eventually([&] { return fleet_.IsInspected(); }));
  }
  /// Has the slave notice that it hears nothing any more within seconds, not a minute (docs/operate.md).
  void NoticeSilence() {
    fleet_.pair().b().Run(
        "STOP SLAVE; SET GLOBAL slave_net_timeout = 2; CHANGE MASTER TO master_heartbeat_period = 1; "
        "START SLAVE");
    EXPECT_TRUE(Eventually([&] { return IsWell(); }));
  }
  /// Whether both hosts of the pair are without problems.
  bool IsWell() {
    const Host master = fleet_.pair().Master();
    const shardops::Pair now = master == fleet_.pair().host_a()
                                   ? fleet_.pair().hosts()
                                   : shardops::Pair{fleet_.pair().host_b(), fleet_.pair().host_a()};
    return shardops::InspectHost(fleet_.pair().fleet(), now, true).problems.empty() &&
           shardops::InspectHost(fleet_.pair().fleet(), now, false).problems.empty();
  }

  OperatedFleet fleet_;
};

TEST_F(OperateTest, ADeadMasterIsReplacedAndNothingAcknowledgedIsLost) {
  fleet_.SwitchOn();
  fleet_.StartTwo();
  std::atomic<bool> stop{false};
  std::atomic<int> acknowledged{0};
  std::thread writer([&] {
    while (!stop && fleet_.Put(acknowledged)) ++acknowledged;
  });
  EXPECT_TRUE(Eventually([&] { return acknowledged > 50; }));
  fleet_.pair().a().Kill();
  EXPECT_TRUE(fleet_.AwaitMaster(fleet_.pair().host_b()));
  const int before = acknowledged;
  EXPECT_TRUE(Eventually([&] { return acknowledged > before + 50; }));
  stop = true;
  writer.join();
  for (int row = 0; row < acknowledged; ++row) EXPECT_TRUE(fleet_.Has(row)) << row;

  const Event begun = fleet_.AwaitEvent("act", "in its place");
  EXPECT_EQ(begun.subject, fleet_.pair().host_a().ToString());
  EXPECT_THAT(begun.text, HasSubstr("cannot reach it either"));
  const Event done = fleet_.AwaitEvent("act", "is the master in the place of");
  EXPECT_EQ(done.subject, fleet_.pair().host_b().ToString());
  ASSERT_OK_AND_ASSIGN(const auto record, fleet_.records().Load(fleet_.pair().hosts()));
  ASSERT_TRUE(record.promotion);
  EXPECT_TRUE(record.promotion->done);
  EXPECT_EQ(record.promotion->to, fleet_.pair().host_b());

  // It comes back, and takes its place behind the new one; unless it has a last transaction that nobody was
  // told of, which a person is told then.
  fleet_.pair().a().Start();
  EXPECT_TRUE(Eventually([&] { return IsWell() || fleet_.HasEvent("alarm", "replace-slave"); }));
}

TEST_F(OperateTest, WithoutBeingSwitchedOnItOnlyTellsAPerson) {
  fleet_.StartTwo();
  KillAndAwaitSilence();
  EXPECT_TRUE(fleet_.AwaitAlarm("kv operate is off for this pair"));
  EXPECT_TRUE(fleet_.AwaitAlarm("kv shards promote " + fleet_.pair().host_b().ToString() + " --emergency"));
  EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_a());
}

TEST_F(OperateTest, OneProcessAloneReplacesNobody) {
  fleet_.SwitchOn();
  fleet_.Start();
  EXPECT_TRUE(Eventually([&] { return fleet_.IsInspected(); }));
  fleet_.pair().a().Kill();
  EXPECT_TRUE(fleet_.AwaitAlarm("there is no second observer"));
  EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_a());
  // A second one comes, and confirms it.
  fleet_.Start();
  EXPECT_TRUE(fleet_.AwaitMaster(fleet_.pair().host_b()));
}

TEST_F(OperateTest, ASecondDeathWithinTheHourIsForAPerson) {
  fleet_.SwitchOn();
  fleet_.StartTwo();
  fleet_.pair().a().Kill();
  fleet_.AwaitEvent("act", "is the master in the place of");
  fleet_.pair().a().Start();
  EXPECT_TRUE(Eventually(
      [&] { return (IsWell() && fleet_.IsInspected()) || fleet_.HasEvent("alarm", "replace-slave"); }));
  fleet_.pair().b().Kill();
  EXPECT_TRUE(fleet_.AwaitAlarm("within the hour, and does nothing more in this pair"));
  EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_b());
}

TEST_F(OperateTest, AMasterThatMayHaveAcknowledgedMoreThanItsSlaveHasIsForAPerson) {
  fleet_.SwitchOn();
  fleet_.StartTwo();
  // From here on it acknowledges what its slave does not have.
  CutOffSlave(fleet_.pair().a(), fleet_.pair().b());
  EXPECT_TRUE(Eventually([&] { return !fleet_.IsInspected(); }));
  EXPECT_TRUE(fleet_.Put(1));
  fleet_.pair().a().Kill();
  fleet_.pair().b().Run("START SLAVE IO_THREAD");
  EXPECT_TRUE(fleet_.AwaitAlarm("cannot take its place"));
  EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_a());
  // A person brings it back.
  fleet_.pair().a().Start();
  EXPECT_TRUE(Eventually([&] { return IsWell(); }));
  EXPECT_TRUE(fleet_.Has(1));
}

TEST_F(OperateTest, AMasterThatWasRestartedTakesWritesAgain) {
  fleet_.SwitchOn();
  StartOne();
  EXPECT_TRUE(fleet_.Put(1));
  EXPECT_TRUE(HasRunForLong());
  fleet_.pair().a().Kill();
  fleet_.pair().a().Start();
  fleet_.AwaitEvent("act", "take writes again after its restart");
  EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_a());
  EXPECT_TRUE(fleet_.Put(2));
  EXPECT_TRUE(fleet_.Has(1));
}

TEST_F(OperateTest, AMasterThatAPersonHasFencedStaysFenced) {
  fleet_.SwitchOn();
  fleet_.StartTwo();
  ASSERT_OK(shardops::Fence(fleet_.pair().fleet(), fleet_.pair().host_a()));
  EXPECT_TRUE(fleet_.AwaitAlarm("is a master by the map, and read-only"));
  EXPECT_FALSE(fleet_.HasEvent("act", "take writes again"));
}

TEST_F(OperateTest, AMasterThatAPersonHasFencedAndStartedAgainStaysFenced) {
  fleet_.SwitchOn();
  StartOne();
  ASSERT_OK(shardops::Fence(fleet_.pair().fleet(), fleet_.pair().host_a()));
  EXPECT_TRUE(fleet_.AwaitAlarm("is a master by the map, and read-only"));
  fleet_.pair().a().Kill();
  fleet_.pair().a().Start();
  // It has been inspected again: its slave is said to be away, or not to be waited for, by now.
  EXPECT_TRUE(fleet_.AwaitAlarm("acknowledges commits without its slave"));
  EXPECT_FALSE(fleet_.HasEvent("act", "take writes"));
  EXPECT_EQ(fleet_.pair().a().Run("SELECT @@read_only"), "1\n");
}

/// It may have lost what its slave has.
TEST_F(OperateTest, AMasterThatWasRestartedIsNotOpenedBeforeItsSlaveAnswers) {
  fleet_.SwitchOn();
  StartOne();
  EXPECT_TRUE(fleet_.Put(1));
  EXPECT_TRUE(HasRunForLong());
  fleet_.pair().b().Kill();
  fleet_.pair().a().Kill();
  fleet_.pair().a().Start();
  EXPECT_TRUE(fleet_.AwaitAlarm("It may have transactions that"));
  EXPECT_EQ(fleet_.pair().a().Run("SELECT @@read_only"), "1\n");
  fleet_.pair().b().Start();
  // A host is left alone for 20 s after an attempt.
  const auto opened = [&] { return fleet_.HasEvent("act", "take writes again after its restart"); };
  EXPECT_TRUE(Eventually(opened) || Eventually(opened));
  EXPECT_TRUE(fleet_.Put(2));
  EXPECT_TRUE(fleet_.Has(1));
}

/// Between two inspections nobody has seen it read-only: only its note tells.
TEST_F(OperateTest, AMasterThatAPersonHasFencedAndStartedAgainAtOnceStaysFenced) {
  fleet_.SwitchOn();
  StartOne();
  EXPECT_TRUE(fleet_.Put(1));
  EXPECT_TRUE(HasRunForLong());
  ASSERT_OK(shardops::Fence(fleet_.pair().fleet(), fleet_.pair().host_a()));
  fleet_.pair().a().Kill();
  fleet_.pair().a().Start();
  EXPECT_TRUE(fleet_.AwaitAlarm("is a master by the map, and read-only"));
  EXPECT_FALSE(fleet_.HasEvent("act", "take writes"));
  EXPECT_EQ(fleet_.pair().a().Run("SELECT @@read_only"), "1\n");
  // Whoever opens it ends that.
  ASSERT_OK(shardops::Promote(fleet_.pair().fleet(), fleet_.pair().host_a(), {}));
  const auto note = shardops::LoadNote(fleet_.pair().fleet(), fleet_.pair().host_a());
  ASSERT_OK(note);
  EXPECT_EQ(shardops::FencedBy(*note), "");
}

/// A leader that dies between the map and the last step leaves a pair without a master that takes writes.
TEST_F(OperateTest, ASuccessorOpensWhatTheLeaderHasPublished) {
  fleet_.SwitchOn();
  fleet_.StartTwo();
  fleet_.pair().a().Kill();
  EXPECT_TRUE(fleet_.AwaitMaster(fleet_.pair().host_b()));
  fleet_.AwaitEvent("act", "is the master in the place of");
  fleet_.StopAll();
  fleet_.pair().b().Run("SET GLOBAL read_only = ON");
  ASSERT_OK_AND_ASSIGN(auto record, fleet_.records().Load(fleet_.pair().hosts()));
  record.promotion->done = false;
  ASSERT_OK(fleet_.records().Save(fleet_.pair().hosts(), record));
  // The leader hangs, and has a lock on the host.
  ASSERT_OK_AND_ASSIGN(const auto hangs, shardops::HostAdmin::OpenClaimed(fleet_.pair().host_b(),
                                                                          fleet_.pair().fleet().access));
  fleet_.Start();
  fleet_.AwaitEvent("act", "take writes, which a leader has begun");
  EXPECT_FALSE(hangs->ClaimConnectionId().ok());
  EXPECT_TRUE(fleet_.Put(1));
  EXPECT_TRUE(Eventually([&] {
    const auto done = fleet_.records().Load(fleet_.pair().hosts());
    return done.ok() && done->promotion->done;
  }));
  // From here on a person who makes it read-only knows why; also when the old master comes back to follow it.
  ASSERT_OK(shardops::Fence(fleet_.pair().fleet(), fleet_.pair().host_b()));
  fleet_.pair().a().Start();
  EXPECT_TRUE(fleet_.AwaitAlarm("is a master by the map, and read-only"));
  EXPECT_EQ(fleet_.pair().b().Run("SELECT @@read_only"), "1\n");
}

TEST_F(OperateTest, ASuccessorOpensNothingThatSomebodyHasFenced) {
  fleet_.SwitchOn();
  fleet_.StartTwo();
  fleet_.pair().a().Kill();
  fleet_.AwaitEvent("act", "is the master in the place of");
  fleet_.StopAll();
  // The leader has died before it wrote down that it was done.
  ASSERT_OK_AND_ASSIGN(auto record, fleet_.records().Load(fleet_.pair().hosts()));
  record.promotion->done = false;
  ASSERT_OK(fleet_.records().Save(fleet_.pair().hosts(), record));
  ASSERT_OK(shardops::Fence(fleet_.pair().fleet(), fleet_.pair().host_b()));
  fleet_.Start();
  EXPECT_TRUE(fleet_.AwaitAlarm("stays read-only since it was fenced by"));
  EXPECT_EQ(fleet_.pair().b().Run("SELECT @@read_only"), "1\n");
}

/// MySQL tells clients then that their commits are done, MariaDB ends their connections.
TEST_F(OperateTest, WhatAMasterAcknowledgesWhileItIsShutDownIsNotLost) {
  fleet_.SwitchOn();
  fleet_.StartTwo();
  fleet_.pair().a().Run("CREATE TABLE db00000.last (number INT)");
  EXPECT_TRUE(Eventually([&] { return fleet_.IsInspected(); }));
  fleet_.pair().b().Run("STOP SLAVE IO_THREAD");
  std::atomic<bool> acknowledged{false};
  std::thread writer([&] {
    try {
      fleet_.pair().a().Run("INSERT INTO db00000.last VALUES (1)");
      acknowledged = true;
    } catch (const std::exception&) {
      // Its connection was ended.
    }
  });
  // It is inspected without its slave.
  EXPECT_TRUE(fleet_.AwaitAlarm("is not connected to its master"));
  EXPECT_FALSE(acknowledged);
  fleet_.pair().a().Run("SHUTDOWN");
  writer.join();
  fleet_.pair().b().Run("START SLAVE IO_THREAD");
  if (acknowledged) {
    EXPECT_TRUE(fleet_.AwaitAlarm("was seen alive without it"));
    EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_a());
  } else {
    EXPECT_TRUE(Eventually([&] {
      return fleet_.pair().Master() == fleet_.pair().host_b() ||
             fleet_.HasEvent("fail", "cannot take its place");
    }));
  }
  EXPECT_EQ(acknowledged, OnMySql());
}

TEST_F(OperateTest, ANoteThatSomebodyHasEditedIsNamedAndEndsNobody) {
  shardops::FleetOperator& fleet = fleet_.pair().fleet();
  const auto write = [&](const Host& host, const std::string& text) {
    const std::string path = "/kvstore/hosts/" + host.ToString();
    if (!fleet.zookeeper.Create(path, text).ok()) {
      ASSERT_OK(fleet.zookeeper.Set(path, text, -1));
    }
  };
  fleet_.SwitchOn();
  fleet_.StartTwo();
  write(fleet_.pair().host_b(), R"({"promoted_from": 7})");
  fleet_.pair().a().Kill();
  EXPECT_TRUE(fleet_.AwaitAlarm("could not be looked after"));
  EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_a());
  write(fleet_.pair().host_b(), "{}");
  EXPECT_TRUE(fleet_.AwaitMaster(fleet_.pair().host_b()));
  fleet_.StopAll();

  // A master with a slave, so that what is recorded depends on the note.
  fleet_.pair().a().Start();
  EXPECT_TRUE(Eventually([&] { return shardops::Promote(fleet, fleet_.pair().host_b(), {}).ok(); }));
  write(fleet_.pair().host_b(), R"({"let_go": "yes"})");
  fleet_.pair().b().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
  ASSERT_OK_AND_ASSIGN(const auto reports, shardops::InspectFleet(fleet));
  std::string problems;
  for (const auto& report : reports) {
    for (const std::string& problem : report.problems) problems += problem + "\n";
  }
  EXPECT_THAT(problems, HasSubstr("has a field of another type"));
}

TEST_F(OperateTest, ARepairChangesNothingOnceTheMapsSaySomethingElse) {
  shardops::FleetOperator& fleet = fleet_.pair().fleet();
  const Host a = fleet_.pair().host_a();
  const Host b = fleet_.pair().host_b();
  // As if the slave had been seen as the master.
  EXPECT_THAT(shardops::Promote(fleet, b, {.only_complete = true}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "is not the master by the maps"));
  EXPECT_THAT(shardops::FenceSlave(fleet, {b, a}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "the shard map has changed meanwhile"));
  EXPECT_EQ(fleet_.pair().a().Run("SELECT @@read_only"), "0\n");
  // Somebody has fenced it.
  ASSERT_OK(shardops::Fence(fleet, a));
  EXPECT_THAT(shardops::Promote(fleet, a, {.only_complete = true, .open = false}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "is read-only"));
  EXPECT_EQ(fleet_.pair().a().Run("SELECT @@read_only"), "1\n");
  EXPECT_THAT(shardops::Promote(fleet, a, {.only_complete = true}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "since it was fenced by"));
  EXPECT_EQ(fleet_.pair().a().Run("SELECT @@read_only"), "1\n");
  ASSERT_OK(shardops::Promote(fleet, a, {}));
  // A master that its slave hears lives.
  EXPECT_OK(shardops::FenceSlave(fleet, {a, b}));
}

/// A master that hung, and goes on after its slave has taken its place.
TEST_F(OperateTest, AMasterThatWakesUpAfterItWasReplacedIsFenced) {
  NoticeSilence();
  fleet_.SwitchOn();
  fleet_.StartTwo();
  EXPECT_TRUE(fleet_.Put(1));
  fleet_.pair().a().Pause();
  EXPECT_TRUE(fleet_.AwaitMaster(fleet_.pair().host_b()));
  EXPECT_TRUE(fleet_.Put(2));
  fleet_.pair().a().Resume();
  fleet_.AwaitEvent("act", "was fenced: it came back");
  EXPECT_EQ(fleet_.pair().a().Run("SELECT @@read_only"), "1\n");
  EXPECT_TRUE(fleet_.Has(1));
  EXPECT_TRUE(fleet_.Has(2));
}

/// A master that hung, and goes on when its slave was cut off from it, but could not take its place yet.
TEST_F(OperateTest, ASlaveThatWasToLeadFollowsAgainWhenItsMasterLives) {
  NoticeSilence();
  fleet_.SwitchOn();
  SetFailPointHook([](std::string_view at) {
    if (at == "promote.applied") throw std::runtime_error("the slave cannot go on");
  });
  fleet_.StartTwo();
  fleet_.pair().a().Pause();
  EXPECT_TRUE(fleet_.AwaitAlarm("the slave cannot go on"));
  // The leader that has begun it hangs.
  fleet_.StopAll();
  SetFailPointHook(nullptr);
  ASSERT_OK_AND_ASSIGN(const auto hangs, shardops::HostAdmin::OpenClaimed(fleet_.pair().host_b(),
                                                                          fleet_.pair().fleet().access));
  fleet_.pair().a().Resume();
  fleet_.Start();
  const auto is_well = [&] { return IsWell(); };
  EXPECT_TRUE(Eventually(is_well) || Eventually(is_well));
  EXPECT_FALSE(hangs->ClaimConnectionId().ok());
  EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_a());
  EXPECT_TRUE(fleet_.Put(1));
}

TEST_F(OperateTest, AHostThatCannotBeFencedIsNotReplaced) {
  fleet_.SwitchOn();
  const TempDir dir;
  const std::string program = (dir.path() / "fence").string();
  std::ofstream(program) << "#!/bin/sh\necho \"$@\" >>" << program << ".log\n[ -e " << program
                         << ".works ] || { echo no power switch >&2; exit 3; }\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  fleet_.StartTwo({.fence = {program, "off"}});
  fleet_.pair().a().Kill();
  fleet_.AwaitEvent("fail", "cannot be fenced");
  fleet_.AwaitEvent("fail", "no power switch");
  EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_a());
  std::ofstream(program + ".works") << "";
  EXPECT_TRUE(fleet_.AwaitMaster(fleet_.pair().host_b()));
  fleet_.AwaitEvent("act", "was fenced by");
  std::stringstream log;
  log << std::ifstream(program + ".log").rdbuf();
  EXPECT_THAT(log.str(), HasSubstr("off " + fleet_.pair().host_a().ToString() + "\n"));
}

TEST_F(OperateTest, ADryRunChangesNothing) {
  fleet_.SwitchOn();
  fleet_.StartTwo({}, /*dry_run=*/true);
  fleet_.pair().a().Kill();
  const Event would = fleet_.AwaitEvent("would", "in its place");
  EXPECT_EQ(would.subject, fleet_.pair().host_a().ToString());
  EXPECT_EQ(fleet_.pair().Master(), fleet_.pair().host_a());
  ASSERT_OK_AND_ASSIGN(const auto record, fleet_.records().Load(fleet_.pair().hosts()));
  EXPECT_FALSE(record.promotion);
  EXPECT_EQ(fleet_.pair().b().Run("SELECT @@read_only"), "1\n");
}

TEST_F(OperateTest, ASuccessorGoesOnWithWhatTheLeaderHasBegun) {
  fleet_.SwitchOn();
  operate::Orchestrator& leader = fleet_.Start();
  EXPECT_TRUE(Eventually([&] { return fleet_.IsInspected(); }));
  fleet_.pair().a().Kill();
  EXPECT_TRUE(fleet_.AwaitAlarm("there is no second observer"));
  // The leader would leave this if it died in a promotion: the intention, and a lock on the host, of a
  // process that hangs.
  ASSERT_OK_AND_ASSIGN(auto record, fleet_.records().Load(fleet_.pair().hosts()));
  record.promotion = {
      .from = fleet_.pair().host_a(), .to = fleet_.pair().host_b(), .begun_ms = WallClockMs()};
  ASSERT_OK(fleet_.records().Save(fleet_.pair().hosts(), record));
  ASSERT_OK_AND_ASSIGN(const auto hangs, shardops::HostAdmin::OpenClaimed(fleet_.pair().host_b(),
                                                                          fleet_.pair().fleet().access));
  fleet_.Stop(leader);
  fleet_.Start();
  fleet_.Start();
  EXPECT_TRUE(fleet_.AwaitMaster(fleet_.pair().host_b()));
  fleet_.AwaitEvent("act", "goes on to put");
  EXPECT_TRUE(fleet_.Put(1));
  // Whoever hung has lost its connection, and can change nothing.
  EXPECT_FALSE(hangs->ClaimConnectionId().ok());
}

TEST_F(OperateTest, EachEventIsSentToTheWebhookAndWrittenToTheJournal) {
  std::atomic<int> refused{0};
  HostileHttp server([&](const HostileHttp::Request&, int, HostileHttp::Answer& answer) {
    // The first is refused, and sent again.
    answer.Send(refused++ == 0 ? 503 : 204, "", "");
  });
  const TempDir dir;
  fleet_.StartTwo(
      {.webhook = fmt::format("http://127.0.0.1:{}/page", server.port()), .journal = dir.path() / "journal"});
  KillAndAwaitSilence();
  const auto sent = [&](const std::string& words) {
    for (const auto& request : server.Requests()) {
      if (request.method == "POST" && request.target == "/page" &&
          request.body.find(words) != std::string::npos) {
        const Event event = operate::EventFromJson(nlohmann::json::parse(request.body));
        return event.kind == "alarm" && event.subject == fleet_.pair().host_a().ToString() &&
               event.page == "runbook.md#a-master-does-not-answer" && event.at_ms > 0;
      }
    }
    return false;
  };
  EXPECT_TRUE(Eventually([&] { return sent("is dead"); }));
  std::stringstream journal;
  journal << std::ifstream(dir.path() / "journal").rdbuf();
  EXPECT_THAT(journal.str(), HasSubstr("is dead"));
}

TEST_F(OperateTest, APairWithProblemsIsNotSwitchedOn) {
  fleet_.pair().a().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
  EXPECT_THAT(operate::SwitchOn(fleet_.pair().fleet(), fleet_.records(), fleet_.pair().hosts()),
              FailsWith(absl::StatusCode::kFailedPrecondition, "acknowledges commits without its slave"));
  fleet_.pair().a().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON");
  EXPECT_OK(operate::SwitchOn(fleet_.pair().fleet(), fleet_.records(), fleet_.pair().hosts()));
  EXPECT_OK(operate::SwitchOff(fleet_.pair().fleet(), fleet_.records(), fleet_.pair().hosts()));
  ASSERT_OK_AND_ASSIGN(const auto record, fleet_.records().Load(fleet_.pair().hosts()));
  EXPECT_FALSE(record.on);
}

}  // namespace
}  // namespace kvstore::testing
