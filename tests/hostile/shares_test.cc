#include <algorithm>
#include <vector>

#include "tests/hostile/http2.h"
#include "tests/hostile/tenants.h"
#include "tests/support/certificates.h"

/// Callers who may only read, and take all that they can get.
namespace kvstore {
namespace {

namespace http2 = testing::http2;
using testing::Eventually;
using testing::TenantsTest;

constexpr double kMiB = 1 << 20;

/// A scan of a dataset whose client stops reading.
struct IdleScan {
  IdleScan(v1::KVStore::Stub& stub, const std::string& dataset, const std::string& token) {
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::ScanRowsRequest request;
    request.set_dataset(dataset);
    request.set_max_bytes(4 << 20);
    stream = stub.ScanRows(&context, request);
  }
  ~IdleScan() {
    context.TryCancel();
    if (!ended) stream->Finish();
  }
  /// Reads to the end.
  grpc::Status Drain() {
    v1::ScanRowsResponse message;
    while (stream->Read(&message)) rows += message.rows_size();
    ended = true;
    return stream->Finish();
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::ScanRowsResponse>> stream;
  int rows = 0;
  bool ended = false;
};

class SharesTest : public TenantsTest {
 protected:
  /// Connects a client that takes little before it reads: what the server holds does not become less later
  /// on.
  void ConnectSlowReader() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 16);
    stub_ = v1::KVStore::NewStub(
        grpc::CreateCustomChannel(served_->address(), grpc::InsecureChannelCredentials(), arguments));
  }
};

TEST_F(SharesTest, OneMessageOfManyLargeReadsHoldsLittle) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.threads = 4;
  Serve(options);
  PutRows("alice", 1, 4'000'000);
  grpc::ClientContext context;
  As(context, "alice");
  const auto stream = stub_->Calls(&context);
  v1::CallsRequest request;
  constexpr int kCalls = 60;
  for (int i = 0; i < kCalls; ++i) {
    v1::Call& call = *request.add_calls();
    call.set_number(static_cast<uint64_t>(i));
    call.mutable_get_row()->set_dataset("alice");
    call.mutable_get_row()->set_row("r10000");
  }
  ASSERT_TRUE(stream->Write(request));
  double most = 0;
  const auto look = [&] { return most = std::max(most, Metric("kvstore_bytes_in_flight")); };
  ASSERT_TRUE(Eventually([&] { return look() > 16 * kMiB; }));
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(Get("bob").ok());
    look();
  }
  int answers = 0;
  v1::CallsResponse response;
  while (answers < kCalls && stream->Read(&response)) {
    for (const v1::Answer& answer : response.answers()) {
      EXPECT_EQ(answer.get_row().items_size(), 1) << answer.error().message();
      ++answers;
    }
    look();
  }
  EXPECT_EQ(answers, kCalls) << "what waited for room is made";
  // 16 MiB, one answer for each thread, and one for each call that begins when there is room again.
  EXPECT_LT(most, 72 * kMiB);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") < 1000; }))
      << "some is counted still";
}

/// Alice's stream of calls, whose answers are not taken. Calls that it sends wait.
class FullStreamTest : public SharesTest {
 protected:
  void SetUp() override {
    ServerOptions options = testing::TestServerOptions();
    // So no more than one answer is made beyond those that have room.
    options.limits.threads = 1;
    Serve(options);
    constexpr size_t kBytes = 100'000;
    PutRows("alice", 1, kBytes);
    ConnectSlowReader();
    As(context_, "alice");
    stream_ = stub_->Calls(&context_);
    v1::CallsRequest reads;
    for (int i = 0; i < 300; ++i) AddRead(reads);
    ASSERT_TRUE(stream_->Write(reads));
    ASSERT_TRUE(Eventually([&] { return BytesInFlight() > 16 * kMiB; }));
    before_ = BytesInFlight();
    // It has answers for 16 MiB, what the message and its calls take, and a message on its way to the client.
    ASSERT_LT(before_, 17 * kMiB);
  }
  void TearDown() override {
    context_.TryCancel();
    stream_->Finish();
    EXPECT_TRUE(Eventually([&] { return BytesInFlight() < 1000; }));
  }

