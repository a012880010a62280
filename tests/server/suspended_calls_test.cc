#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend_api/outcome.h"
#include "idgen/object_id.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "kvstore_api/call_scope.h"
#include "tests/server/gated_stream.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Calls on a dataset that migrates wait without a thread, so that calls on other datasets go on, whichever
/// method they come by.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::FailsWith;
using testing::GatedServersTest;
using testing::GatedStreamTest;
using testing::Migrates;
using testing::TestServerOptions;

/// Calls that each run in a thread of its own.
class Background {
 public:
  ~Background() { Join(); }
  void Add(std::function<absl::Status()> call) {
    results_.push_back(std::async(std::launch::async, std::move(call)));
  }
  size_t size() const { return results_.size(); }
  /// Returns how many have ended.
  size_t ended() const {
    return static_cast<size_t>(std::count_if(results_.begin(), results_.end(), [](const auto& result) {
      return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }));
  }
  std::vector<absl::Status> Join() {
    std::vector<absl::Status> ends;
    for (auto& result : results_) ends.push_back(result.get());
    results_.clear();
    return ends;
  }

 private:
  std::vector<std::future<absl::Status>> results_;
};

/// Returns a figure of a server; -1 if there is none.
double Metric(const Server& server, const std::string& figure) {
  const auto stub =
      v1::KVStore::NewStub(grpc::CreateChannel(server.addresses()[0], grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::GetMetricsResponse metrics;
  const std::string name = "\n" + figure + " ";
  if (!stub->GetMetrics(&context, {}, &metrics).ok()) return -1;
  const size_t at = metrics.text().find(name);
  return at == std::string::npos ? -1 : std::stod(metrics.text().substr(at + name.size()));
}

double Held(const Server& server) { return Metric(server, "kvstore_calls_held"); }

TEST_F(GatedServersTest, ReadsThatWaitDoNotDelayThoseOfAnotherDataset) {
  ASSERT_OK(Put(*store_, "other", "r"));
  gate_->Set(Migrates("migrating"));
  Background waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.Add([this] { return store_->GetRow("migrating", "r", {}).status(); });
  }
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() >= 8; }));
  for (int i = 0; i < 50; ++i) ASSERT_OK(store_->GetRow("other", "r", {}));
  EXPECT_EQ(waiting.ended(), 0u);
  gate_->Set(nullptr);
  for (const absl::Status& end : waiting.Join()) EXPECT_OK(end);
}

/// More calls than there are workers.
constexpr int kMany = 100;

TEST_F(GatedServersTest, WritesThatWaitDoNotDelayThoseOfAnotherDataset) {
  for (const bool waits : {false, true}) {
    Serve(TestServerOptions(), waits);
    const int before = gate_->refusals();
    gate_->Set(Migrates("migrating"));
    Background waiting;
    for (int i = 0; i < kMany; ++i) {
      waiting.Add([this, i] { return Put(*store_, "migrating", "r" + std::to_string(i)); });
    }
    ASSERT_TRUE(Eventually([&] { return gate_->refusals() >= before + kMany; }));
    for (int i = 0; i < 50; ++i) ASSERT_OK(Put(*store_, "other", "r"));
    ASSERT_OK(store_->GetRow("other", "r", {}));
    EXPECT_EQ(waiting.ended(), 0u);
    gate_->Set(nullptr);
    for (const absl::Status& end : waiting.Join()) EXPECT_OK(end);
    for (int i = 0; i < kMany; ++i) {
      const size_t puts = waits ? 2 : 1;  // both rounds put
      EXPECT_EQ(gate_->Done("migrating", "r" + std::to_string(i)).size(), puts);
    }
  }
}

TEST_F(GatedServersTest, NeitherServerKeepsAThreadForACallThatComesThroughTwo) {
  gate_->Set(Migrates("migrating"));
  Background waiting;
  for (int i = 0; i < kMany; ++i) {
    waiting.Add([this, i] { return Put(*front_store_, "migrating", "r" + std::to_string(i)); });
  }
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() >= kMany; }));
  for (KVStore* const store : {front_store_.get(), store_.get()}) {
    for (int i = 0; i < 20; ++i) ASSERT_OK(Put(*store, "other", "r"));
    ASSERT_OK(store->GetRow("other", "r", {}));
  }
  // They are suspended at the server that the caller talks to, and not at the one behind it.
  EXPECT_EQ(Held(*server_), 0);
  EXPECT_EQ(waiting.ended(), 0u);
  gate_->Set(nullptr);
  for (const absl::Status& end : waiting.Join()) EXPECT_OK(end);
  for (int i = 0; i < kMany; ++i) EXPECT_EQ(gate_->Done("migrating", "r" + std::to_string(i)).size(), 1u);
}

