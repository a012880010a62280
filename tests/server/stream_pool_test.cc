#include "client/stream_pool.h"

#include <absl/base/thread_annotations.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <set>
#include <thread>

#include "backend_api/outcome.h"
#include "base/mutex.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/connect.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "wire/convert.h"

/// How a client uses streams, with a server that does with them what a test wants.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::FailsWith;
using ServerStream = grpc::ServerReaderWriter<v1::CallsResponse, v1::CallsRequest>;

void AnswerTo(const v1::Call& call, v1::Answer& answer) {
  answer.set_number(call.number());
  if (call.has_put_row()) {
    answer.mutable_put_row()->set_timestamp(1);
  } else {
    v1::GetRowResponse& row = *answer.mutable_get_row();
    row.add_items()->set_column(call.get_row().row());
  }
}

/// Answers a get with the name of its row, as a column. A get or put by its own method waits until a stream
/// is open, so that a client with some threads opens one.
class Fake : public v1::KVStore::Service {
 public:
  /// Serves the n-th stream, from 0, and ends it when it returns.
  using Script = std::function<grpc::Status(Fake& server, int n, ServerStream& stream)>;

  explicit Fake(Script script) : script_(std::move(script)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Fake() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::unique_ptr<KVStore> Client(const ConnectOptions& options = {}) const {
    return *Connect("127.0.0.1:" + std::to_string(port_), options);
  }
  int streams() const { return streams_; }
  int own_calls() const { return own_calls_; }
  /// The request IDs of the puts over streams.
  std::multiset<std::string> attempts() {
    const MutexLock lock(mutex_);
    return attempts_;
  }

  /// The next GetRow by its own method is lost.
  void LoseOne() { loses_ = true; }

  /// Answers everything.
  grpc::Status Serve(ServerStream& stream) {
    v1::CallsRequest request;
    for (uint64_t taken = 1; stream.Read(&request); ++taken) {
      Note(request);
      v1::CallsResponse response;
      response.set_taken(taken);
      for (const v1::Call& call : request.calls()) AnswerTo(call, *response.add_answers());
      if (!stream.Write(response)) break;
    }
    return grpc::Status::OK;
  }
  void Note(const v1::CallsRequest& request) {
    const MutexLock lock(mutex_);
    for (const v1::Call& call : request.calls()) {
      if (call.has_put_row()) attempts_.insert(call.put_row().attempt().request_id());
    }
  }

 private:
  grpc::Status GetServer(grpc::ServerContext*, const v1::GetServerRequest*,
                         v1::GetServerResponse* response) override {
    response->set_instance("one");
    return grpc::Status::OK;
  }
  grpc::Status GetRow(grpc::ServerContext*, const v1::GetRowRequest* request,
                      v1::GetRowResponse* response) override {
    WaitForStream();
    if (loses_.exchange(false)) return {grpc::StatusCode::UNAVAILABLE, "lost"};
    response->add_items()->set_column(request->row());
    return grpc::Status::OK;
  }
  grpc::Status PutRow(grpc::ServerContext*, const v1::PutRowRequest*, v1::PutRowResponse* response) override {
    WaitForStream();
    response->set_timestamp(1);
    return grpc::Status::OK;
  }
  grpc::Status Calls(grpc::ServerContext*, ServerStream* stream) override {
    int n = 0;
    {
      const MutexLock lock(mutex_);
      n = streams_++;
    }
    opened_.notify_all();
    return script_ ? script_(*this, n, *stream) : grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
  }
  void WaitForStream() {
    ++own_calls_;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    MutexLock lock(mutex_);
    while (streams_ == 0 && !lock.WaitUntil(opened_, until)) {
    }
  }

  const Script script_;
  int port_ = 0;
  Mutex mutex_;
  std::condition_variable opened_;
  std::atomic<int> streams_{0};
  std::atomic<int> own_calls_{0};
  std::atomic<bool> loses_{false};
  std::multiset<std::string> attempts_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

void InThreads(int count, const std::function<void(int thread)>& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int t = 0; t < count; ++t) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& thread : threads) thread.join();
}

absl::Status Put(KVStore& store) {
  const CellWrite cell{"c", "v", std::nullopt};
  return store.PutRow("rows", "r", {&cell, 1}, {}).status();
}

TEST(StreamPool, EachThreadGetsItsAnswer) {
  Fake server([&](Fake& fake, int, ServerStream& stream) { return fake.Serve(stream); });
  const auto client = server.Client();
  InThreads(16, [&](int t) {
    for (int i = 0; i < 200; ++i) {
      const std::string row = std::to_string(t) + "/" + std::to_string(i);
      const auto got = client->GetRow("rows", row, {});
      ASSERT_OK(got.status());
      ASSERT_EQ(got->items.at(0).column, row);
    }
  });
  // One stream for each connection.
  EXPECT_GE(server.streams(), 1);
  EXPECT_LE(server.streams(), 2);
}

TEST(StreamPool, OneThreadAloneDoesWithout) {
  Fake server([&](Fake& fake, int, ServerStream& stream) { return fake.Serve(stream); });
  const auto client = server.Client();
  InThreads(8, [&](int) { ASSERT_OK(client->GetRow("rows", "r", {}).status()); });
  const int before = server.own_calls();
  for (int i = 0; i < 10; ++i) ASSERT_OK(client->GetRow("rows", "r", {}).status());
  EXPECT_EQ(server.own_calls(), before + 10);
}

