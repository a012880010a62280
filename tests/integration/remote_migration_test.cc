#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "client/client.h"
#include "client/connect.h"
#include "tests/migration/world.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

/// A dataset moves on a server that has both backends, while clients call that server and another one, which
/// reaches the embedded store through it: processes of their own, with one catalog.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

class RemoteMigration : public ::testing::Test {
 protected:
  RemoteMigration() {
    SharedFleet().Clear();
    WriteConfig("owner", R"({"type": "rocksdb"})");
    owner_.emplace(KV_PROGRAM, Config("owner"));
    WriteConfig("router", fmt::format(R"({{"type": "remote", "address": "{}"}})", owner_->address()));
    router_.emplace(KV_PROGRAM, Config("router"));
    stores_ = {*Connect(owner_->address()), *Connect(router_->address())};
    commands_.emplace(*client::Caller::Open(owner_->address(), {}));
    EXPECT_OK(stores_[0]->CreateDataset({.name = "events"}));
    EXPECT_TRUE(Eventually([&] { return stores_[1]->GetDataset("events").ok(); }));
  }

  void WriteConfig(const std::string& name, const std::string& embedded) {
    const Json config = {
        {"data", name},
        {"zookeeper",
         {{"servers", zookeeper_.address()}, {"call_timeout_ms", 1000}, {"session_timeout_ms", 4000}}},
        {"default_backend", "rocksdb"},
        {"backends",
         {{"rocksdb", Json::parse(embedded)},
          {"mysql",
           {{"type", "mysql"},
            {"user", "root"},
            {"password", ""},
            {"id_map", SharedFleet().Map("id.json")},
            {"mod_map", SharedFleet().Map("mod.json")}}}}}};
    std::ofstream(dir_ / (name + ".json")) << config.dump();
  }
  std::vector<std::string> Config(const std::string& name) const {
    return {"--config", (dir_ / (name + ".json")).string()};
  }

  absl::StatusOr<Json> Try(const std::string& command, Json options = Json::object()) {
    options["command"] = command;
    options["dataset"] = "events";
    options["who"] = "test";
    return commands_->Command(options);
  }
  void Do(const std::string& command, const Json& options = Json::object()) {
    EXPECT_OK(Try(command, options)) << command;
  }
  std::string Phase() { return Try("status").value_or(Json::object()).value("phase", ""); }
  void Await(const std::string& phase) {
    EXPECT_TRUE(Eventually([&] { return Phase() == phase; })) << Try("status").value_or(Json()).dump(1);
  }

  const TempDir dir_;
  ZooKeeperServer zookeeper_;
  std::optional<KvServer> owner_;
  std::optional<KvServer> router_;
  std::array<std::unique_ptr<KVStore>, 2> stores_;
  std::optional<client::Client> commands_;
};

TEST_F(RemoteMigration, ClientsOfBothServersDoNotNotice) {
  History history(Clients::kKeys);
  const uint64_t seed = Seed("remote migration");
  {
    Clients direct(*stores_[0], "events", history, 3, seed);
    Clients through(*stores_[1], "events", history, 3, seed + 100);
    const auto work = [&] {
      direct.Work(100);
      through.Work(100);
    };
    work();
    Do("create", {{"target", "mysql"}, {"share", 100u}});
    Do("start");
    Await("ready");
    Do("cutover");
    Await("reversible");
    work();
    Do("reverse");
    Await("ready");
    work();
    Do("cutover");
    Await("reversible");
    work();
    Do("finish");
    Await("finished");
    work();
    direct.Stop();
    through.Stop();
    EXPECT_EQ(direct.errors(), 0u) << direct.last_error();
    EXPECT_EQ(through.errors(), 0u) << through.last_error();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(RemoteMigration, TheServerIsKilledAtAnyTimeAndGoesOn) {
  History history(Clients::kKeys);
  const uint64_t seed = Seed("killed server");
  Random random(seed);
  const uint64_t rounds = Rounds("KV_KILL_ROUNDS", 6);
  uint64_t kills = 0;
  {
    Clients direct(*stores_[0], "events", history, 3, seed);
    Clients through(*stores_[1], "events", history, 3, seed + 100);
    direct.Work(50);
    Do("create", {{"target", "mysql"}, {"share", 100u}});
    Do("start");
    while (kills < rounds) {
      // Somewhere between here and the other side.
      std::this_thread::sleep_for(std::chrono::milliseconds(random.Below(700)));
      owner_->Kill();
      ++kills;
      owner_->Start();
      // A process whose session has not ended yet holds it; the same process resumes its own.
      EXPECT_TRUE(Eventually([&] {
        const std::string phase = Phase();
        if (phase == "ready") return Try("cutover").ok();
        if (phase == "reversible") return Try("reverse").ok();
        return false;
      })) << Try("status").value_or(Json()).dump(1);
    }
    EXPECT_TRUE(Eventually([&] {
      const std::string phase = Phase();
      if (phase == "ready") Try("cutover").IgnoreError();
      if (phase == "reversible") return Try("finish").ok();
      return false;
    })) << Try("status").value_or(Json()).dump(1);
    Await("finished");
    direct.Work(50);
    through.Work(50);
  }
  EXPECT_EQ(history.Check(), std::nullopt);
  EXPECT_EQ(stores_[1]->GetDataset("events")->backend, "mysql");
}

TEST_F(RemoteMigration, AServerThatLacksABackendLeavesItToOthers) {
  client::Client elsewhere(*client::Caller::Open(router_->address(), {}));
  EXPECT_THAT(elsewhere.Command({{"command", "create"}, {"dataset", "events"}, {"target", "mysql"}}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "takes no part"));
  Do("create", {{"target", "mysql"}});
  EXPECT_THAT(elsewhere.Command({{"command", "start"}, {"dataset", "events"}}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "another server's"));
  Do("start");
  Await("ready");
  EXPECT_EQ((*elsewhere.Command({{"command", "status"}, {"dataset", "events"}}))["phase"], "ready");
}

}  // namespace
}  // namespace kvstore::testing