TEST_F(GatedServersTest, EveryDoorWaitsWithoutAThread) {
  for (const char* const side : {"migrating", "other"}) {
    ASSERT_OK(router_->CreateDataset({.name = std::string(side) + "-o", .shape = Shape::kObjects}));
    ASSERT_OK(router_->CreateDataset({.name = std::string(side) + "-m", .shape = Shape::kMappings}));
  }
  const uint32_t type = router_->GetDataset("migrating-o")->type;
  const uint64_t id = ObjectId::Make(1, type, 1)->value();
  gate_->Set([](std::string_view dataset, std::string_view) {
    return dataset.starts_with("migrating") ? WritesHeldError("it migrates") : absl::OkStatus();
  });
  const CellWrite cell{"c", "v", std::nullopt};
  const std::vector<std::function<absl::Status(KVStore&)>> doors = {
      [&](KVStore& store) { return store.GetRow("migrating", "r", {}).status(); },
      [&](KVStore& store) { return Put(store, "migrating", "r"); },
      [&](KVStore& store) { return store.DeleteRow("migrating", "r", {}); },
      [&](KVStore& store) {
        const std::vector<RowRead> reads(300, RowRead{"r", {}});
        const auto rows = store.GetRows("migrating", reads);
        return rows.ok() ? rows->back().status() : rows.status();
      },
      [&](KVStore& store) {
        const auto results = store.PutRows("migrating", std::vector<RowWrite>(3, {"r", {&cell, 1}, {}}));
        return results.ok() ? results->back().status() : results.status();
      },
      [&](KVStore& store) {
        // Too large for one message, so that it is an import.
        const std::string large(3 << 20, 'v');
        const CellWrite much{"c", large, std::nullopt};
        const auto results = store.PutRows("migrating", std::vector<RowWrite>(3, {"i", {&much, 1}, {}}));
        return results.ok() ? results->back().status() : results.status();
      },
      [&](KVStore& store) {
        const auto results = store.DeleteRows("migrating", std::vector<RowDelete>(3, {"r", {}}));
        return results.ok() ? results->back() : results.status();
      },
      [&](KVStore& store) { return store.ScanRows("migrating", {}, {}).status(); },
      [&](KVStore& store) { return store.ListPartitions("migrating", 4).status(); },
      [&](KVStore& store) { return store.ListPartitions("migrating-o", 4).status(); },
      [&](KVStore& store) { return store.ScanObjects("migrating-o", {}, {}).status(); },
      [&](KVStore& store) { return store.ScanMappings("migrating-m", {}, {}).status(); },
      [&](KVStore& store) { return store.CreateObject("migrating-o", "{}", {}).status(); },
      [&](KVStore& store) { return store.GetObject("migrating-o", id, {}).status(); },
      [&](KVStore& store) {
        const auto objects = store.GetObjects("migrating-o", std::vector<uint64_t>(300, id), {});
        return objects.ok() ? objects->back().status() : objects.status();
      },
      [&](KVStore& store) { return store.PatchObject("migrating-o", id, "{}", {}).status(); },
      [&](KVStore& store) { return store.DeleteObject("migrating-o", id, true); },
      [&](KVStore& store) { return store.AddMapping("migrating-m", id, id, 1); },
      [&](KVStore& store) { return store.RemoveMapping("migrating-m", id, id).status(); },
      [&](KVStore& store) { return store.ListMapping("migrating-m", id, {}).status(); },
      [&](KVStore& store) { return store.CountMapping("migrating-m", id).status(); },
      [&](KVStore& store) { return store.ListObjects("migrating-m", id, {}).status(); },
      [&](KVStore& store) {
        const auto page = store.ListObjects("other-m", id, {});
        return page.ok() ? page->objects.at(0).object.status() : page.status();
      },
  };
  Background waiting;
  for (const auto& door : doors) {
    for (int i = 0; i < 3; ++i) waiting.Add([&] { return door(*store_); });
  }
  // All of them are in flight, and the call that asks for the figure. Each has been retried some times.
  const auto all = static_cast<double>(waiting.size() + 1);
  ASSERT_TRUE(Eventually([&] {
    return Metric(*server_, "kvstore_calls_in_flight") == all && gate_->refusals() > 1'000;
  })) << Metric(*server_, "kvstore_calls_in_flight");
  ASSERT_OK(store_->GetRow("other", "r", {}));
  ASSERT_OK(Put(*store_, "other", "r"));
  EXPECT_EQ(waiting.ended(), 0u);
  gate_->Set(nullptr);
  size_t place = 0;
  for (const absl::Status& end : waiting.Join()) EXPECT_OK(end) << "door " << place++ / 3;
  EXPECT_EQ(Held(*server_), 0);
}