  void AddRead(v1::CallsRequest& request) {
    v1::Call& call = *request.add_calls();
    call.set_number(number_++);
    call.mutable_get_row()->set_dataset("alice");
    call.mutable_get_row()->set_row("r10000");
  }
  /// Adds a write that is not allowed, with two bytes for each cell.
  void AddForbiddenWrite(v1::CallsRequest& request, int cells) {
    v1::Call& call = *request.add_calls();
    call.set_number(number_++);
    call.mutable_put_row()->set_dataset("bob");
    for (int i = 0; i < cells; ++i) call.mutable_put_row()->add_cells();
  }
  /// Sends the message `times` times, each with a read that has to wait, which keeps the message in memory.
  /// Returns whether the server counts at least `bytes` for each.
  bool TakesAtLeast(double bytes, const v1::CallsRequest& message, int times) {
    for (int i = 0; i < times; ++i) {
      v1::CallsRequest request = message;
      AddRead(request);
      if (!stream_->Write(request)) return false;
    }
    before_ += times * bytes;
    return Eventually([&] { return BytesInFlight() > before_; });
  }
  double BytesInFlight() const { return Metric("kvstore_bytes_in_flight"); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::CallsRequest, v1::CallsResponse>> stream_;
  uint64_t number_ = 0;
  double before_ = 0;  // BytesInFlight must be more by now
};

TEST_F(FullStreamTest, MessagesThatWaitAreCounted) {
  v1::CallsRequest request;
  AddForbiddenWrite(request, 100'000);
  EXPECT_TRUE(TakesAtLeast(12 * kMiB, request, 1));
}

TEST_F(FullStreamTest, SmallMessagesThatWaitAreCountedWithWhatTheyTake) {
  // A message of a few bytes takes some kilobytes of memory. So many, that a message of answers that the
  // client takes meanwhile, of 256 KiB, is less than what they are counted with beyond this.
  EXPECT_TRUE(TakesAtLeast(4 << 10, {}, 600));
  v1::CallsRequest request;
  constexpr int kCells = 1'000;
  AddForbiddenWrite(request, kCells);
  EXPECT_TRUE(TakesAtLeast(kCells * 100, request, 200));
}

TEST_F(SharesTest, AMessageForWhichThereIsNoRoomIsTurnedAwayCallByCall) {
  ServerOptions options = testing::TestServerOptions();
  // Half of the limit has room for the reads that are made before the server sees that no answer is taken.
  options.limits.max_bytes = 80 << 20;
  options.limits.threads = 1;
  Serve(options);
  PutRows("alice", 1, 4'000'000);
  grpc::ClientContext context;
  As(context, "alice");
  const auto stream = stub_->Calls(&context);
  constexpr uint64_t kReads = 12;
  v1::CallsRequest reads;
  for (uint64_t i = 0; i < kReads; ++i) {
    v1::Call& call = *reads.add_calls();
    call.set_number(i);
    call.mutable_get_row()->set_dataset("alice");
    call.mutable_get_row()->set_row("r10000");
  }
  ASSERT_TRUE(stream->Write(reads));
  ASSERT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") > 16 * kMiB; }));
  // These calls are allowed, but larger than what is left of the share.
  v1::CallsRequest request;
  constexpr uint64_t kWrites = 2;
  for (uint64_t k = 0; k < kWrites; ++k) {
    v1::Call& write = *request.add_calls();
    write.set_number(100 + k);
    write.mutable_put_row()->set_dataset("alice");
    write.mutable_put_row()->set_row("r");
    for (uint64_t i = 0; i < 100'000; ++i) write.mutable_put_row()->add_cells()->set_column("c");
  }
  ASSERT_TRUE(stream->Write(request));
  // Before there is any room again.
  ASSERT_TRUE(Eventually([&] { return Metric("kvstore_calls_refused_total") > 0; }));
  uint64_t answers = 0;
  for (v1::CallsResponse response; answers < kReads + kWrites && stream->Read(&response);) {
    for (const v1::Answer& answer : response.answers()) {
      ++answers;
      if (answer.number() < 100) continue;
      EXPECT_EQ(answer.error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
      EXPECT_EQ(answer.outcome(), "refused") << "the client may make it again";
    }
  }
  EXPECT_EQ(answers, kReads + kWrites);
  EXPECT_TRUE(served_->router().GetRow("alice", "r", {})->items.empty());
  context.TryCancel();
  stream->Finish();
}

TEST_F(SharesTest, AnswersToRefusedCallsThatAreNotTakenAreCountedAndFew) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.max_bytes = 8 << 20;
  Serve(options);
  // A call of two bytes, which names no method, is refused with a long text.
  constexpr size_t kCalls = 1'000;
  constexpr uint32_t kStreams = 20;
  // Its first byte says that it is not compressed.
  std::string message = std::string(1, '\0') + http2::BigEndian(2 * kCalls, 4);
  for (size_t i = 0; i < kCalls; ++i) message += std::string_view("\x0a\x00", 2);
  {
    // With a window of zero bytes nothing of an answer can be sent.
    const testing::Connection hostile(served_->port());
    ASSERT_TRUE(hostile.Send(http2::Preface(0)));
    const auto send = [&](uint32_t stream) {
      ASSERT_TRUE(hostile.Send(http2::Frame(http2::kHeaders, http2::kEndHeaders, stream,
                                            http2::CallHeaders("/kvstore.v1.KVStore/Calls") +
                                                http2::Header("authorization", "Bearer alice")) +
                               http2::Frame(http2::kData, 0, stream, message)));
    };
    send(1);
    // It stays counted while nobody takes the answers.
    EXPECT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") > kCalls * 300; }));
    for (uint32_t i = 1; i < kStreams; ++i) send(2 * i + 1);
    EXPECT_TRUE(Eventually([&] { return Metric("kvstore_calls_refused_total") > 0; }));
    EXPECT_LE(Metric("kvstore_bytes_in_flight"), 4 * kMiB + 1000);
    EXPECT_TRUE(Get("bob").ok());
  }
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") < 1000; }));
}

/// The thread that ends stalled calls holds a lock that the end of each call takes, too (EndsElsewhere).
TEST_F(SharesTest, SingleAnswersThatAreNotTakenAreTakenBackAndOthersAreServed) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.stall_ms = 300;
  Serve(options);
  v1::GetRowRequest request;
  request.set_dataset("alice");
  request.set_row("none");
  const std::string bytes = request.SerializeAsString();
  const std::string message =
      std::string(1, '\0') + http2::BigEndian(static_cast<uint32_t>(bytes.size()), 4) + bytes;
  constexpr uint32_t kStreams = 20;
  // With a window of zero bytes nothing of an answer can be sent.
  const testing::Connection hostile(served_->port());
  std::string sent = http2::Preface(0);
  for (uint32_t i = 0; i < kStreams; ++i) {
    sent += http2::Frame(http2::kHeaders, http2::kEndHeaders, 2 * i + 1,
                         http2::CallHeaders("/kvstore.v1.KVStore/GetRow") +
                             http2::Header("authorization", "Bearer alice")) +
            http2::Frame(http2::kData, http2::kEndStream, 2 * i + 1, message);
  }
  ASSERT_TRUE(hostile.Send(sent));
  http2::Reader reader(hostile);
  http2::Reader::Received frame;
  for (uint32_t ended = 0; ended < kStreams;) {
    ASSERT_TRUE(reader.Next(frame)) << ended << " were taken back";
    if (frame.type == http2::kReset) ++ended;
  }
  // More than the server has threads, each of which has open calls of its own.
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(Get("bob").ok());
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_calls_in_flight") == 1; }));
}

TEST_F(SharesTest, AClientThatLeavesItsLargeReadsLeavesNothingBehind) {
  Serve();
  PutRows("alice", 1, 4'000'000);
  {
    grpc::ClientContext context;
    As(context, "alice");
    const auto stream = stub_->Calls(&context);
    v1::CallsRequest request;
    for (uint64_t i = 0; i < 100; ++i) {
      v1::Call& call = *request.add_calls();
      call.set_number(i);
      call.mutable_get_row()->set_dataset("alice");
      call.mutable_get_row()->set_row("r10000");
    }
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") > 16 * kMiB; }));
    context.TryCancel();
    stream->Finish();
  }
  // The call that asks for the figure is in flight itself.
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_calls_in_flight") == 1; }));
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") < 1000; }));
}

TEST_F(SharesTest, ACallerTakesHalfOfTheCalls) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.max_calls = 8;
  Serve(options);
  PutRows("alice", 20, 1'000'000);
  std::vector<std::unique_ptr<IdleScan>> scans;
  for (int i = 0; i < 20; ++i) scans.push_back(std::make_unique<IdleScan>(*stub_, "alice", "alice"));
  // Beside the call that asks for the figure.
  ASSERT_TRUE(Eventually([&] { return Metric("kvstore_calls_in_flight") == 5; }));
  EXPECT_EQ(Get("alice").error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Get("bob").ok());
  scans.clear();
  EXPECT_TRUE(Eventually([&] { return Get("alice").ok(); }));
}

TEST_F(SharesTest, ACallerTakesHalfOfTheBytesAndItsOtherScansWait) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.max_bytes = size_t{32} << 20;
  options.limits.threads = 4;
  Serve(options);
  PutRows("alice", 4, 4'000'000);
  ConnectSlowReader();
  std::vector<std::unique_ptr<IdleScan>> scans;
  // Scans that come when the half is full are refused. On a busy machine they may be all but the first ones,
  // of which none waits for room for long: then all of them begin again.
  ASSERT_TRUE(Eventually([&] {
    scans.clear();
    EXPECT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") < 1000; }));
    for (int i = 0; i < 30; ++i) scans.push_back(std::make_unique<IdleScan>(*stub_, "alice", "alice"));
    EXPECT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") > 16 * kMiB; }));
    for (int look = 0; look < 100; ++look) {
      // When a message was sent there is room for a moment, which the next scan takes.
      if (Metric("kvstore_calls_held") > 0 && Get("alice").error_code() == grpc::RESOURCE_EXHAUSTED) {
        return true;
      }
    }
    return false;
  }));
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(Get("bob").ok());
    // Its half, and the answers that the threads were making when it became full.
    EXPECT_LT(Metric("kvstore_bytes_in_flight"), 16 * kMiB + 4 * 4 * kMiB + 1 * kMiB);
  }
  // The scans bring all rows as soon as the client reads.
  const auto last = std::move(scans.back());
  const auto first = std::move(scans.front());
  scans.clear();
  for (IdleScan* scan : {first.get(), last.get()}) {
    const grpc::Status end = scan->Drain();
    // A scan that came when the half was full was refused.
    if (scan == last.get() && end.error_code() == grpc::RESOURCE_EXHAUSTED) continue;
    EXPECT_TRUE(end.ok()) << end.error_message();
    EXPECT_EQ(scan->rows, 4);
  }
}

