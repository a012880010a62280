#include "bench/rows/server_bench.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/thread_number.h"
#include "bench/harness/child.h"
#include "bench/harness/folder.h"
#include "echo.grpc.pb.h"
#include "kvstore_api/connect.h"

namespace kvstore::bench {
namespace {

constexpr char kDataset[] = "kv_bench_server";
constexpr size_t kValueBytes = 1024;
constexpr size_t kBatch = 100;
constexpr uint32_t kScanMessage = 256 << 10;

// ---- the bare service ----

class EchoService : public Echo::CallbackService {
 public:
  grpc::ServerUnaryReactor* Unary(grpc::CallbackServerContext* context, const EchoRequest* request,
                                  EchoResponse* response) override {
    response->set_data(Bytes(request->answer_bytes()));
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<EchoResponse>* Stream(grpc::CallbackServerContext*,
                                                 const EchoRequest* request) override {
    class Sender : public grpc::ServerWriteReactor<EchoResponse> {
     public:
      explicit Sender(const EchoRequest& asked) : left_(asked.messages()), bytes_(asked.answer_bytes()) {
        Send();
      }
      void OnWriteDone(bool ok) override {
        if (!ok) left_ = 0;
        Send();
      }
      void OnDone() override { delete this; }

     private:
      void Send() {
        if (left_ == 0) return Finish(grpc::Status::OK);
        --left_;
        message_.set_data(Bytes(bytes_));
        StartWrite(&message_);
      }
      uint32_t left_;
      const uint32_t bytes_;
      EchoResponse message_;
    };
    return new Sender(*request);
  }

 private:
  static std::string Bytes(uint32_t size) { return std::string(std::min<uint32_t>(size, 1 << 20), 'x'); }
};

/// Connects to the bare service as the real client connects to a server.
class EchoClient {
 public:
  EchoClient(const std::string& address, size_t connections) {
    for (size_t i = 0; i < connections; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs_.push_back(
          Echo::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
    }
  }
  Echo::Stub& stub() const { return *stubs_[ThreadNumber() % stubs_.size()]; }

 private:
  std::vector<std::unique_ptr<Echo::Stub>> stubs_;
};

// ---- the measurements ----

std::string RowOf(uint64_t i) { return fmt::format("user:{:08}", i); }

absl::Status Load(KVStore& store, uint64_t rows) {
  if (absl::IsNotFound(store.GetDataset(kDataset).status())) {
    if (auto status = store.CreateDataset({.name = kDataset}); !status.ok()) return status;
  }
  const std::string value(kValueBytes, 'v');
  const CellWrite cell{"value", value, 1};
  std::vector<std::string> keys;
  std::vector<RowWrite> writes;
  for (uint64_t i = 0; i < rows; ++i) keys.push_back(RowOf(i));
  for (uint64_t i = 0; i < rows; ++i) {
    writes.push_back({keys[i], {&cell, 1}, {}});
    if (writes.size() < 2'000 && i + 1 < rows) continue;
    const auto results = store.PutRows(kDataset, writes);
    if (!results.ok()) return results.status();
    for (const auto& result : *results) {
      if (!result.ok()) return result.status();
    }
    writes.clear();
  }
  return store.Compact(kDataset, nullptr).status();
}

uint64_t Scatter(uint64_t i) { return i * 0x9E3779B97F4A7C15 >> 17; }

struct Bench {
  const ServerBenchOptions& options;
  KVStore& store;
  const EchoClient& echo;
  Report& report;

  Rounds RoundsOf(uint64_t threads) const { return {options.rounds, options.seconds, threads}; }

  void Measure(const std::string& path, uint64_t threads, const Work& ours, const Work& raw) const {
    if (Wanted(options.paths, path)) report.results.push_back(Compare(path, RoundsOf(threads), ours, raw));
  }

  uint64_t EchoOnce() const {
    EchoRequest request;
    request.set_data("kv_bench_server user:00000000");
    request.set_answer_bytes(kValueBytes + 32);
    EchoResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    if (!echo.stub().Unary(&context, request, &response).ok()) Check(absl::InternalError("the echo failed"));
    return 1;
  }

  uint64_t GetOnce(uint64_t i) const {
    const auto row = store.GetRow(kDataset, RowOf(Scatter(i) % options.rows), {});
    Check(row.status());
    return row->items.size();
  }

  void Unary() const {
    for (const uint64_t clients : {1, 8, 32}) {
      Measure(
          fmt::format("get_row_1k_{}_clients", clients), clients, [&](uint64_t i) { return GetOnce(i); },
          [&](uint64_t) { return EchoOnce(); });
    }
  }

  void Batch() const {
    // The unit is a row; compared with as many single gets.
    Measure(
        fmt::format("get_rows_{}_against_single_gets", kBatch), 1,
        [&](uint64_t i) {
          std::vector<std::string> keys;
          for (uint64_t k = 0; k < kBatch; ++k) keys.push_back(RowOf(Scatter(i * kBatch + k) % options.rows));
          std::vector<RowRead> reads;
          for (const std::string& key : keys) reads.push_back({key, {}});
          const auto rows = store.GetRows(kDataset, reads);
          Check(rows.status());
          return uint64_t{rows->size()};
        },
        [&](uint64_t i) { return GetOnce(i); });
  }

  void Scan() const {
    // The unit is a byte of values.
    Measure(
        "scan_bytes", 1,
        [&](uint64_t) {
          auto cursor = store.ScanRows(kDataset, {}, {});
          Check(cursor.status());
          uint64_t bytes = 0;
          ScannedRow row;
          for (;;) {
            const auto more = (*cursor)->Next(row);
            Check(more.status());
            if (!*more) return bytes;
            bytes += row.items[0].cells[0].value.size();
          }
        },
        [&](uint64_t) {
          EchoRequest request;
          request.set_answer_bytes(kScanMessage);
          request.set_messages(static_cast<uint32_t>(options.rows * kValueBytes / kScanMessage));
          grpc::ClientContext context;
          const auto stream = echo.stub().Stream(&context, request);
          uint64_t bytes = 0;
          for (EchoResponse response; stream->Read(&response);) bytes += response.data().size();
          if (!stream->Finish().ok()) Check(absl::InternalError("the echo failed"));
          return bytes;
        });
  }
};

}  // namespace

void RunEchoServer() {
  EchoService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  fmt::print("127.0.0.1:{}\n", port);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

absl::StatusOr<Report> BenchServer(const ServerBenchOptions& options) {
  const auto folder = Folder::Make();
  if (!folder.ok()) return folder.status();
  auto echo = Child::Start("kv-bench", {"echo-server"});
  if (!echo.ok()) return echo.status();
  std::optional<Child> server;
  std::string address = options.address;
  if (address.empty()) {
    auto started = Child::Start(
        "kv", {"--data", (folder->path() / "store").string(), "serve", "--listen", "127.0.0.1:0"});
    if (!started.ok()) return started.status();
    server.emplace(*std::move(started));
    address = server->first_line().substr(server->first_line().rfind(' ') + 1);
  }
  Report report{.workload = "server", .backend = options.address.empty() ? "rocksdb" : "server"};
  DescribeMachine(report);
  report.settings = {
      {"rows", options.rows}, {"value_bytes", kValueBytes}, {"connections", options.connection.connections}};
  if (server) {
    report.figures.emplace_back("idle server, resident MiB",
                                static_cast<double>(server->ResidentBytes()) / (1 << 20));
  }
  ConnectOptions connection = options.connection;
  connection.deadline_ms = 60'000;
  auto store = Connect(address, connection);
  if (!store.ok()) return store.status();
  if (auto status = Load(**store, options.rows); !status.ok()) return status;
  const EchoClient client(echo->first_line(), connection.connections);
  const Bench bench{options, **store, client, report};
  bench.Unary();
  bench.Batch();
  bench.Scan();
  if (auto status = (*store)->DropDataset(kDataset, {}); !status.ok()) return status;
  return report;
}

}  // namespace kvstore::bench