TEST_F(GatedServersTest, WhatWasDoneOfABatchIsNotDoneTwice) {
  gate_->Set([](std::string_view dataset, std::string_view row) {
    return dataset == "migrating" && row.starts_with("late") ? WritesHeldError("it migrates")
                                                             : absl::OkStatus();
  });
  const CellWrite one{"c", "1", std::nullopt};
  const CellWrite two{"c", "2", std::nullopt};
  for (KVStore* const store : {store_.get(), front_store_.get()}) {
    const std::string side = store == store_.get() ? "" : "-front";
    const std::string early = "early" + side;
    const std::string late = "late" + side;
    Background waiting;
    waiting.Add([&] {
      const std::vector<RowWrite> writes = {
          {early, {&one, 1}, {}}, {late, {&one, 1}, {}}, {early, {&two, 1}, {}}, {late, {&two, 1}, {}}};
      const auto results = store->PutRows("migrating", writes);
      if (!results.ok()) return results.status();
      for (const auto& result : *results) {
        if (!result.ok()) return result.status();
      }
      return absl::OkStatus();
    });
    const int before = gate_->refusals();
    ASSERT_TRUE(Eventually([&] { return gate_->refusals() > before + 5; }));
    EXPECT_EQ(gate_->Done("migrating", early), (std::vector<std::string>{"1", "2"}));
    const auto answer = [late](std::string_view, std::string_view row) {
      return row.starts_with("late") && row != late ? WritesHeldError("it migrates") : absl::OkStatus();
    };
    gate_->Set(answer);
    EXPECT_OK(waiting.Join()[0]);
    EXPECT_EQ(gate_->Done("migrating", early), (std::vector<std::string>{"1", "2"}));
    EXPECT_EQ(gate_->Done("migrating", late), (std::vector<std::string>{"1", "2"}));
  }
}

TEST_F(GatedServersTest, WhatMayHaveBegunIsNotHeld) {
  gate_->Set(Migrates("migrating"));
  EXPECT_THAT(store_->Compact("migrating", nullptr),
              FailsWith(absl::StatusCode::kUnavailable, "it migrates"));
  EXPECT_EQ(gate_->refusals(), 1);
  gate_->Set([](std::string_view, std::string_view) { return MarkInDoubt(WritesHeldError("lost")); });
  const absl::Status lost = Put(*store_, "migrating", "r");
  EXPECT_THAT(lost, FailsWith(absl::StatusCode::kUnavailable, "lost"));
  EXPECT_TRUE(IsInDoubt(lost));
  const CellWrite cell{"c", "v", std::nullopt};
  const std::vector<RowWrite> writes = {{"r", {&cell, 1}, {}}};
  ASSERT_OK_AND_ASSIGN(const auto results, store_->PutRows("migrating", writes));
  EXPECT_TRUE(IsInDoubt(results[0].status())) << results[0].status();
  EXPECT_EQ(gate_->refusals(), 3);
}

TEST_F(GatedServersTest, WhoWaitsInVainIsToldWhatFor) {
  gate_->Set(Migrates("migrating"));
  // On a busy machine the client may now and then give up before the answer arrives.
  EXPECT_TRUE(Eventually([&] {
    const CallScope scope(std::chrono::milliseconds(300));
    const absl::Status status = Put(*store_, "migrating", "r");
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    return status.message().find("it waited: ") != std::string_view::npos;
  }));
}

