#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "backend_api/outcome.h"
#include "catalog/file_catalog.h"
#include "router/router.h"
#include "server/server.h"
#include "tests/server/gated_backend.h"
#include "tests/server/resp/resp_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_dir.h"

/// Commands on a dataset that migrates wait without a thread, and are carried out once, in their order; so
/// are commands on a backend that waits for other machines.
namespace kvstore::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

/// A server on a backend that fails as a test wants; the parameter is whether it waits for other machines.
class RespMigrationTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    Router::Backends backends;
    backends.emplace("gated", MakeGatedBackend(gate_, GetParam()));
    router_ =
        *Router::Open(std::make_unique<FileCatalog>(dir_ / "catalog.json"), std::move(backends), "gated");
    for (const char* name : {"migrating", "other"}) ASSERT_OK(router_->CreateDataset({.name = name}));
    ServerOptions options = RespOptions();
    options.limits.drain_ms = 3'000;
    server_ = *Server::Start(*router_, options);
  }
  std::string address() const { return server_->resp_address(); }

  const TempDir dir_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::unique_ptr<Router> router_;
  std::unique_ptr<Server> server_;
};

INSTANTIATE_TEST_SUITE_P(Backends, RespMigrationTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Waits" : "DoesNotWait"; });

TEST_P(RespMigrationTest, PutsWaitAndAreMadeOnceAndInOrder) {
  gate_->Set(Migrates("migrating"));
  RespClient client(address());
  std::string pipeline;
  for (int i = 0; i < 20; ++i) pipeline += RespClient::Encode("HMSET migrating:r c " + std::to_string(i));
  client.Send(pipeline);
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() >= 3; }));
  RespClient other(address());
  for (int i = 0; i < 50; ++i) ASSERT_EQ(other.Do("HMSET other:r c v"), "OK") << "others do not wait for it";
  EXPECT_TRUE(gate_->Done("migrating", "r").empty());
  gate_->Set(nullptr);
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.Receive(), "OK");
    expected.push_back(std::to_string(i));
  }
  EXPECT_EQ(gate_->Done("migrating", "r"), expected);
}

TEST_P(RespMigrationTest, ReadsWaitAndAreAnsweredInOrder) {
  RespClient client(address());
  ASSERT_EQ(client.Do("HMSET migrating:r c v"), "OK");
  gate_->Set(Migrates("migrating"));
  std::string pipeline;
  for (int i = 0; i < 100; ++i) {
    pipeline +=
        RespClient::Encode("HGET migrating:r c") + RespClient::Encode("HGET migrating:none c") + "PING\r\n";
  }
  client.Send(pipeline);
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() >= 2; }));
  EXPECT_EQ(RespClient(address()).Do("HGET other:r c"), "nil");
  gate_->Set(nullptr);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(client.Receive(), "\"v\"");
    ASSERT_EQ(client.Receive(), "nil");
    ASSERT_EQ(client.Receive(), "PONG");
  }
}

TEST_P(RespMigrationTest, CommandsOfSeveralStepsGoOnWhereTheyWere) {
  RespClient client(address());
  for (const char* row : {"a", "b", "c"}) client.Do("HMSET migrating:" + std::string(row) + " c v");
  // The deletes of "b" are refused for a while; the one of "a" is made before.
  gate_->Set([reads = std::make_shared<int>(0)](std::string_view, std::string_view key) -> absl::Status {
    // The first question about "b" is whether it is there.
    return key == "b" && ++*reads > 1 ? WritesHeldError("held") : absl::OkStatus();
  });
  client.Send(RespClient::Encode("DEL migrating:a migrating:b migrating:c"));
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() >= 2; }));
  EXPECT_THAT(gate_->Done("migrating", "a"), ElementsAre("v", "(deleted)"));
  gate_->Set(nullptr);
  EXPECT_EQ(client.Receive(), "(3)");
  for (const char* row : {"a", "b", "c"})
    EXPECT_THAT(gate_->Done("migrating", row), ElementsAre("v", "(deleted)")) << row;
}

