#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "client/caller.h"
#include "client/client.h"
#include "kvstore/v1/endpoint.grpc.pb.h"
#include "kvstore_api/connect.h"
#include "tests/migration/migrating_store.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

/// A dataset migrates while clients call the server that has the embedded store, and another one, which
/// reaches that store through the first. The servers are processes of their own, with one catalog. Either
/// does the work.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

/// Servers with one catalog; `events` is the dataset that migrates.
class SharedCatalogTest : public ::testing::Test {
 protected:
  void WriteConfig(const std::string& name, const std::string& default_backend, const Json& backends) {
    const Json config = {
        {"data", name},
        {"zookeeper",
         {{"servers", zookeeper_.address()}, {"call_timeout_ms", 1000}, {"session_timeout_ms", 4000}}},
        {"default_backend", default_backend},
        {"server", {{"limits", {{"drain_ms", 2000}}}}},
        {"backends", backends}};
    std::ofstream(dir_ / (name + ".json")) << config.dump();
  }
  std::vector<std::string> Config(const std::string& name) const {
    return {"--config", (dir_ / (name + ".json")).string()};
  }
  static Json Embedded() { return {{"type", "rocksdb"}}; }
  static Json At(const KvServer& server) { return {{"type", "remote"}, {"address", server.address()}}; }

  /// Connects clients to both, and makes the dataset; commands go to the first one.
  void Connect(const KvServer& one, const KvServer& other) {
    stores_ = {*kvstore::Connect(one.address()), *kvstore::Connect(other.address())};
    commands_.emplace(*client::Caller::Open(one.address(), {}));
    EXPECT_OK(stores_[0]->CreateDataset({.name = "events"}));
    EXPECT_TRUE(Eventually([&] { return stores_[1]->GetDataset("events").ok(); }));
  }

  absl::StatusOr<Json> Try(const std::string& command, Json options = Json::object()) {
    options["command"] = command;
    options["dataset"] = "events";
    options["who"] = "test";
    if (command == "create") options["freeze_ms"] = 10'000;  // however busy the machine is
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
  std::array<std::unique_ptr<KVStore>, 2> stores_;
  std::optional<client::Client> commands_;
};

class RemoteMigration : public SharedCatalogTest {
 protected:
  RemoteMigration() {
    SharedFleet().Clear();
    const Json mysql = {{"type", "mysql"},
                        {"user", "root"},
                        {"password", ""},
                        {"id_map", SharedFleet().Map("id.json")},
                        {"mod_map", SharedFleet().Map("mod.json")}};
    WriteConfig("owner", "rocksdb", {{"rocksdb", Embedded()}, {"mysql", mysql}});
    owner_.emplace(KV_PROGRAM, Config("owner"));
    WriteConfig("router", "rocksdb", {{"rocksdb", At(*owner_)}, {"mysql", mysql}});
    router_.emplace(KV_PROGRAM, Config("router"));
    Connect(*owner_, *router_);
  }

