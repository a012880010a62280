#include "server/grpc/multiplexed_calls.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <thread>

#include "backend_api/outcome.h"
#include "server/call/access.h"
#include "server/grpc/grpc_transport.h"
#include "tests/server/drained_writers.h"
#include "tests/server/served.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "wire/calls.h"
#include "wire/convert.h"

/// The server's side of many calls over one stream.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::Served;
using testing::TestServerOptions;

/// A stream without our client, as any gRPC program opens one.
class Stream {
 public:
  explicit Stream(const std::string& address, const std::string& token = "")
      : stub_(v1::KVStore::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    stream_ = stub_->Calls(&context_);
  }
  ~Stream() {
    context_.TryCancel();
    while (!finished_ && Read()) {
    }
    Finish();
  }

  v1::KVStore::Stub& stub() { return *stub_; }
  void Cancel() { context_.TryCancel(); }
  bool Send(const v1::CallsRequest& request) { return stream_->Write(request); }
  /// Reads so many answers, and returns them by the numbers of their calls.
  std::map<uint64_t, v1::Answer> ReadAnswers(size_t count) {
    std::map<uint64_t, v1::Answer> answers;
    while (answers.size() < count && stream_->Read(&last_)) {
      for (const v1::Answer& answer : last_.answers()) answers[answer.number()] = answer;
    }
    return answers;
  }
  bool Read() { return stream_->Read(&last_); }
  const v1::CallsResponse& last() const { return last_; }
  void EndWriting() { stream_->WritesDone(); }
  grpc::Status Finish() {
    if (!std::exchange(finished_, true)) end_ = stream_->Finish();
    return end_;
  }

 private:
  const std::unique_ptr<v1::KVStore::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::CallsRequest, v1::CallsResponse>> stream_;
  v1::CallsResponse last_;
  bool finished_ = false;
  grpc::Status end_;
};

v1::Call& AddPut(v1::CallsRequest& request, uint64_t number, const std::string& row,
                 const std::string& value) {
  v1::Call& call = *request.add_calls();
  call.set_number(number);
  v1::PutRowRequest& put = *call.mutable_put_row();
  put.set_dataset("rows");
  put.set_row(row);
  v1::CellWrite& cell = *put.add_cells();
  cell.set_column("c");
  cell.set_value(value);
  cell.set_timestamp(1);
  return call;
}

v1::Call& AddGet(v1::CallsRequest& request, uint64_t number, const std::string& row,
                 const std::string& dataset = "rows") {
  v1::Call& call = *request.add_calls();
  call.set_number(number);
  call.mutable_get_row()->set_dataset(dataset);
  call.mutable_get_row()->set_row(row);
  return call;
}

class CallsStreamTest : public ::testing::Test {
 protected:
  void Serve(const ServerOptions& options = TestServerOptions()) {
    served_ = std::make_unique<Served>(options);
    ASSERT_OK(served_->router().CreateDataset({.name = "rows"}));
    ASSERT_OK(served_->router().CreateDataset({.name = "safe", .durability = Durability::kMachine}));
  }

  std::unique_ptr<Served> served_;
};