TEST_P(RespMigrationTest, OfAMultiSetWhatWasMadeIsNotMadeAgain) {
  gate_->Set([](std::string_view, std::string_view key) -> absl::Status {
    return key == "b" ? WritesHeldError("held") : absl::OkStatus();
  });
  RespClient client(address());
  client.Send(RespClient::Encode("MSET migrating:a 1 migrating:b 2 migrating:c 3 other:d 4"));
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() >= 3; }));
  gate_->Set(nullptr);
  EXPECT_EQ(client.Receive(), "OK");
  for (const char* row : {"a", "b", "c"}) EXPECT_EQ(gate_->Done("migrating", row).size(), 1u) << row;
  EXPECT_EQ(gate_->Done("other", "d").size(), 1u);
}

TEST_P(RespMigrationTest, AWriteInDoubtIsNotRepeated) {
  gate_->Set([](std::string_view, std::string_view) {
    return MarkInDoubt(absl::UnavailableError("the connection was lost"));
  });
  RespClient client(address());
  EXPECT_EQ(client.Do("HMSET migrating:r c v"), "-INDOUBT the connection was lost");
  EXPECT_EQ(gate_->refusals(), 1);
  gate_->Set([](std::string_view, std::string_view) { return absl::UnavailableError("the host is down"); });
  EXPECT_EQ(client.Do("HGET migrating:r c"), "-TRYAGAIN the host is down");
  EXPECT_EQ(client.Do("HMSET migrating:r c v"), "-TRYAGAIN the host is down");
}

TEST_P(RespMigrationTest, AClientThatLeavesWhileItsCommandsWaitLeavesNothingBehind) {
  gate_->Set(Migrates("migrating"));
  std::vector<std::unique_ptr<RespClient>> ended;
  for (int i = 0; i < 20; ++i) {
    const bool resets = i % 2 == 0;
    auto client = std::make_unique<RespClient>(address());
    client->Send(RespClient::Encode(resets ? "HMSET migrating:reset c v" : "HMSET migrating:r c v") +
                 RespClient::Encode("HGET migrating:r c"));
    ASSERT_TRUE(Eventually([&, i] { return gate_->refusals() > i; }));
    if (resets) {
      client->Reset();
    } else {
      client->EndSending();
      ended.push_back(std::move(client));
    }
  }
  gate_->Set(nullptr);
  // Clients that have ended no more than their sending get their answers, and each of their puts is made
  // once.
  for (const auto& client : ended) {
    EXPECT_EQ(client->Receive(), "OK");
    EXPECT_EQ(client->Receive(), "\"v\"");
    EXPECT_TRUE(client->IsClosed());
  }
  EXPECT_EQ(RespClient(address()).Do("HGET other:r c"), "nil");
  server_.reset();
  EXPECT_EQ(gate_->Done("migrating", "r").size(), 10u);
  EXPECT_LE(gate_->Done("migrating", "reset").size(), 10u);
}

TEST_P(RespMigrationTest, WhatAClientThatHasResetItsConnectionWaitedForEnds) {
  gate_->Set(Migrates("migrating"));
  // This one waits since before the other one, and would be told first that it has waited for too long.
  RespClient stays(address());
  stays.Send(RespClient::Encode("HMSET migrating:r c stays"));
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() >= 1; }));
  RespClient leaves(address());
  leaves.Send(RespClient::Encode("HMSET migrating:other c leaves"));
  ASSERT_TRUE(Eventually([&] { return server_->OpenCalls().starts_with("2 calls"); }));
  leaves.Reset();
  ASSERT_TRUE(Eventually([&] { return server_->OpenCalls().starts_with("1 calls"); }));
  gate_->Set(nullptr);
  EXPECT_EQ(stays.Receive(), "OK");
  EXPECT_TRUE(gate_->Done("migrating", "other").empty());
}

TEST_P(RespMigrationTest, AServerThatStopsTellsCommandsThatWait) {
  gate_->Set(Migrates("migrating"));
  RespClient client(address());
  client.Send(RespClient::Encode("HMSET migrating:r c v"));
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() >= 1; }));
  server_->Drain();
  EXPECT_THAT(client.Receive(), StartsWith("-TRYAGAIN the server stops"));
  EXPECT_TRUE(client.IsClosed());
  EXPECT_TRUE(gate_->Done("migrating", "r").empty());
}

}  // namespace
}  // namespace kvstore::testing
