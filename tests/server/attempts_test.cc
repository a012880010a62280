#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend_api/outcome.h"
#include "tests/server/server_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/tcp_proxy.h"

/// Calls whose server or connection is lost on the way, and that are retried.
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

/// Calls of a server that stops answering while they are in flight. Their deadline is an hour away, so that a
/// call which does not notice that its caller has cancelled does not end.
class SilentServerTest : public ServerTest {
 protected:
  void SetUp() override {
    Serve();
    proxy_.emplace(served_->port());
    store_ = *Connect(proxy_->address(), {.deadline_ms = 3'600'000});
    ASSERT_OK(store_->GetRow("rows", "warm", {}));
  }

  /// Makes the call in a thread of its own, cancels it when the server cannot answer any more, and returns
  /// what it ended with.
  absl::Status Cancel(const std::function<absl::Status()>& call) {
    std::atomic<bool> cancelled{false};
    std::atomic<bool> begun{false};
    absl::Status status;
    proxy_->Stall();
    std::thread caller([&] {
      const CallScope scope(CallLimits{.cancelled = &cancelled});
      begun = true;
      status = call();
    });
    EXPECT_TRUE(Eventually([&] { return begun.load(); }));
    cancelled = true;
    caller.join();
    return status;
  }

  std::optional<TcpProxy> proxy_;
};

TEST_F(SilentServerTest, AReadEndsWhenItsCallerCancels) {
  EXPECT_TRUE(absl::IsCancelled(Cancel([&] { return store_->GetRow("rows", "r", {}).status(); })));
}

