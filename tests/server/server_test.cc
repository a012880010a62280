#include "server/server.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "kvstore/v1/kvstore.grpc.pb.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "server/call/access.h"
#include "server/call/operation.h"
#include "tests/server/drained_writers.h"
#include "tests/server/server_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// A server with friendly clients, and with others.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::FailsWith;
using testing::PutCell;
using testing::ServerTest;
using testing::Stub;
using testing::TempDir;
using testing::TestServerOptions;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

/// A bare TCP connection; -1 if there is none.
int Dial(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = testing::Loopback(port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  ::close(fd);
  return -1;
}

TEST(Operations, AreTheMethodsOfTheProtocolInItsOrder) {
  size_t next = 0;
  for (const char* name : {"kvstore.v1.KVStore", "kvstore.v1.Reports", "kvstore.v1.Shards"}) {
    const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    ASSERT_NE(service, nullptr) << name;
    for (int i = 0; i < service->method_count(); ++i, ++next) {
      ASSERT_LT(next, server::kOperations.size());
      EXPECT_EQ(service->method(i)->name(), server::kOperations[next].name);
      EXPECT_EQ(server::IsOnReports(static_cast<server::Operation>(next)), service->name() == "Reports")
          << service->method(i)->name();
      EXPECT_EQ(server::IsOnShards(static_cast<server::Operation>(next)), service->name() == "Shards")
          << service->method(i)->name();
    }
  }
  // Behind them are one for all of endpoint.proto, and those of the HTTP API alone.
  EXPECT_EQ(next, static_cast<size_t>(server::Operation::kEndpoint));
}

// ---- limits of messages and pages ----

TEST_F(ServerTest, TheLargestPutPassesAndComesBackInPages) {
  Serve();
  const std::string value(kMaxValueBytes - 100, 'v');
  const std::vector<CellWrite> cells = {{"a", value, 1}, {"b", value, 1}};
  ASSERT_OK(store_->PutRow("rows", "r", cells, {}));
  ASSERT_OK_AND_ASSIGN(const Row first, store_->GetRow("rows", "r", {}));
  ASSERT_EQ(first.items.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const Row second, store_->GetRow("rows", "r", {.marker = first.marker}));
  ASSERT_EQ(second.items.size(), 1u);
  EXPECT_EQ(second.items[0].cells[0].value, value);
  EXPECT_TRUE(second.marker.empty());
  const std::string too_large(kMaxValueBytes + 1, 'v');
  EXPECT_THAT(PutCell(*store_, "r", too_large), FailsWith(absl::StatusCode::kInvalidArgument, "4194304"));
}

TEST_F(ServerTest, ManyTinyCellsDoNotOutgrowAMessage) {
  Serve();
  ASSERT_OK(store_->CreateDataset({.name = "tiny", .max_versions = 0}));
  std::vector<CellWrite> cells;
  for (uint64_t t = 0; t < 50'000; ++t) cells.push_back({"c", "", t});
  for (const char* column : {"a", "b", "c"}) {
    for (CellWrite& cell : cells) cell.column = column;
    ASSERT_OK(store_->PutRow("tiny", "r", cells, {}));
  }
  const ReadOptions all{.versions = UINT32_MAX, .max_bytes = kMaxPageBytes};
  ASSERT_OK_AND_ASSIGN(Row page, store_->GetRow("tiny", "r", all));
  size_t count = 0;
  for (const Item& item : page.items) count += item.cells.size();
  EXPECT_EQ(count, kMaxPageCells);
  EXPECT_FALSE(page.marker.empty());
}

TEST_F(ServerTest, LargeBatchesAreCutIntoMessages) {
  Serve();
  const std::string value(100'000, 'v');
  const CellWrite cell{"c", value, 1};
  std::vector<std::string> keys;
  for (int i = 0; i < 400; ++i) keys.push_back("r" + std::to_string(1000 + i));
  std::vector<RowWrite> writes;
  std::vector<RowRead> reads;
  std::vector<RowDelete> deletes;
  for (const std::string& key : keys) {
    writes.push_back({key, {&cell, 1}, {}});
    reads.push_back({key, {}});
    deletes.push_back({key, {}});
  }
  writes[7].row = "";  // invalid
  ASSERT_OK_AND_ASSIGN(const auto put, store_->PutRows("rows", writes));
  ASSERT_EQ(put.size(), 400u);
  for (size_t i = 0; i < put.size(); ++i) EXPECT_EQ(put[i].ok(), i != 7) << i;
  ASSERT_OK_AND_ASSIGN(const auto got, store_->GetRows("rows", reads));
  ASSERT_EQ(got.size(), 400u);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i]->items.size(), i == 7 ? 0u : 1u) << i;
  size_t scanned = 0;
  ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("rows", {}, {}));
  for (ScannedRow row; *cursor->Next(row);) ++scanned;
  EXPECT_EQ(scanned, 399u);
  ASSERT_OK_AND_ASSIGN(const auto deleted, store_->DeleteRows("rows", deletes));
  EXPECT_EQ(deleted.size(), 400u);
  EXPECT_TRUE(store_->GetRow("rows", "r1000", {})->items.empty());
}