TEST_F(SharesTest, WithoutTokensCallersAreKnownByTheirCertificates) {
  testing::Authority authority(dir_.path(), "authority");
  ServerOptions options = testing::TestServerOptions();
  const auto files = authority.Issue("server");
  options.tls = {.cert = files.cert, .key = files.key, .client_ca = authority.file()};
  options.limits.max_calls = 4;
  testing::Served served(options);
  ASSERT_OK(served.router().CreateDataset({.name = "rows"}));
  const std::string value(1'000'000, 'v');
  const CellWrite cell{"c", value, 1};
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(served.router().PutRow("rows", "r" + std::to_string(i), {&cell, 1}, {}).status());
  }
  const auto client = [&](const std::string& name, uint32_t deadline_ms) {
    const auto mine = authority.Issue(name);
    return served.Client({.tls = ClientTls{.ca = authority.file(), .cert = mine.cert, .key = mine.key},
                          .deadline_ms = deadline_ms});
  };
  const auto one = client("one.example", 10'000);
  std::vector<std::unique_ptr<RowCursor>> scans;
  while (scans.size() < 2) {
    ASSERT_OK_AND_ASSIGN(scans.emplace_back(), one->ScanRows("rows", {}, {}));
    ScannedRow row;
    ASSERT_TRUE(*scans.back()->Next(row));
  }
  const auto hasty = client("one.example", 500);
  // The last attempt may begin so late that it ends by the call's deadline.
  EXPECT_TRUE(Eventually([&] {
    const absl::Status status = hasty->GetRow("rows", "r", {}).status();
    EXPECT_FALSE(status.ok());
    return absl::IsResourceExhausted(status) && status.message().find("this one") != std::string_view::npos;
  }));
  EXPECT_OK(client("two.example", 10'000)->GetRow("rows", "r", {}).status());
}

}  // namespace
}  // namespace kvstore
