#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/server/server_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/tcp_proxy.h"

/// Calls whose server or connection is lost on the way, and that are made again.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::PutCell;
using testing::ServerTest;
using testing::Stub;
using testing::TcpProxy;

TEST_F(ServerTest, AWriteWhoseAnswerWasLostIsNotDoneTwice) {
  Serve();
  ASSERT_OK(served_->router().CreateDataset({.name = "all", .max_versions = 0}));
  TcpProxy proxy(served_->port());
  ASSERT_OK_AND_ASSIGN(const auto store, Connect(proxy.address()));
  ASSERT_OK(store->GetRow("all", "warm", {}));
  for (int i = 0; i < 5; ++i) {
    const std::string row = "row-" + std::to_string(i);
    proxy.CutAtAnswerTo(row);
    const CellWrite cell{"c", "v", std::nullopt};
    ASSERT_OK_AND_ASSIGN(const PutResult put, store->PutRow("all", row, {&cell, 1}, {}));
    EXPECT_TRUE(put.timestamp.has_value());
    ASSERT_TRUE(Eventually([&] { return proxy.HasCut(); }));
    const Row read = *served_->router().GetRow("all", row, {.versions = 10});
    ASSERT_EQ(read.items.size(), 1u);
    EXPECT_EQ(read.items[0].cells.size(), 1u) << "written once for each attempt";
    EXPECT_EQ(read.items[0].cells[0].timestamp, *put.timestamp);
  }
}

TEST_F(ServerTest, AnotherServerSaysThatItDoesNotKnowTheAttemptBefore) {
  Serve();
  const auto stub = Stub(served_->address());
  v1::PutRowRequest request;
  request.set_dataset("rows");
  request.set_row("r");
  request.add_cells()->set_value("v");
  request.mutable_attempt()->set_request_id("0123456789abcdef");
  request.mutable_attempt()->set_instance("a server before");
  v1::PutRowResponse response;
  grpc::ClientContext context;
  const grpc::Status status = stub->PutRow(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(context.GetServerTrailingMetadata().find("kvstore-outcome")->second, "in-doubt");
  EXPECT_TRUE(served_->router().GetRow("rows", "r", {})->items.empty());
  request.mutable_attempt()->set_request_id("short");
  grpc::ClientContext another;
  EXPECT_EQ(stub->PutRow(&another, request, &response).error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(ServerTest, AWriteToAServerThatWasRestartedUnnoticedIsDoneOnce) {
  Serve();
  TcpProxy proxy(served_->port());
  ASSERT_OK_AND_ASSIGN(const auto store, Connect(proxy.address()));
  // The client now knows the server of before the restart.
  ASSERT_OK(PutCell(*store, "warm", "v"));
  served_->Restart();
  // It finds its connection lost here, and not on the way to the write; a read does not tell it who is there.
  ASSERT_OK(store->GetRow("rows", "warm", {}));
  proxy.CutAtAnswerTo("lost answer");
  const absl::Status status = PutCell(*store, "lost answer", "v");
  // The server that made it remembers it, whoever the client takes it for.
  EXPECT_OK(status);
  EXPECT_EQ(served_->router().GetRow("rows", "lost answer", {})->items.size(), 1u);
}

TEST_F(ServerTest, ACreateIsRepeatedAcrossARestart) {
  Serve();
  ASSERT_OK(served_->router().CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  TcpProxy proxy(served_->port());
  ASSERT_OK_AND_ASSIGN(const auto store, Connect(proxy.address()));
  ASSERT_OK(store->CreateObject("pins", "{}", {}));
  proxy.CutAtAnswerTo("lost answer", /*for_good=*/true);
  std::thread restarts([&] {
    EXPECT_TRUE(Eventually([&] { return proxy.HasCut(); }));
    served_->Restart();
    proxy.Mend();
  });
  ASSERT_OK_AND_ASSIGN(const uint64_t id, store->CreateObject("pins", R"({"t":"lost answer"})", {}));
  restarts.join();
  EXPECT_EQ(served_->router().GetObject("pins", id, {})->data, R"({"t":"lost answer"})");
  EXPECT_EQ(served_->router().GetStats("pins")->approximate_entries, 2u);
}

TEST_F(ServerTest, AScanGoesOnWhenItsServerWasLost) {
  Serve();
  for (int i = 0; i < 3000; ++i)
    ASSERT_OK(PutCell(served_->router(), "r" + std::to_string(10'000 + i), std::string(2000, 'v')));
  TcpProxy proxy(served_->port());
  ASSERT_OK_AND_ASSIGN(const auto store, Connect(proxy.address()));
  ASSERT_OK_AND_ASSIGN(const auto cursor, store->ScanRows("rows", {}, {}));
  int count = 0;
  for (ScannedRow row; *cursor->Next(row); ++count) {
    ASSERT_EQ(row.key, "r" + std::to_string(10'000 + count));
    if (count == 500) {
      proxy.Cut();
      proxy.Mend();
    }
  }
  EXPECT_EQ(count, 3000);
}

}  // namespace
}  // namespace kvstore
