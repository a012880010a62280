#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "coordination/zookeeper.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/connect.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper_server.h"

/// A server with an embedded store and two routers that reach it, each a process of its own, and one catalog.
namespace kvstore::testing {
namespace {

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

class RoutersTest : public ::testing::Test {
 protected:
  RoutersTest() {
    WriteConfig("server", R"("backends": {"east": {"type": "rocksdb"}})");
    server_.emplace(KV_PROGRAM, Config("server"));
    for (const char* name : {"one", "two"}) {
      WriteConfig(name, fmt::format(R"("backends": {{"east": {{"type": "remote", "address": "{}"}}}})",
                                    server_->address()));
    }
    one_.emplace(KV_PROGRAM, Config("one"));
    two_.emplace(KV_PROGRAM, Config("two"));
    store_one_ = *Connect(one_->address());
    store_two_ = *Connect(two_->address());
  }

  void WriteConfig(const std::string& name, const std::string& backends) {
    std::ofstream(dir_ / (name + ".json")) << fmt::format(
        R"({{"data": "{}", "zookeeper": {{"servers": "{}", "call_timeout_ms": 2000, "session_timeout_ms": 4000}}, {}}})",
        name, zookeeper_.address(), backends);
  }
  std::vector<std::string> Config(const std::string& name) const {
    return {"--config", (dir_ / (name + ".json")).string()};
  }

  static absl::Status Put(KVStore& store, const std::string& dataset, const std::string& row,
                          const std::string& value) {
    const CellWrite cell{"c", value, std::nullopt};
    return store.PutRow(dataset, row, {&cell, 1}, {}).status();
  }
  static std::string Get(KVStore& store, const std::string& dataset, const std::string& row) {
    const auto read = store.GetRow(dataset, row, {});
    if (!read.ok()) return read.status().ToString();
    return read->items.empty() ? "(none)" : read->items[0].cells[0].value;
  }

  const TempDir dir_;
  ZooKeeperServer zookeeper_;
  std::optional<KvServer> server_;
  std::optional<KvServer> one_;
  std::optional<KvServer> two_;
  std::unique_ptr<KVStore> store_one_;
  std::unique_ptr<KVStore> store_two_;
};

TEST_F(RoutersTest, ADatasetCreatedThroughOneIsServedByTheOther) {
  for (int i = 0; i < 5; ++i) {
    const std::string name = "events" + std::to_string(i);
    ASSERT_OK(store_one_->CreateDataset({.name = name, .max_versions = 3}));
    // The router that created it serves it at once.
    ASSERT_OK(Put(*store_one_, name, "r", "v"));
    ASSERT_TRUE(Eventually([&] { return store_two_->GetDataset(name).ok(); }));
    EXPECT_EQ(Get(*store_two_, name, "r"), "v");
    EXPECT_EQ(store_two_->GetDataset(name)->max_versions, 3u);
  }
  // The other router also learns of new settings, and of the drop.
  ASSERT_OK(store_two_->AlterDataset("events0", {.max_versions = 1}));
  EXPECT_TRUE(Eventually([&] { return store_one_->GetDataset("events0")->max_versions == 1; }));
  ASSERT_OK(store_two_->DropDataset("events0", {}));
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(store_one_->GetDataset("events0").status()); }));
  EXPECT_THAT((*Connect(server_->address()))->GetDataset("events0"),
              FailsWith(absl::StatusCode::kNotFound, ""));
  // The name is free again, and the old data is gone.
  ASSERT_OK(store_one_->CreateDataset({.name = "events0"}));
  EXPECT_EQ(Get(*store_one_, "events0", "r"), "(none)");
}

TEST_F(RoutersTest, TwoCreatorsOfOneNameMakeOneDataset) {
  for (int round = 0; round < 5; ++round) {
    const std::string name = "both" + std::to_string(round);
    absl::Status first;
    absl::Status second;
    std::thread other([&] { second = store_two_->CreateDataset({.name = name, .shape = Shape::kObjects}); });
    first = store_one_->CreateDataset({.name = name, .shape = Shape::kObjects});
    other.join();
    EXPECT_NE(first.ok(), second.ok()) << first << " " << second;
    const absl::Status lost = first.ok() ? second : first;
    EXPECT_EQ(lost.code(), absl::StatusCode::kAlreadyExists) << lost;
  }
  // Each has a type number of its own.
  EXPECT_TRUE(Eventually([&] {
    const auto specs = store_one_->ListDatasets();
    std::set<uint32_t> types;
    for (const DatasetSpec& spec : *specs) types.insert(spec.type);
    return types.size() == 5;
  }));
}

TEST_F(RoutersTest, WithoutZooKeeperKnownDatasetsGoOn) {
  ASSERT_OK(store_one_->CreateDataset({.name = "events"}));
  ASSERT_TRUE(Eventually([&] { return store_two_->GetDataset("events").ok(); }));
  zookeeper_.Stop();
  EXPECT_OK(Put(*store_one_, "events", "r", "v"));
  EXPECT_EQ(Get(*store_two_, "events", "r"), "v");
  EXPECT_THAT(store_one_->CreateDataset({.name = "new"}), FailsWith(kUnavailable, "ZooKeeper"));
  // A caller with less time than a look at ZooKeeper takes learns the reason, too. On a busy machine it may
  // now and then give up before the answer arrives.
  EXPECT_TRUE(Eventually([&] {
    const CallScope scope(std::chrono::milliseconds(300));
    const absl::Status status = store_one_->CreateDataset({.name = "new"});
    return status.message().find("ZooKeeper") != std::string_view::npos;
  }));
  // The same holds after a restart of all processes.
  server_->Kill();
  two_->Kill();
  server_->Start();
  two_->Start();
  EXPECT_EQ(Get(*store_two_, "events", "r"), "v");
  EXPECT_OK(Put(*store_two_, "events", "r", "w"));
  EXPECT_EQ(Get(*store_one_, "events", "r"), "w");
  zookeeper_.Start();
  EXPECT_TRUE(Eventually([&] { return store_one_->CreateDataset({.name = "later"}).ok(); }));
  EXPECT_TRUE(Eventually([&] { return store_two_->GetDataset("later").ok(); }));
}

TEST_F(RoutersTest, WhatADeadRouterLeftHalfDoneIsUndone) {
  ASSERT_OK(store_one_->CreateDataset({.name = "events"}));
  // The state that a router leaves behind which is killed during a create.
  {
    ZooKeeper zookeeper({.servers = zookeeper_.address()}, nullptr);
    ASSERT_OK(zookeeper.Create("/kvstore/datasets/half",
                               R"({"dataset": "half", "shape": "rows", "backend": "east", "incarnation": "5",
                                   "state": "creating", "owner": "nobody"})"));
  }
  // The next change makes the others read the catalog.
  ASSERT_OK(store_one_->AlterDataset("events", {.ttl_ms = 1000}));
  EXPECT_TRUE(Eventually([&] { return store_two_->CreateDataset({.name = "half"}).ok(); }));
  EXPECT_OK(Put(*store_two_, "half", "r", "v"));
}

}  // namespace
}  // namespace kvstore::testing
