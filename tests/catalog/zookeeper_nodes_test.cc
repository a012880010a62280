#include "catalog/zookeeper_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/fail_point.h"
#include "catalog/zookeeper_catalog.h"
#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

/// Tests of the state that processes share, which is read out of a real ZooKeeper and put back.
namespace kvstore {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ZooKeeperNodes : public ::testing::Test {
 protected:
  static testing::ZooKeeperServer& Server() {
    static testing::ZooKeeperServer server;
    return server;
  }
  static ZooKeeperOptions Options() { return {.servers = Server().address()}; }
  /// Each test has nodes of its own.
  static std::string Root(const std::string& name) {
    return "/" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + "/" + name;
  }
  void TearDown() override { SetFailPointHook(nullptr); }

  /// A catalog with two datasets, one that was dropped, and a shard map.
  void Fill(const std::string& root) {
    ZooKeeperCatalog catalog(Options(), root, "", "0.1.0");
    int64_t version = catalog.Load()->version;
    for (const char* const name : {"events", "gone", "pins"}) {
      version = *catalog.Put({.spec = {.name = name, .backend = "mysql", .incarnation = 7}}, version);
    }
    CatalogEntry gone{.spec = {.name = "gone", .backend = "mysql", .incarnation = 7},
                      .state = DatasetState::kDropping};
    version = *catalog.Put(gone, version);
    version = *catalog.Remove("gone", version);
    ASSERT_OK(catalog.PutRecord("events", "a record", -1));
    ASSERT_OK(zookeeper_.Create(root + "/shards/id", "[7]"));
    ASSERT_OK(zookeeper_.Create(root + "/operations/o1", "under way"));
  }

  ZooKeeper zookeeper_{Options(), nullptr};
};

TEST_F(ZooKeeperNodes, AreReadWithoutWhatIsUnderWay) {
  Fill(Root("a"));
  ASSERT_OK_AND_ASSIGN(const SharedNodes nodes, ReadSharedNodes(zookeeper_, Root("a")));
  std::vector<std::string> paths;
  for (const auto& [path, data] : nodes) paths.push_back(path);
  EXPECT_THAT(paths, ElementsAre("datasets/events", "datasets/pins", "dropped/gone", "migrations/events",
                                 "shards/id"));
  EXPECT_EQ(nodes.at("shards/id"), "[7]");
  EXPECT_THAT(*ReadSharedNodes(zookeeper_, Root("none")), IsEmpty());
}

TEST_F(ZooKeeperNodes, AReaderReadsWhatHasChanged) {
  Fill(Root("a"));
  SharedNodesReader reader(Options(), Root("a"));
  ASSERT_OK_AND_ASSIGN(const std::string first, reader.Text());
  EXPECT_EQ(*reader.Text(), first);
  ASSERT_OK(zookeeper_.Set(Root("a") + "/shards/id", "[8]", -1));
  EXPECT_EQ(DecodeSharedNodes(*reader.Text())->at("shards/id"), "[8]");
  ASSERT_OK(zookeeper_.Create(Root("a") + "/shards/weights", "[]"));
  EXPECT_EQ(DecodeSharedNodes(*reader.Text())->at("shards/weights"), "[]");
  ZooKeeperCatalog catalog(Options(), Root("a"), "", "0.1.0");
  ASSERT_OK(catalog.Put({.spec = {.name = "new", .backend = "mysql"}}, catalog.Load()->version));
  EXPECT_TRUE(DecodeSharedNodes(*reader.Text())->contains("datasets/new"));
}

TEST_F(ZooKeeperNodes, ArePutIntoAZooKeeperThatHasLostThem) {
  Fill(Root("a"));
  ASSERT_OK_AND_ASSIGN(const SharedNodes nodes, ReadSharedNodes(zookeeper_, Root("a")));
  ASSERT_OK_AND_ASSIGN(const RestoredNodes restored, RestoreSharedNodes(zookeeper_, Root("b"), nodes));
  EXPECT_THAT(restored.made, SizeIs(5));
  EXPECT_THAT(restored.left_out, IsEmpty());
  EXPECT_EQ(*ReadSharedNodes(zookeeper_, Root("b")), nodes);
  ZooKeeperCatalog catalog(Options(), Root("b"), "", "0.1.0");
  ASSERT_OK_AND_ASSIGN(const CatalogContents contents, catalog.Load());
  EXPECT_THAT(contents.entries, SizeIs(2));
  EXPECT_EQ(catalog.GetRecord("events")->text, "a record");
  // Once more changes nothing.
  EXPECT_THAT(RestoreSharedNodes(zookeeper_, Root("b"), nodes)->made, IsEmpty());
}

TEST_F(ZooKeeperNodes, ARestoreThatIsCutShortGoesOn) {
  Fill(Root("a"));
  ASSERT_OK_AND_ASSIGN(const SharedNodes nodes, ReadSharedNodes(zookeeper_, Root("a")));
  for (int stop = 1; stop <= 5; ++stop) {
    const std::string root = Root("b" + std::to_string(stop));
    int reached = 0;
    struct Stopped {};
    SetFailPointHook([&](std::string_view point) {
      if (point == "restore-node" && ++reached == stop) throw Stopped();
    });
    EXPECT_THROW(RestoreSharedNodes(zookeeper_, root, nodes).IgnoreError(), Stopped);
    SetFailPointHook(nullptr);
    EXPECT_EQ(RestoreSharedNodes(zookeeper_, root, nodes)->made.size(), static_cast<size_t>(6 - stop));
    EXPECT_EQ(*ReadSharedNodes(zookeeper_, root), nodes);
  }
}

TEST_F(ZooKeeperNodes, WhatIsThereIsNotChanged) {
  Fill(Root("a"));
  ASSERT_OK_AND_ASSIGN(const SharedNodes nodes, ReadSharedNodes(zookeeper_, Root("a")));
  ASSERT_OK(zookeeper_.Create(Root("b") + "/shards/id", "[8]"));
  EXPECT_THAT(
      RestoreSharedNodes(zookeeper_, Root("b"), nodes),
      FailsWith(StatusCode::kFailedPrecondition, "/shards/id: is there, and is not what the backup has"));
  ASSERT_OK(zookeeper_.Create(Root("c") + "/datasets/other", "x"));
  EXPECT_THAT(RestoreSharedNodes(zookeeper_, Root("c"), nodes),
              FailsWith(StatusCode::kFailedPrecondition, "/datasets/other: there is this dataset"));
  EXPECT_THAT(*ReadSharedNodes(zookeeper_, Root("b")), SizeIs(1));
  EXPECT_THAT(*ReadSharedNodes(zookeeper_, Root("c")), SizeIs(1));
}

TEST_F(ZooKeeperNodes, ADatasetThatWasBeingCreatedIsNotRestored) {
  Fill(Root("a"));
  SharedNodes nodes = *ReadSharedNodes(zookeeper_, Root("a"));
  nodes["datasets/half"] = R"({"dataset": "half", "state": "creating", "owner": "dead"})";
  ASSERT_OK_AND_ASSIGN(const RestoredNodes restored, RestoreSharedNodes(zookeeper_, Root("b"), nodes));
  EXPECT_THAT(restored.left_out, ElementsAre("datasets/half"));
  EXPECT_FALSE(ReadSharedNodes(zookeeper_, Root("b"))->contains("datasets/half"));
}

}  // namespace
}  // namespace kvstore