TEST_F(GatedServersTest, ACallThatWaitsEndsWithItsDeadlineItsClientAndItsServer) {
  gate_->Set(Migrates("migrating"));
  {
    const CallScope scope(std::chrono::milliseconds(200));
    EXPECT_THAT(Put(*store_, "migrating", "r"), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
    EXPECT_THAT(store_->GetRow("migrating", "r", {}), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  }
  ASSERT_TRUE(Eventually([&] { return Held(*server_) == 0; }));
  // A call ends when its client is gone.
  const auto stub =
      v1::KVStore::NewStub(grpc::CreateChannel(server_->addresses()[0], grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  std::thread asks([&] {
    v1::GetRowRequest request;
    request.set_dataset("migrating");
    request.set_row("r");
    v1::GetRowResponse response;
    EXPECT_EQ(stub->GetRow(&context, request, &response).error_code(), grpc::CANCELLED);
  });
  EXPECT_TRUE(Eventually([&] { return Held(*server_) == 1; }));
  context.TryCancel();
  asks.join();
  EXPECT_TRUE(Eventually([&] { return Held(*server_) == 0; }));
  // A server that stops refuses them: nothing was done.
  grpc::ClientContext last;
  std::thread puts([&] {
    v1::PutRowRequest request;
    request.set_dataset("migrating");
    request.set_row("r");
    request.add_cells()->set_value("v");
    v1::PutRowResponse response;
    EXPECT_EQ(stub->PutRow(&last, request, &response).error_code(), grpc::UNAVAILABLE);
  });
  EXPECT_TRUE(Eventually([&] { return Held(*server_) == 1; }));
  server_->Drain();
  puts.join();
  EXPECT_EQ(last.GetServerTrailingMetadata().find("kvstore-outcome")->second, "refused");
  EXPECT_TRUE(gate_->Done("migrating", "r").empty());
}

TEST_F(GatedServersTest, WhoAsksToBeToldIsToldAtOnce) {
  gate_->Set(Migrates("migrating"));
  const CallScope scope(CallLimits{.waits = false});
  for (KVStore* const store : {store_.get(), static_cast<KVStore*>(router_.get())}) {
    EXPECT_TRUE(IsMigrating(Put(*store, "migrating", "r")));
    EXPECT_TRUE(IsMigrating(store->GetRow("migrating", "r", {}).status()));
    EXPECT_TRUE(IsMigrating(store->ScanRows("migrating", {}, {}).status()));
    const CellWrite cell{"c", "v", std::nullopt};
    const std::vector<RowWrite> writes(2, {"r", {&cell, 1}, {}});
    const auto results = store->PutRows("migrating", writes);
    ASSERT_OK(results);
    EXPECT_TRUE(IsMigrating((*results)[0].status()) && IsMigrating((*results)[1].status()));
  }
}

TEST_F(GatedServersTest, BehindARefusedEntryNoLaterMessageOfItsRequestIsCarriedOut) {
  std::atomic<int> refusals = 0;
  const auto refuse_once = [&](std::string_view, std::string_view row) {
    return row == "a" && refusals++ == 0 ? WritesHeldError("it migrates") : absl::OkStatus();
  };
  const CallScope scope(CallLimits{.waits = false});
  std::vector<RowDelete> deletes(4'000, RowDelete{"b", {}});
  deletes.front().row = deletes.back().row = "a";
  gate_->Set(refuse_once);
  ASSERT_OK_AND_ASSIGN(const auto deleted, store_->DeleteRows("migrating", deletes));
  EXPECT_TRUE(IsMigrating(deleted.front()));
  EXPECT_TRUE(IsMigrating(deleted.back()));
  EXPECT_TRUE(gate_->Done("migrating", "a").empty());

  const std::string large(3 << 20, 'v');
  const CellWrite cell{"c", large, std::nullopt};
  std::vector<RowWrite> writes(4, {"b", {&cell, 1}, {}});
  writes.front().row = writes.back().row = "a";
  refusals = 0;
  ASSERT_OK_AND_ASSIGN(const auto put, store_->PutRows("migrating", writes));
  EXPECT_TRUE(IsMigrating(put.front().status()));
  EXPECT_TRUE(IsMigrating(put.back().status()));
  EXPECT_TRUE(gate_->Done("migrating", "a").empty());
  gate_->Set(nullptr);
}

TEST_F(GatedServersTest, AnImportThatIsTurnedAwayIsMadeAgain) {
  ServerOptions options = TestServerOptions();
  options.limits.max_calls = 4;
  Serve(options);
  gate_->Set(Migrates("migrating"));
  Background waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.Add([this, i] { return Put(*store_, "migrating", "r" + std::to_string(i)); });
  }
  // Some of the suspended calls are being retried at any moment, so all calls in flight are counted.
  ASSERT_TRUE(Eventually([&] { return Metric(*server_, "kvstore_calls_in_flight") >= 4; }));
  const std::string large(3 << 20, 'v');
  const CellWrite cell{"c", large, std::nullopt};
  const std::vector<RowWrite> writes(3, {"i", {&cell, 1}, {}});
  Background puts;
  puts.Add([&] {
    const auto results = store_->PutRows("other", writes);
    return results.ok() ? results->back().status() : results.status();
  });
  // There is room only after it has been refused.
  const auto refused = [this] { return Metric(*server_, "kvstore_calls_refused_total") > 0; };
  ASSERT_TRUE(Eventually(refused));
  gate_->Set(nullptr);
  EXPECT_OK(puts.Join()[0]);
  EXPECT_EQ(gate_->Done("other", "i").size(), 3u);
}

// ---- over a stream with others ----

class SuspendedOnStreamTest : public GatedStreamTest {
 protected:
  static v1::Call& AddPut(v1::CallsRequest& request, const std::string& dataset, const std::string& row,
                          const std::string& value) {
    v1::Call& call = *request.add_calls();
    call.set_number(static_cast<uint64_t>(request.calls_size()));
    v1::PutRowRequest& put = *call.mutable_put_row();
    put.set_dataset(dataset);
    put.set_row(row);
    put.add_cells()->set_value(value);
    return call;
  }
};

TEST_F(SuspendedOnStreamTest, OneMessagesCallsOnOtherDatasetsAreAnsweredMeanwhile) {
  gate_->Set(Migrates("migrating"));
  v1::CallsRequest request;
  std::vector<std::string> order;
  for (int i = 0; i < 50; ++i) {
    AddPut(request, "migrating", "r", std::to_string(i));
    AddPut(request, "other", "r", std::to_string(i));
    order.push_back(std::to_string(i));
  }
  // Reads run on the thread that reads the stream.
  for (const char* const dataset : {"migrating", "other"}) {
    v1::Call& get = *request.add_calls();
    get.set_number(static_cast<uint64_t>(request.calls_size()));
    get.mutable_get_row()->set_dataset(dataset);
    get.mutable_get_row()->set_row("r");
  }
  ASSERT_TRUE(stream_->Write(request));
  const auto others = ReadAnswers(51);
  ASSERT_EQ(others.size(), 51u);
  for (const auto& [number, answer] : others) {
    EXPECT_EQ(number % 2, 0u);
    EXPECT_FALSE(answer.has_error()) << answer.DebugString();
  }
  EXPECT_EQ(gate_->Done("other", "r"), order);
  EXPECT_TRUE(gate_->Done("migrating", "r").empty());
  gate_->Set(nullptr);
  const auto held = ReadAnswers(51);
  ASSERT_EQ(held.size(), 51u);
  for (const auto& [number, answer] : held) EXPECT_FALSE(answer.has_error()) << answer.DebugString();
  // The writes were carried out in their order.
  EXPECT_EQ(gate_->Done("migrating", "r"), order);
}

TEST_F(SuspendedOnStreamTest, ACallBehindOneThatIsHeldEndsAtItsDeadline) {
  gate_->Set(Migrates("migrating"));
  v1::CallsRequest request;
  AddPut(request, "migrating", "r", "first");
  AddPut(request, "migrating", "r", "second").set_timeout_us(100'000);
  AddPut(request, "migrating", "r", "third");
  ASSERT_TRUE(stream_->Write(request));
  auto answers = ReadAnswers(1);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[2].error().code(), grpc::DEADLINE_EXCEEDED);
  gate_->Set(nullptr);
  answers = ReadAnswers(2);
  EXPECT_TRUE(answers[1].has_put_row() && answers[3].has_put_row());
  EXPECT_EQ(gate_->Done("migrating", "r"), (std::vector<std::string>{"first", "third"}));
}

}  // namespace
}  // namespace kvstore