  std::optional<KvServer> owner_;
  std::optional<KvServer> router_;
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

TEST_F(RemoteMigration, AScanThatLosesItsServerBehindACutoverSaysSo) {
  // More rows than are in flight at a time.
  const std::string value(2'000, 'v');
  for (int i = 0; i < 3'000; ++i) {
    const CellWrite cell{"c", value, 1};
    ASSERT_OK(stores_[0]->PutRow("events", fmt::format("r{:05}", i), {&cell, 1}, {}));
  }
  Do("create", {{"target", "mysql"}, {"share", 100u}});
  Do("start");
  Await("ready");
  // Calls the server directly, and through the other one.
  std::array<std::unique_ptr<RowCursor>, 2> cursors;
  std::array<std::string, 2> markers;
  ScannedRow row;
  for (size_t side = 0; side < 2; ++side) {
    cursors[side] = *stores_[side]->ScanRows("events", {}, {});
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(*cursors[side]->Next(row));
    markers[side] = cursors[side]->marker();
    // Before the cutover the marker is valid on both servers.
    for (const auto& store : stores_) {
      ASSERT_OK_AND_ASSIGN(const auto rest, store->ScanRows("events", {}, {.marker = markers[side]}));
      ASSERT_TRUE(*rest->Next(row));
      EXPECT_EQ(row.key, "r00010");
    }
  }
  Do("cutover");
  Await("reversible");
  const auto refused = FailsWith(absl::StatusCode::kFailedPrecondition, "Begin the scan again");
  for (const auto& store : stores_) {
    for (const std::string& marker : markers) {
      EXPECT_TRUE(Eventually([&] {
        return absl::IsFailedPrecondition(store->ScanRows("events", {}, {.marker = marker}).status());
      }));
      EXPECT_THAT(store->ScanRows("events", {}, {.marker = marker}).status(), refused);
    }
  }
  owner_->Kill();
  owner_->Start();
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = cursors[0]->Next(row);
  EXPECT_THAT(more.status(), refused);
}

TEST_F(RemoteMigration, TheServerIsKilledAtAnyTimeAndItGoesOn) {
  History history(Clients::kKeys);
  const uint64_t seed = Seed("killed server");
  Random random(seed);
  const uint64_t rounds = Rounds("KV_KILL_ROUNDS", 6);
  uint64_t kills = 0;
  // Either server may be the worker by now.
  client::Client router(*client::Caller::Open(router_->address(), {}));
  const auto anywhere = [&](const std::string& command) {
    return Try(command).ok() || router.Command({{"command", command}, {"dataset", "events"}}).ok();
  };
  {
    Clients direct(*stores_[0], "events", history, 3, seed);
    Clients through(*stores_[1], "events", history, 3, seed + 100);
    direct.Work(50);
    Do("create", {{"target", "mysql"}, {"share", 100u}});
    Do("start");
    while (kills < rounds) {
      // The kill may come at any step between this one and the cutover's end.
      std::this_thread::sleep_for(std::chrono::milliseconds(random.Below(700)));
      owner_->Kill();
      ++kills;
      owner_->Start();
      // A process whose session has not ended yet holds the migration; then that process continues it, or the
      // other one.
      EXPECT_TRUE(Eventually([&] {
        const std::string phase = Phase();
        if (phase == "ready") return anywhere("cutover");
        if (phase == "reversible") return anywhere("reverse");
        return false;
      })) << Try("status").value_or(Json()).dump(1);
    }
    EXPECT_TRUE(Eventually([&] {
      const std::string phase = Phase();
      if (phase == "ready") anywhere("cutover");
      if (phase == "reversible") return anywhere("finish");
      return false;
    })) << Try("status").value_or(Json()).dump(1);
    // Only the server that has finished the migration remembers it.
    EXPECT_TRUE(Eventually([&] {
      const auto status = Try("status");
      return absl::IsNotFound(status.status()) || (status.ok() && (*status)["phase"] == "finished");
    }));
    direct.Work(50);
    through.Work(50);
  }
  EXPECT_EQ(history.Check(), std::nullopt);
  EXPECT_EQ(stores_[1]->GetDataset("events")->backend, "mysql");
}

TEST_F(RemoteMigration, TheWorkerRunsOnAnotherMachineThanTheStore) {
  commands_.emplace(*client::Caller::Open(router_->address(), {}));
  History history(Clients::kKeys);
  const uint64_t seed = Seed("remote worker");
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
    // There is one worker at a time: the other server leaves the migration to it.
    client::Client owner(*client::Caller::Open(owner_->address(), {}));
    EXPECT_THAT(owner.Command({{"command", "cutover"}, {"dataset", "events"}}),
                FailsWith(absl::StatusCode::kFailedPrecondition, "runs the migration of"));
    Do("cutover");
    Await("reversible");
    work();
    // The store's server dies, and the worker waits for it.
    owner_->Kill();
    through.Work(100);
    owner_->Start();
    Do("reverse");
    Await("ready");
    Do("cutover");
    Await("reversible");
    work();
    Do("finish");
    Await("finished");
    work();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
  EXPECT_EQ(stores_[0]->GetDataset("events")->backend, "mysql");
}

TEST_F(RemoteMigration, TheWorkersServerStopsThoughTheOtherOneHangs) {
  commands_.emplace(*client::Caller::Open(router_->address(), {}));
  const CellWrite cell{"c", "v", 1};
  ASSERT_OK(stores_[0]->PutRow("events", "r", {&cell, 1}, {}));
  Do("create", {{"target", "mysql"}, {"share", 100u}});
  Do("start");
  Await("ready");
  // The worker follows the store's log, and asks its server for that all the time: when a status, which asks
  // for the length of that log, has given up, the worker waits for an answer, too.
  ::kill(owner_->process(), SIGSTOP);
  EXPECT_TRUE(Eventually([&] { return !Try("status").value_or(Json()).contains("lag"); }));
  EXPECT_EQ(router_->Stop(), 0);
  ::kill(owner_->process(), SIGCONT);
  router_->Start();
  Await("ready");
}

TEST_F(RemoteMigration, TheWorkersServerStopsThoughTheOtherOneIsGone) {
  commands_.emplace(*client::Caller::Open(router_->address(), {}));
  Do("create", {{"target", "mysql"}, {"share", 100u}});
  Do("start");
  Await("ready");
  owner_->Kill();
  EXPECT_EQ(router_->Stop(), 0);
  owner_->Start();
  router_->Start();
  Await("ready");
}

/// Two servers with an embedded store each, of which each reaches the other's.
class BetweenStores : public SharedCatalogTest {
 protected:
  BetweenStores() {
    WriteConfig("east", "east", {{"east", Embedded()}});
    east_.emplace(KV_PROGRAM, Config("east"));
    WriteConfig("west", "west", {{"west", Embedded()}, {"east", At(*east_)}});
    west_.emplace(KV_PROGRAM, Config("west"));
    // Its address is known now, and stays.
    EXPECT_EQ(east_->Stop(), 0);
    WriteConfig("east", "east", {{"east", Embedded()}, {"west", At(*west_)}});
    east_->Start();
    Connect(*east_, *west_);
  }

  std::optional<KvServer> east_;
  std::optional<KvServer> west_;
};

TEST_F(BetweenStores, ADatasetMovesToAnotherMachineAndBackAndThereForGood) {
  History history(Clients::kKeys);
  const uint64_t seed = Seed("between stores");
  {
    Clients east(*stores_[0], "events", history, 4, seed);
    Clients west(*stores_[1], "events", history, 4, seed + 100);
    const auto work = [&] {
      east.Work(100);
      west.Work(100);
    };
    work();
    Do("create", {{"target", "west"}, {"share", 100u}});
    Do("start");
    for (int round = 0; round < 3; ++round) {
      Await("ready");
      Do("cutover");
      Await("reversible");
      work();
      Do("reverse");
      Await("ready");
      work();
    }
    Do("cutover");
    Await("reversible");
    Do("finish");
    Await("finished");
    work();
    east.Stop();
    west.Stop();
    // A call that was refused where one server knew an old catalog was repeated where the data is.
    EXPECT_EQ(east.errors(), 0u) << east.last_error();
    EXPECT_EQ(west.errors(), 0u) << west.last_error();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
  EXPECT_EQ(stores_[0]->GetDataset("events")->backend, "west");
}

TEST_F(BetweenStores, WhoHasAnotherCatalogTakesNoPart) {
  // A server alone, which the others reach under the name of one of their backends.
  KvServer alone(KV_PROGRAM, {"--data", (dir_ / "alone").string()});
  WriteConfig("west", "west", {{"west", Embedded()}, {"east", At(*east_)}, {"rocksdb", At(alone)}});
  EXPECT_EQ(west_->Stop(), 0);
  west_->Start();
  client::Client west(*client::Caller::Open(west_->address(), {}));
  EXPECT_THAT(west.Command({{"command", "create"}, {"dataset", "events"}, {"target", "rocksdb"}}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "has a catalog of its own"));
}

TEST_F(BetweenStores, AsksThatMakeNoSenseAreRefused) {
  const auto stub =
      v1::Endpoints::NewStub(grpc::CreateChannel(east_->address(), grpc::InsecureChannelCredentials()));
  const DatasetSpec spec = *stores_[0]->GetDataset("events");
  const auto ask = [&](const std::function<void(v1::EndpointRequest&)>& fill) {
    v1::EndpointRequest request;
    request.set_dataset("events");
    request.set_incarnation(spec.incarnation);
    request.set_backend("east");
    fill(request);
    grpc::ClientContext context;
    v1::EndpointResponse response;
    const grpc::Status status = stub->Ask(&context, request, &response);
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  };
  EXPECT_OK(ask([](auto& request) { request.mutable_status(); }));
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ask([](auto&) {}), FailsWith(invalid, "ask: is missing"));
  EXPECT_THAT(ask([](auto& request) { request.mutable_enter()->set_state(9); }),
              FailsWith(invalid, "state: the value 9 is not one that this program knows"));
  EXPECT_THAT(ask([](auto& request) { request.mutable_replace()->add_units()->set_key("x"); }),
              FailsWith(invalid, "key: of 1 bytes"));
  EXPECT_THAT(ask([](auto& request) { request.mutable_read()->add_keys(""); }),
              FailsWith(invalid, "key: of 0"));
  EXPECT_THAT(ask([](auto& request) {
                request.set_backend("north");
                request.mutable_status();
              }),
              FailsWith(invalid, "backend: there is none named 'north'"));
  const auto refused = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(ask([](auto& request) {
                request.set_incarnation(1);
                request.mutable_status();
              }),
              FailsWith(refused, "knows another 'events'"));
  EXPECT_THAT(ask([](auto& request) {
                request.set_epoch(1);
                request.mutable_raise_epoch();
              }),
              FailsWith(refused, "has no migration of 'events'"));
}

}  // namespace
}  // namespace kvstore::testing
