#include "catalog/shared_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "catalog/catalog_json.h"
#include "tests/support/status_matchers.h"

/// The form in which backups have what processes share in ZooKeeper.
namespace kvstore {
namespace {

using absl::StatusCode;
using testing::FailsWith;

std::string EntryOf(const std::string& name, DatasetState state) {
  return EncodeCatalogEntry({.spec = {.name = name, .backend = "mysql", .incarnation = 7}, .state = state});
}

// Backups that were made by any version must be restored by all later ones.
TEST(SharedNodes, TheirFormIsPinned) {
  const SharedNodes nodes = {
      {"datasets/events", "{}"}, {"shards/mod", "[1]"}, {"dropped/old", std::string("\xff", 1)}};
  const std::string text = R"({
 "format": 1,
 "nodes": {
  "datasets/events": "{}",
  "dropped/old": {
   "b64": "/w=="
  },
  "shards/mod": "[1]"
 }
}
)";
  EXPECT_EQ(EncodeSharedNodes(nodes), text);
  ASSERT_OK_AND_ASSIGN(const SharedNodes read, DecodeSharedNodes(text));
  EXPECT_EQ(read, nodes);
  EXPECT_TRUE(DecodeSharedNodes(EncodeSharedNodes({}))->empty());
}

TEST(SharedNodes, WhatIsNoneOfThemIsRefused) {
  for (const char* const path :
       {"operations/1", "datasets/../x", "datasets/", "datasets/a/b", "shards/other", "/datasets/a", ""}) {
    EXPECT_FALSE(IsSharedNode(path)) << path;
    EXPECT_THAT(DecodeSharedNodes(EncodeSharedNodes({{path, "x"}})),
                FailsWith(StatusCode::kDataLoss, "is not the path of a node"))
        << path;
  }
  for (const char* const text :
       {"", "[]", "{}", R"({"format":1})", R"({"format":1,"nodes":[]})",
        R"({"format":1,"nodes":{"shards/id":7}})", R"({"format":1,"nodes":{},"x":1})"}) {
    EXPECT_THAT(DecodeSharedNodes(text), FailsWith(StatusCode::kDataLoss, "zookeeper.json")) << text;
  }
  EXPECT_THAT(DecodeSharedNodes(R"({"format":2,"nodes":{}})"),
              FailsWith(StatusCode::kFailedPrecondition, "a newer version"));
}

TEST(SharedNodes, DatasetsThatExistAreFound) {
  const SharedNodes nodes = {{"datasets/a", EntryOf("a", DatasetState::kActive)},
                             {"datasets/b", EntryOf("b", DatasetState::kCreating)},
                             {"datasets/c", EntryOf("c", DatasetState::kDropping)},
                             {"datasets/d", "damaged"},
                             {"datasets/e", EntryOf("e", DatasetState::kActive)},
                             {"dropped/x", "1"}};
  std::vector<std::string> names;
  std::vector<std::string> unreadable;
  for (const CatalogEntry& entry : ActiveEntries(nodes, &unreadable)) names.push_back(entry.spec.name);
  EXPECT_THAT(names, ::testing::ElementsAre("a", "e"));
  EXPECT_THAT(unreadable, ::testing::ElementsAre(::testing::StartsWith("datasets/d: ")));
}

}  // namespace
}  // namespace kvstore