TEST_F(SilentServerTest, AWriteEndsWhenItsCallerCancelsAndIsInDoubt) {
  // Before it is sent, or while its answer is waited for.
  const absl::Status status = Cancel([&] { return PutCell(*store_, "r", "v"); });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(SilentServerTest, AScanEndsWhenItsCallerCancels) {
  const absl::Status status = Cancel([&] { return store_->ScanRows("rows", {}, {}).status(); });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(SilentServerTest, ACompactionEndsWhenItsCallerCancels) {
  EXPECT_TRUE(absl::IsCancelled(Cancel([&] { return store_->Compact("rows", {}).status(); })));
}

TEST_F(SilentServerTest, ABatchOfManyMessagesEndsWhenItsCallerCancels) {
  const std::string value(100'000, 'v');
  const CellWrite cell{"c", value, 1};
  std::vector<std::string> rows;
  for (int i = 0; i < 200; ++i) rows.push_back("row-" + std::to_string(i));
  std::vector<RowWrite> writes;
  for (const std::string& row : rows) writes.push_back({.row = row, .cells = {&cell, 1}, .options = {}});
  // The first ones were sent; the last ones, which were not, say so.
  EXPECT_TRUE(absl::IsCancelled(Cancel([&] {
    const auto results = store_->PutRows("rows", writes);
    return results.ok() ? results->front().status() : results.status();
  })));
}

TEST_F(SilentServerTest, CallsOfManyThreadsOverOneStreamEndWhenTheirCallersCancel) {
  // From a certain number of threads on their calls go over streams.
  std::atomic<bool> cancelled{false};
  std::atomic<int> begun{0};
  constexpr int kThreads = 16;
  std::vector<std::thread> callers;
  std::vector<absl::Status> ended(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    callers.emplace_back([&, i] {
      const CallScope scope(CallLimits{.cancelled = &cancelled});
      ++begun;
      do {
        ended[i] = store_->GetRow("rows", "r", {}).status();
      } while (ended[i].ok());
    });
  }
  EXPECT_TRUE(Eventually([&] { return begun == kThreads; }));
  proxy_->Stall();
  cancelled = true;
  for (std::thread& caller : callers) caller.join();
  for (const absl::Status& status : ended) EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(ServerTest, AWriteToAServerThatWasRestartedUnnoticedIsDoneOnce) {
  Serve();
  TcpProxy proxy(served_->port());
  ASSERT_OK_AND_ASSIGN(const auto store, Connect(proxy.address()));
  // From here on the client knows the instance of the server before the restart.
  ASSERT_OK(PutCell(*store, "warm", "v"));
  served_->Restart();
  // The client notices here that its connection is lost, and not on the way to the write. A read does not
  // tell it which instance answers.
  ASSERT_OK(store->GetRow("rows", "warm", {}));
  proxy.CutAtAnswerTo("lost answer");
  const absl::Status status = PutCell(*store, "lost answer", "v");
  // The server that carried the write out remembers it, whichever instance the client takes it for.
  EXPECT_OK(status);
  EXPECT_EQ(served_->router().GetRow("rows", "lost answer", {})->items.size(), 1u);
}

/// A server that keeps few answers, and a put through a connection that is lost for good when the server
/// answers. `meanwhile` runs then, before the put is retried.
class ForgettingTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerOptions options = testing::TestServerOptions();
    options.limits.remembered = 10;
    Serve(options);
    ASSERT_OK(served_->router().CreateDataset({.name = "all", .max_versions = 0}));
    proxy_.emplace(served_->port());
    lost_ = *Connect(proxy_->address());
    ASSERT_OK(lost_->GetRow("all", "warm", {}));
  }
  void PutOthers(int count) {
    for (int i = 0; i < count; ++i) ASSERT_OK(PutCell(*store_, "another", "v"));
  }
  absl::Status PutLosingItsAnswer(const WriteOptions& options, int meanwhile) {
    proxy_->CutAtAnswerTo("lost answer", /*for_good=*/true);
    std::thread others([&] {
      EXPECT_TRUE(Eventually([&] { return proxy_->HasCut(); }));
      PutOthers(meanwhile);
      proxy_->Mend();
    });
    const CellWrite cell{"c", "v", std::nullopt};
    const auto put = lost_->PutRow("all", "lost answer", {&cell, 1}, options);
    others.join();
    return put.status();
  }
  size_t Versions() {
    const Row row = *served_->router().GetRow("all", "lost answer", {.versions = 10});
    return row.items.empty() ? 0 : row.items[0].cells.size();
  }

  std::optional<TcpProxy> proxy_;
  std::unique_ptr<KVStore> lost_;
};

TEST_F(ForgettingTest, AWriteWhoseAnswerMayBeForgottenIsInDoubtAndNotDoneTwice) {
  const absl::Status status = PutLosingItsAnswer({}, 30);
  EXPECT_TRUE(absl::IsUnavailable(status) && IsInDoubt(status)) << status;
  EXPECT_EQ(Versions(), 1u);
}

TEST_F(ForgettingTest, AConditionalOneIsNotToldThatItsOwnWriteIsInTheWay) {
  const absl::Status status = PutLosingItsAnswer({.condition = Condition{.column = "c"}}, 30);
  EXPECT_TRUE(absl::IsUnavailable(status) && IsInDoubt(status)) << status;
  EXPECT_EQ(Versions(), 1u);
}

TEST_F(ForgettingTest, OneThatIsNewerThanAllThatWasForgottenIsRepeated) {
  PutOthers(100);
  EXPECT_OK(PutLosingItsAnswer({}, 3));
  EXPECT_EQ(Versions(), 1u);
  // The same for a write that never arrived, because its first attempt is lost on the way there.
  proxy_->Cut();
  std::thread mends([&] { proxy_->Mend(); });
  const CellWrite cell{"c", "v", std::nullopt};
  EXPECT_OK(lost_->PutRow("all", "never came", {&cell, 1}, {}));
  mends.join();
  EXPECT_EQ(served_->router().GetRow("all", "never came", {.versions = 10})->items[0].cells.size(), 1u);
}

TEST_F(ForgettingTest, AClientThatDoesNotSayWhenItsWriteIsTakenToBeOld) {
  const auto stub = Stub(served_->address());
  v1::GetServerResponse server;
  grpc::ClientContext asks;
  ASSERT_TRUE(stub->GetServer(&asks, {}, &server).ok());
  EXPECT_GT(server.clock_us(), 0u);
  v1::PutRowRequest request;
  request.set_dataset("rows");
  request.set_row("r");
  request.add_cells()->set_value("v");
  request.mutable_attempt()->set_instance(server.instance());
  const auto put = [&](const std::string& id, std::optional<uint64_t> sent_us) {
    request.mutable_attempt()->set_request_id(id);
    request.mutable_attempt()->clear_sent_us();
    if (sent_us) request.mutable_attempt()->set_sent_us(*sent_us);
    v1::PutRowResponse response;
    grpc::ClientContext context;
    return stub->PutRow(&context, request, &response).error_code();
  };
  EXPECT_EQ(put("nothing forgotten", std::nullopt), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(put("nothing-is-gone!", std::nullopt), grpc::OK);
  EXPECT_EQ(put("nothing-is-gone2", 0), grpc::OK);
  PutOthers(30);
  EXPECT_EQ(put("something-gone!!", std::nullopt), grpc::UNAVAILABLE);
  EXPECT_EQ(put("something-gone!2", server.clock_us()), grpc::UNAVAILABLE);
  v1::GetServerResponse later;
  grpc::ClientContext again;
  ASSERT_TRUE(stub->GetServer(&again, {}, &later).ok());
  EXPECT_EQ(put("something-gone!3", later.clock_us()), grpc::OK);
  // A time in the future counts as now, however far it is.
  EXPECT_EQ(put("something-gone!4", uint64_t{1} << 62), grpc::OK);
  EXPECT_EQ(put("something-gone!5", UINT64_MAX), grpc::OK);
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