TEST_F(ServerTest, JoinedPagesAreBoundedInBytes) {
  Serve();
  ASSERT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  ASSERT_OK(store_->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  const std::string data = R"({"t":")" + std::string(1 << 20, 'x') + R"("})";
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, store_->CreateObject("pins", data, {}));
    ASSERT_OK(store_->AddMapping("boards", 1, id, i));
  }
  std::vector<uint64_t> sequences;
  MappingListOptions options;
  do {
    ASSERT_OK_AND_ASSIGN(const JoinedPage page, store_->ListObjects("boards", 1, options));
    EXPECT_LE(page.objects.size(), 3u);
    for (const JoinedObject& joined : page.objects) {
      EXPECT_OK(joined.object);
      sequences.push_back(joined.entry.sequence);
    }
    options.marker = page.marker;
  } while (!options.marker.empty());
  EXPECT_EQ(sequences, (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(ServerTest, AnOversizedMessageIsRefusedAndOthersAreServed) {
  Serve();
  v1::PutRowRequest request;
  request.set_dataset("rows");
  request.set_row("r");
  request.add_cells()->set_value(std::string(21 << 20, 'x'));
  v1::PutRowResponse response;
  grpc::ClientContext context;
  const grpc::Status status = Stub(served_->address())->PutRow(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_OK(PutCell(*store_, "r", "v"));
}

// ---- deadlines, cancellation, limits of load ----

TEST_F(ServerTest, DeadlinesReachTheStore) {
  Serve();
  const CallScope scope(std::chrono::nanoseconds(1));
  EXPECT_THAT(store_->GetRow("rows", "r", {}), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(PutCell(*store_, "r", "v"), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(served_->router().GetRow("rows", "r", {}), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
}

TEST_F(ServerTest, BeyondItsLimitTheServerTurnsCallsAwayAndTheClientComesBack) {
  ServerOptions options = TestServerOptions();
  options.limits.max_calls = 1;
  Serve(options);
  for (int i = 0; i < 3000; ++i)
    ASSERT_OK(PutCell(served_->router(), "r" + std::to_string(i), std::string(4000, 'v')));
  // A stream whose client does not read occupies the only place.
  const auto stub = Stub(served_->address());
  auto context = std::make_unique<grpc::ClientContext>();
  v1::ScanRowsRequest request;
  request.set_dataset("rows");
  auto stream = stub->ScanRows(context.get(), request);
  v1::ScanRowsResponse message;
  ASSERT_TRUE(stream->Read(&message));
  // If its deadline passes while it tries once more, the client says that.
  EXPECT_TRUE(Eventually([&] {
    const CallScope scope(std::chrono::milliseconds(200));
    const absl::Status status = store_->GetRow("rows", "r", {}).status();
    EXPECT_FALSE(status.ok());
    return absl::IsResourceExhausted(status) &&
           status.message().find("too many calls") != absl::string_view::npos;
  }));
  // The operator who is paged for it can see it.
  EXPECT_GT(served_->Metric("kvstore_calls_refused_total"), 0);
  std::thread frees([&] {
    EXPECT_TRUE(Eventually([&] {
      grpc::ClientContext mine;
      v1::GetRowRequest get;
      get.set_dataset("rows");
      get.set_row("r");
      v1::GetRowResponse got;
      return stub->GetRow(&mine, get, &got).error_code() == grpc::RESOURCE_EXHAUSTED;
    }));
    context->TryCancel();
    stream->Finish();
  });
  // The client retries until there is a place.
  EXPECT_OK(store_->GetRow("rows", "r", {}));
  frees.join();
}

TEST_F(ServerTest, AStreamThatNobodyReadsIsEndedAndHoldsLittle) {
  ServerOptions options = TestServerOptions();
  options.limits.stall_ms = 2'000;
  Serve(options);
  for (int i = 0; i < 3000; ++i)
    ASSERT_OK(PutCell(served_->router(), "r" + std::to_string(i), std::string(8000, 'v')));
  const auto stub = Stub(served_->address());
  grpc::ClientContext context;
  v1::ScanRowsRequest request;
  request.set_dataset("rows");
  const auto stream = stub->ScanRows(&context, request);
  v1::ScanRowsResponse message;
  ASSERT_TRUE(stream->Read(&message));
  const double bytes = served_->Metric("kvstore_bytes_in_flight");
  EXPECT_GE(bytes, 0);
  EXPECT_LT(bytes, 2 << 20);
  // The call that asks for the figure is in flight itself.
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_in_flight") == 1; }));
  EXPECT_OK(store_->GetRow("rows", "r0", {}));
  while (stream->Read(&message)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::CANCELLED);
}

TEST_F(ServerTest, CancelledCallsLeaveNothingBehind) {
  Serve();
  for (int i = 0; i < 2000; ++i)
    ASSERT_OK(PutCell(served_->router(), "r" + std::to_string(i), std::string(4000, 'v')));
  const auto stub = Stub(served_->address());
  for (int i = 0; i < 200; ++i) {
    grpc::ClientContext context;
    v1::ScanRowsRequest request;
    request.set_dataset("rows");
    const auto stream = stub->ScanRows(&context, request);
    v1::ScanRowsResponse message;
    if (i % 3 != 0) stream->Read(&message);
    context.TryCancel();
    stream->Finish();
  }
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_in_flight") == 1; }));
}

// ---- strangers ----

TEST_F(ServerTest, GarbageOnThePortHarmsNobody) {
  Serve();
  testing::Random random(testing::Seed("garbage"));
  for (int i = 0; i < 200; ++i) {
    const int fd = Dial(served_->port());
    ASSERT_GE(fd, 0);
    std::string bytes = i % 2 == 0 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "";
    for (uint64_t n = random.Below(2000); n > 0; --n) bytes.push_back(static_cast<char>(random.Below(256)));
    ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::close(fd);
  }
  EXPECT_OK(PutCell(*store_, "r", "v"));
}

TEST_F(ServerTest, HalfOpenConnectionsHarmNobody) {
  Serve();
  std::vector<int> silent;
  for (int i = 0; i < 500; ++i) silent.push_back(Dial(served_->port()));
  EXPECT_OK(PutCell(*store_, "r", "v"));
  EXPECT_OK(served_->Client()->GetRow("rows", "r", {}));
  for (const int fd : silent) ::close(fd);
}

// ---- the end ----

TEST_F(ServerTest, DrainingEndsWhatIsOpenAndTurnsAwayWhatIsNew) {
  Serve();
  std::vector<std::unique_ptr<KVStore>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(served_->Client({.deadline_ms = 500}));
  testing::DrainedWriters writers(*served_);
  for (const auto& client : clients) writers.Start(*client);
  writers.ExpectThatNothingIsLost(10);
  const CallScope scope(std::chrono::milliseconds(100));
  EXPECT_FALSE(served_->Client()->GetRow("rows", "r", {}).ok());
}

// ---- pages for monitoring ----

TEST_F(ServerTest, FiguresTellWhatTheProcessTakes) {
  Serve();
  const double memory = served_->Metric("process_resident_memory_bytes");
  EXPECT_GT(memory, 1 << 20);
  EXPECT_LT(memory, 1e12);
  EXPECT_GT(served_->Metric("process_cpu_seconds_total"), 0);
  const double open = served_->Metric("process_open_fds");
  EXPECT_GT(open, 3);
  EXPECT_LE(open, served_->Metric("process_max_fds"));
}

/// Returns the whole answer to a GET, with its headers.
std::string Fetch(int port, const std::string& path) {
  const int fd = Dial(static_cast<uint16_t>(port));
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
    answer.append(buffer.data(), static_cast<size_t>(n));
  }
  ::close(fd);
  return answer;
}

TEST_F(ServerTest, FiguresAndHealthAreServedByHttp) {
  ServerOptions options = TestServerOptions();
  options.http = "127.0.0.1:0";
  Serve(options);
  ASSERT_OK(PutCell(*store_, "r", "v"));
  EXPECT_EQ(store_->GetRow("none", "r", {}).status().code(), absl::StatusCode::kNotFound);
  const int port = served_->server().http_port();
  const std::string metrics = Fetch(port, "/metrics");
  for (const char* line :
       {"HTTP/1.1 200",
        "kvstore_call_seconds_count{backend=\"rocksdb\",door=\"grpc\",operation=\"PutRow\"} 1\n",
        "kvstore_call_errors_total{backend=\"\",code=\"NOT_FOUND\",door=\"grpc\",operation=\"GetRow\"} 1\n",
        "kvstore_datasets 1\n", "# TYPE kvstore_rocksdb_written_bytes_total counter\n",
        "# TYPE kvstore_calls_in_flight gauge\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << " is not in\n" << metrics;
  }
  EXPECT_EQ(Fetch(port, "/healthz").substr(0, 12), "HTTP/1.1 200");
  EXPECT_EQ(Fetch(port, "/readyz").substr(0, 12), "HTTP/1.1 200");
  EXPECT_EQ(Fetch(port, "/etc/passwd").substr(0, 12), "HTTP/1.1 404");
  served_->server().Drain();
  EXPECT_EQ(Fetch(port, "/healthz").substr(0, 12), "HTTP/1.1 200");
  EXPECT_EQ(Fetch(port, "/readyz").substr(0, 12), "HTTP/1.1 503");
}

TEST_F(ServerTest, TheHealthCheckOfGrpcIsAnswered) {
  Serve();
  const auto channel = grpc::CreateChannel(served_->address(), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  // An empty message asks about the server as a whole.
  const grpc::Slice nothing("");
  const grpc::ByteBuffer request(&nothing, 1);
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, &queue);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice slice;
  ASSERT_TRUE(answer.DumpToSingleSlice(&slice).ok());
  // Field 1, SERVING = 1.
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(slice.begin()), slice.size()), "\x08\x01");
}

TEST_F(ServerTest, AnAddressInUseIsAnError) {
  Serve();
  ServerOptions options;
  options.listen = {served_->address()};
  EXPECT_THAT(Server::Start(served_->router(), options), FailsWith(kUnavailable, served_->address()));
}

TEST_F(ServerTest, AUnixSocketServes) {
  const TempDir dir;
  ServerOptions options;
  options.listen = {"unix:" + (dir / "s").string(), "127.0.0.1:0"};
  Serve(options);
  ASSERT_OK_AND_ASSIGN(const auto store, Connect(options.listen[0]));
  EXPECT_OK(PutCell(*store, "r", "v"));
}

}  // namespace
}  // namespace kvstore