TEST(StreamPool, AServerThatDoesNotKnowThemIsCalledByItsMethods) {
  Fake server(nullptr);
  const auto client = server.Client();
  InThreads(16, [&](int) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_OK(client->GetRow("rows", "r", {}).status());
      ASSERT_OK(Put(*client));
    }
  });
  EXPECT_EQ(server.own_calls(), 16 * 40);
  const int asked = server.streams();
  InThreads(16, [&](int) { ASSERT_OK(client->GetRow("rows", "r", {}).status()); });
  EXPECT_EQ(server.streams(), asked) << "it was asked again";
}

TEST(StreamPool, ANewerServerInItsPlaceIsAskedAgain) {
  std::atomic<bool> newer{false};
  Fake server([&](Fake& fake, int, ServerStream& stream) {
    return newer ? fake.Serve(stream) : grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
  });
  const auto client = server.Client();
  const auto ask = [&](int) { ASSERT_OK(client->GetRow("rows", "r", {}).status()); };
  InThreads(16, ask);
  const int asked = server.streams();
  EXPECT_GE(asked, 1);
  newer = true;
  server.LoseOne();
  ask(0);
  EXPECT_TRUE(Eventually([&] {
    InThreads(16, ask);
    return server.streams() > asked;
  }));
}

TEST(StreamPool, ACallThatTheServerDoesNotTakeIsMadeByItsMethod) {
  Fake server([&](Fake&, int, ServerStream& stream) {
    v1::CallsRequest request;
    for (uint64_t taken = 1; stream.Read(&request); ++taken) {
      v1::CallsResponse response;
      response.set_taken(taken);
      for (const v1::Call& call : request.calls()) {
        v1::Answer& answer = *response.add_answers();
        answer.set_number(call.number());
        answer.set_outcome(wire::kFailed);
        answer.mutable_error()->set_code(grpc::StatusCode::UNIMPLEMENTED);
      }
      stream.Write(response);
    }
    return grpc::Status::OK;
  });
  const auto client = server.Client();
  InThreads(8, [&](int) { ASSERT_OK(Put(*client)); });
  EXPECT_EQ(server.own_calls(), 8);
}

TEST(StreamPool, WhatABrokenStreamLeavesIsMadeAgainWithItsId) {
  Fake server([&](Fake& fake, int n, ServerStream& stream) {
    if (n >= 2) return fake.Serve(stream);
    // It reads the calls, and ends without an answer.
    v1::CallsRequest request;
    stream.Read(&request);
    fake.Note(request);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  });
  const auto client = server.Client();
  InThreads(16, [&](int t) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_OK(Put(*client));
      const auto got = client->GetRow("rows", std::to_string(t), {});
      ASSERT_OK(got.status());
      ASSERT_EQ(got->items.at(0).column, std::to_string(t));
    }
  });
  EXPECT_GT(server.streams(), 2);
  const auto attempts = server.attempts();
  EXPECT_GT(attempts.size(), std::set<std::string>(attempts.begin(), attempts.end()).size());
}

TEST(StreamPool, AWriteWithoutAnAnswerIsInDoubtIfItHasLeft) {
  std::atomic<int> messages{0};
  Fake server([&](Fake&, int, ServerStream& stream) {
    v1::CallsRequest request;
    while (stream.Read(&request)) ++messages;
    return grpc::Status::OK;
  });
  const auto client = server.Client();
  std::atomic<int> in_doubt{0};
  std::thread first([&] {
    InThreads(6, [&](int) {
      const CallScope scope(std::chrono::seconds(2));
      const absl::Status status = Put(*client);
      if (status.ok()) return;  // by its own method
      EXPECT_THAT(status, FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
      if (IsInDoubt(status)) ++in_doubt;
    });
  });
  // Both connections have a message that the server never takes up, so the next calls wait behind it.
  EXPECT_TRUE(Eventually([&] { return messages == 2; }));
  InThreads(6, [&](int) {
    const CallScope scope(std::chrono::milliseconds(200));
    const absl::Status status = Put(*client);
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
    EXPECT_FALSE(IsInDoubt(status)) << status;
  });
  first.join();
  EXPECT_GE(in_doubt, 2);
}

TEST(StreamPool, WhatAServerThatStopsHasNotGotIsMadeOnAnother) {
  Fake server([&](Fake& fake, int n, ServerStream& stream) {
    if (n >= 2) return fake.Serve(stream);
    v1::CallsRequest request;
    stream.Read(&request);
    v1::CallsResponse response;
    response.set_stops(true);
    stream.Write(response);
    // It answers the calls that it has received.
    response.set_taken(1);
    for (const v1::Call& call : request.calls()) AnswerTo(call, *response.add_answers());
    stream.Write(response);
    EXPECT_FALSE(stream.Read(&request)) << "more calls came";
    return grpc::Status::OK;
  });
  const auto client = server.Client();
  InThreads(16, [&](int) {
    for (int i = 0; i < 20; ++i) ASSERT_OK(Put(*client));
  });
  // No write was carried out twice.
  const auto attempts = server.attempts();
  EXPECT_EQ(attempts.size(), std::set<std::string>(attempts.begin(), attempts.end()).size());
  EXPECT_GT(server.streams(), 1);
}

}  // namespace
}  // namespace kvstore