TEST_F(CallsStreamTest, EachCallIsAnsweredAsByItsOwnMethod) {
  Serve();
  Stream stream(served_->address());
  v1::CallsRequest puts;
  AddPut(puts, 7, "r", "v");
  AddPut(puts, 8, "s", "w").mutable_put_row()->set_sync(true);
  AddPut(puts, 9, "t", "x").mutable_put_row()->set_dataset("safe");
  AddPut(puts, 10, "", "a row needs a name");
  puts.add_calls()->set_number(11);
  ASSERT_TRUE(stream.Send(puts));
  auto answers = stream.ReadAnswers(5);
  ASSERT_EQ(answers.size(), 5u);
  for (const uint64_t number : {7, 8, 9}) {
    EXPECT_TRUE(answers[number].has_put_row()) << answers[number].DebugString();
  }
  EXPECT_EQ(answers[10].error().code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(answers[10].outcome(), wire::kFailed);
  EXPECT_EQ(answers[11].error().code(), grpc::UNIMPLEMENTED);
  EXPECT_EQ(answers[11].outcome(), wire::kFailed);

  v1::CallsRequest gets;
  AddGet(gets, 1, "r");
  AddGet(gets, 2, "t", "safe");
  AddGet(gets, 3, "r", "none");
  v1::Call& create = *gets.add_calls();
  create.set_number(4);
  create.mutable_create_object()->set_dataset("rows");
  ASSERT_TRUE(stream.Send(gets));
  answers = stream.ReadAnswers(4);
  ASSERT_EQ(answers.size(), 4u);
  ASSERT_EQ(answers[1].get_row().items_size(), 1) << answers[1].DebugString();
  EXPECT_EQ(answers[1].get_row().items(0).cells(0).value(), "v");
  EXPECT_EQ(answers[2].get_row().items(0).cells(0).value(), "x");
  EXPECT_EQ(answers[3].error().code(), grpc::NOT_FOUND);
  EXPECT_EQ(answers[4].error().code(), grpc::FAILED_PRECONDITION);
  // This may come after the last answer, in a message without answers.
  while (stream.last().taken() < 2) ASSERT_TRUE(stream.Read());
  EXPECT_EQ(stream.last().taken(), 2u);
  // They are counted as if they had come by their own methods.
  EXPECT_EQ(
      served_->Metric("kvstore_call_seconds_count{backend=\"rocksdb\",door=\"grpc\",operation=\"PutRow\"}"),
      4);
  stream.EndWriting();
  EXPECT_FALSE(stream.Read());
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(CallsStreamTest, EachCallNeedsItsRight) {
  const testing::TempDir dir;
  std::ofstream(dir / "tokens.json") << R"({"tokens": [{"name": "reader", "sha256": ")"
                                     << server::TokenDigest("t-read")
                                     << R"(", "rights": {"rows": "read"}}]})";
  ServerOptions options = TestServerOptions();
  options.tokens = dir / "tokens.json";
  Serve(options);
  v1::CallsRequest calls;
  AddPut(calls, 1, "r", "v");
  AddGet(calls, 2, "r");
  AddGet(calls, 3, "r", "safe");
  Stream reader(served_->address(), "t-read");
  ASSERT_TRUE(reader.Send(calls));
  auto answers = reader.ReadAnswers(3);
  EXPECT_EQ(answers[1].error().code(), grpc::PERMISSION_DENIED);
  EXPECT_TRUE(answers[2].has_get_row()) << answers[2].DebugString();
  EXPECT_EQ(answers[3].error().code(), grpc::PERMISSION_DENIED);
  // The server reads nothing of a stranger.
  Stream stranger(served_->address(), "t-other");
  EXPECT_FALSE(stranger.Read());
  EXPECT_EQ(stranger.Finish().error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(CallsStreamTest, EachCallHasItsDeadline) {
  Serve();
  Stream stream(served_->address());
  v1::CallsRequest calls;
  // Their deadlines pass, because the call before them in the message takes more than a microsecond.
  for (uint64_t i = 4; i <= 100; ++i) AddGet(calls, i, "r");
  AddPut(calls, 1, "r", "v").set_timeout_us(1);
  AddGet(calls, 2, "r").set_timeout_us(1);
  AddGet(calls, 3, "r").set_timeout_us(~uint64_t{0});
  ASSERT_TRUE(stream.Send(calls));
  auto answers = stream.ReadAnswers(100);
  EXPECT_EQ(answers[1].error().code(), grpc::DEADLINE_EXCEEDED) << answers[1].error().message();
  EXPECT_EQ(answers[2].error().code(), grpc::DEADLINE_EXCEEDED) << answers[2].error().message();
  EXPECT_TRUE(answers[3].has_get_row()) << answers[3].DebugString();
}

TEST(Outcome, AWriteThatMayHaveHappenedIsNotToldAsMovedOrRefused) {
  const absl::Status moved = ServedElsewhereError("it has moved");
  EXPECT_STREQ(server::WireName(server::Call::OutcomeOf(moved)), wire::kMoved);
  EXPECT_STREQ(server::WireName(server::Call::OutcomeOf(MarkInDoubt(moved))), wire::kInDoubt);
  EXPECT_STREQ(server::WireName(server::Call::OutcomeOf(server::MarkRefused(moved))), wire::kRefused);
  EXPECT_STREQ(server::WireName(server::Call::OutcomeOf(MarkInDoubt(server::MarkRefused(moved)))),
               wire::kInDoubt);
  EXPECT_STREQ(server::WireName(server::Call::OutcomeOf(absl::NotFoundError("none"))), wire::kFailed);
}

TEST_F(CallsStreamTest, AnAttemptIsRememberedOverStreams) {
  Serve();
  v1::CallsRequest calls;
  AddPut(calls, 1, "r", "v").mutable_put_row()->mutable_attempt()->set_request_id("0123456789abcdef");
  calls.mutable_calls(0)->mutable_put_row()->mutable_cells(0)->clear_timestamp();
  std::array<uint64_t, 2> timestamps{};
  for (uint64_t& timestamp : timestamps) {
    Stream stream(served_->address());
    ASSERT_TRUE(stream.Send(calls));
    auto answers = stream.ReadAnswers(1);
    ASSERT_TRUE(answers[1].has_put_row()) << answers[1].DebugString();
    timestamp = answers[1].put_row().timestamp();
  }
  EXPECT_EQ(timestamps[0], timestamps[1]);
}

TEST_F(CallsStreamTest, DurablePutsOfAMessageShareAFlush) {
  Serve();
  Stream stream(served_->address());
  const double before = served_->Metric("kvstore_rocksdb_log_syncs_total");
  v1::CallsRequest puts;
  for (uint64_t i = 1; i <= 20; ++i) {
    AddPut(puts, i, "r" + std::to_string(i), "v").mutable_put_row()->set_dataset("safe");
  }
  ASSERT_TRUE(stream.Send(puts));
  auto answers = stream.ReadAnswers(20);
  ASSERT_EQ(answers.size(), 20u);
  for (const auto& [number, answer] : answers) EXPECT_TRUE(answer.has_put_row()) << answer.DebugString();
  EXPECT_EQ(served_->Metric("kvstore_rocksdb_log_syncs_total"), before + 1);
  EXPECT_EQ(
      served_->Metric("kvstore_call_seconds_count{backend=\"rocksdb\",door=\"grpc\",operation=\"PutRow\"}"),
      20);
}

TEST_F(CallsStreamTest, WhenTheServerStopsItSaysSoAndTurnsCallsAway) {
  Serve();
  Stream idle(served_->address());
  Stream busy(served_->address());
  Stream late(served_->address());
  v1::CallsRequest calls;
  AddGet(calls, 1, "r");
  for (Stream* stream : {&idle, &busy}) {
    ASSERT_TRUE(stream->Send(calls));
    ASSERT_EQ(stream->ReadAnswers(1).count(1), 1u);
  }
  // An open call keeps the server from ending at once.
  grpc::ClientContext context;
  const auto import = busy.stub().ImportRows(&context);
  v1::PutRowsRequest write;
  write.set_dataset("rows");
  write.add_writes()->set_row("r");
  ASSERT_TRUE(import->Write(write));
  ASSERT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_in_flight") == 2; }));
  std::thread drains([&] { served_->server().Drain(); });
  while (idle.Read() && !idle.last().stops()) {
  }
  EXPECT_TRUE(idle.last().stops());
  idle.EndWriting();
  EXPECT_FALSE(idle.Read());
  EXPECT_TRUE(idle.Finish().ok());
  // A client that sends calls all the same is told that nothing was done.
  ASSERT_TRUE(busy.Send(calls));
  auto answers = busy.ReadAnswers(1);
  EXPECT_EQ(answers[1].error().code(), grpc::UNAVAILABLE);
  EXPECT_EQ(answers[1].outcome(), wire::kRefused);
  while (late.Read() && !late.last().stops()) {
  }
  EXPECT_TRUE(late.last().stops());
  context.TryCancel();
  import->Finish();
  drains.join();
}

TEST_F(CallsStreamTest, WhoTakesNoAnswersIsNotReadFromAndEndedAtLast) {
  ServerOptions options = TestServerOptions();
  options.limits.stall_ms = 300;
  Serve(options);
  ASSERT_OK(served_->router().CreateDataset({.name = "wide"}));
  const std::string value(8000, 'v');
  const CellWrite cell{"c", value, 1};
  ASSERT_OK(served_->router().PutRow("wide", "r", {&cell, 1}, {}).status());
  Stream stream(served_->address());
  v1::CallsRequest calls;
  for (uint64_t i = 1; i <= 100; ++i) AddGet(calls, i, "r", "wide");
  // Writes until the window is full, and then blocks until the stream is ended.
  size_t sent = 0;
  while (sent < 100'000 && stream.Send(calls)) ++sent;
  EXPECT_LT(sent, 100'000u);
  while (stream.Read()) {
  }
  EXPECT_EQ(stream.Finish().error_code(), grpc::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_in_flight") == 1; }));
}

TEST_F(CallsStreamTest, MoreCallsThanItHoldsOpenAreAnsweredAllTheSame) {
  Serve();
  Stream stream(served_->address());
  v1::CallsRequest calls;
  for (uint64_t i = 1; i <= wire::kMaxCallsOfMessage; ++i) AddGet(calls, i, "r");
  std::thread sends([&] {
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(stream.Send(calls));
    stream.EndWriting();
  });
  size_t answers = 0;
  size_t turned_away = 0;
  while (stream.Read()) {
    for (const v1::Answer& answer : stream.last().answers()) {
      answer.has_get_row() ? ++answers : ++turned_away;
    }
  }
  sends.join();
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(answers + turned_away, 40u * wire::kMaxCallsOfMessage);
  EXPECT_GT(answers, 0u);
}

TEST_F(CallsStreamTest, AMessageWithTooManyCallsEndsTheStream) {
  Serve();
  Stream stream(served_->address());
  v1::CallsRequest calls;
  AddGet(calls, 1, "r");
  ASSERT_TRUE(stream.Send(calls));
  for (uint64_t i = 1; i <= wire::kMaxCallsOfMessage; ++i) AddGet(calls, i, "r");
  ASSERT_TRUE(stream.Send(calls));
  // The calls before it are answered.
  size_t answers = 0;
  while (stream.Read()) answers += static_cast<size_t>(stream.last().answers_size());
  EXPECT_EQ(answers, 1u);
  const grpc::Status end = stream.Finish();
  EXPECT_EQ(end.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_NE(end.error_message().find("calls: more than 1000"), std::string::npos) << end.error_message();
}

TEST_F(CallsStreamTest, ABrokenStreamLeavesNothingBehind) {
  Serve();
  for (int i = 0; i < 100; ++i) {
    Stream stream(served_->address());
    v1::CallsRequest calls;
    for (uint64_t n = 1; n <= 50; ++n) {
      AddPut(calls, n, "r" + std::to_string(n), "v").mutable_put_row()->set_sync(n % 2 == 0);
    }
    stream.Send(calls);
    if (i % 2 == 0) stream.Read();
    stream.Cancel();
  }
  Stream other(served_->address());
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_in_flight") == 1; }));
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_bytes_in_flight") == 0; }));
}

TEST_F(CallsStreamTest, DrainingLosesNoWriteThatWasAnswered) {
  Serve();
  // All of them write over one stream.
  const auto client = served_->Client({.deadline_ms = 500});
  testing::DrainedWriters writers(*served_);
  for (int i = 0; i < 8; ++i) writers.Start(*client);
  writers.ExpectThatNothingIsLost(100);
}

}  // namespace
}  // namespace kvstore
