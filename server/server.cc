#include "server/server.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "server/address.h"
#include "server/grpc/acceptor.h"
#include "server/grpc/counted_contexts.h"
#include "server/grpc/grpc_log.h"
#include "server/grpc/health.h"
#include "server/grpc/service.h"
#include "server/grpc/unknown_methods.h"
#include "server/grpc/waker.h"
#include "server/http/http.h"
#include "server/http/http_api.h"
#include "server/resp/resp_server.h"
#include "server/tls/certificates.h"
#include "wire/convert.h"

namespace kvstore {
namespace {

using server::Access;
using server::Core;
using server::HttpApi;
using server::HttpServer;
using server::RespServer;

/// How often the list of tokens is read again, stalled calls are cancelled, and threads woken (Waker).
constexpr std::chrono::milliseconds kTick{500};
/// How long the last answers may take to be sent when all calls have ended.
constexpr std::chrono::milliseconds kLastAnswers{50};
/// How many calls one connection may have at a time; clients with more use more connections.
constexpr int kMaxStreams = 256;
/// A connection without calls is closed after so long; clients connect again when they have one.
constexpr int kMaxIdleMs = 300'000;

void Configure(grpc::ServerBuilder& builder, const ServerOptions& options) {
  builder.SetMaxReceiveMessageSize(wire::kMaxRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  // No pings to estimate the network's bandwidth; instead the window is large enough for imports.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 256 << 10);
  // gRPC's statistics of channels, compression of answers, and deadline timers beside our own limits cost
  // something in each call, and nothing here uses them.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  // A compressed message could be small and become a large one, before its size is checked and its sender
  // authenticated.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
  // Closes connections whose clients do not speak HTTP/2 within the timeout, or vanished without closing
  // them.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  // Limits what gRPC buffers of all sockets together before it becomes a request that Admission counts.
  grpc::ResourceQuota quota("kvstore");
  quota.Resize(options.limits.max_bytes * 2);
  builder.SetResourceQuota(quota);
}

/// Leaves out the plugins that gRPC adds to all servers of a process; the only one is reflection.
class WithoutPlugins : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->clear();
  }
};

}  // namespace

class Server::Impl {
 public:
  Impl(Router& router, const ServerOptions& options, std::unique_ptr<Access> access, ServerParts parts)
      : core_(router, options, std::move(access), Described(std::move(parts))),
        service_(core_),
        unknown_methods_(core_),
        health_([this] { return !core_.draining.load(); },
                [this](const std::string& peer) { core_.connections.StrangerCalled(peer); },
                core_.stranger_probes) {}

  ~Impl() {
    Stop(std::chrono::milliseconds(0));
    http_api_.reset();
    http_.reset();
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    wanted_.notify_all();
    if (janitor_.joinable()) janitor_.join();
  }

  absl::Status Start() {
    if (!core_.options.tls.cert.empty()) {
      auto certificates = server::Certificates::Open(core_.options.tls);
      if (!certificates.ok()) return certificates.status();
      certificates_ = *std::move(certificates);
    }
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    Configure(builder, core_.options);
    std::vector<std::string> all = core_.options.listen;
    if (!core_.options.resp.empty()) all.push_back(core_.options.resp);
    if (auto status = server::CheckNotTaken(all); !status.ok()) return status;
    if (!core_.access->open_to_all()) {
      // Reflection reads requests of any size before anybody is authenticated, so strangers must not reach
      // it.
      builder.SetOption(std::make_unique<WithoutPlugins>());
      builder.RegisterCallbackGenericService(&unknown_methods_);
      builder.SetContextAllocator(std::make_unique<server::CountedContexts>(core_.connections));
    }
    auto acceptor = server::Acceptor::Listen(core_.options.listen);
    if (!acceptor.ok()) return acceptor.status();
    auto connections = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        certificates_ ? certificates_->grpc() : grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    builder.RegisterService(&health_);
    grpc_ = builder.BuildAndStart();
    if (!grpc_) return absl::UnavailableError("gRPC cannot serve");
    acceptor_ = *std::move(acceptor);
    if (auto status = StartResp(); !status.ok()) return status;
    acceptor_->Start([this, given = std::shared_ptr(std::move(connections))](int listener, int connection) {
      // Where everybody may do everything there are no strangers.
      if (!core_.access->open_to_all()) core_.connections.Accepted(connection);
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.listener_fd = listener;
      parameters.fd = connection;
      given->HandleNewConnection(&parameters);
    });
    if (!core_.options.http.empty()) {
      auto http = HttpServer::Start(
          core_.options.http,
          {.metrics = [this] { return core_.metrics.Text(); },
           .ready = [this] { return !core_.draining.load() && core_.router.CheckWrites().ok(); }});
      if (!http.ok()) return http.status();
      http_ = *std::move(http);
    }
    if (!core_.options.http_api.empty()) {
      auto http_api = HttpApi::Start(core_, certificates_.get());
      if (!http_api.ok()) return http_api.status();
      http_api_ = *std::move(http_api);
    }
    janitor_ = std::thread([this] { Watch(); });
    return absl::OkStatus();
  }

  void Stop(std::chrono::milliseconds patience) {
    if (!grpc_ || std::exchange(stopped_, true)) return;
    core_.draining = true;
    core_.open.Drain();
    if (resp_) resp_->Drain();
    if (http_api_) http_api_->Drain();
    // Shutdown with this deadline would also wait for clients that have a connection and no call.
    const auto until = std::chrono::steady_clock::now() + patience;
    const auto is_busy = [this] { return core_.admission.calls() > 0 || (resp_ && resp_->HasConnections()); };
    while (is_busy() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (http_api_) http_api_->Stop();
    acceptor_->Stop();
    if (resp_acceptor_) resp_acceptor_->Stop();
    const auto last = patience.count() > 0 ? kLastAnswers : patience;
    grpc_->Shutdown(std::chrono::system_clock::now() + last);
    if (resp_) resp_->Stop(last);
    grpc_->Wait();
  }

  std::string OpenCalls() {
    constexpr size_t kMost = 10;
    return fmt::format("{} calls: {}", core_.admission.calls(), fmt::join(core_.open.Describe(kMost), ", "));
  }

  const Core& core() const { return core_; }
  const std::vector<std::string>& addresses() const { return acceptor_->addresses(); }
  int http_port() const { return http_ ? http_->port() : 0; }
  std::string resp_address() const { return resp_acceptor_ ? resp_acceptor_->addresses().front() : ""; }
  int http_api_port() const { return http_api_ ? http_api_->port() : 0; }

 private:
  /// Adds the figures of the Redis protocol to those of other parts.
  ServerParts Described(ServerParts parts) {
    parts.describe = [this, others = std::move(parts.describe)](MetricsSink& sink) {
      if (others) others(sink);
      if (resp_) resp_->Describe(sink);
      if (certificates_) DescribeCertificate(sink);
    };
    return parts;
  }

  void DescribeCertificate(MetricsSink& sink) const {
    const auto expires = certificates_->expires().time_since_epoch();
    sink.Gauge("kvstore_tls_certificate_expires_seconds",
               "When the server's certificate expires, as Unix time", {},
               static_cast<double>(std::chrono::duration_cast<std::chrono::seconds>(expires).count()));
  }

  /// Serves the Redis protocol, if that is wanted.
  absl::Status StartResp() {
    if (core_.options.resp.empty()) return absl::OkStatus();
    auto acceptor = server::Acceptor::Listen({core_.options.resp});
    if (!acceptor.ok()) return acceptor.status();
    resp_ = std::make_unique<RespServer>(core_, certificates_.get());
    resp_acceptor_ = *std::move(acceptor);
    resp_acceptor_->Start([this](int /*listener*/, int connection) { resp_->Serve(connection); });
    return absl::OkStatus();
  }

  void Watch() {
    MutexLock lock(mutex_);
    while (!stopping_) {
      lock.WaitUntil(wanted_, std::chrono::steady_clock::now() + kTick);
      lock.Unlock();
      waker_.Wake();
      core_.access->Refresh();
      if (certificates_) certificates_->Refresh();
      core_.open.CancelStalled(std::chrono::steady_clock::now() -
                               std::chrono::milliseconds(core_.options.limits.stall_ms));
      core_.stranger_probes.CancelOld();
      core_.caller_probes.CancelOld();
      core_.metrics_calls.CancelOld();
      core_.history.Advance(std::chrono::system_clock::now());
      lock.Lock();
    }
  }

  Core core_;
  std::unique_ptr<server::Certificates> certificates_;  // null: connections are not encrypted
  server::Service service_;
  server::UnknownMethods unknown_methods_;
  server::HealthService health_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<server::Acceptor> acceptor_;
  server::Waker waker_;
  std::unique_ptr<RespServer> resp_;
  std::unique_ptr<server::Acceptor> resp_acceptor_;  // hands connections to resp_
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<HttpApi> http_api_;
  bool stopped_ = false;
  Mutex mutex_;
  std::condition_variable wanted_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread janitor_;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Router& router, const ServerOptions& options,
                                                      ServerParts parts) {
  if (auto status = server::CheckAddresses(options); !status.ok()) return status;
  // protobuf must not log messages that do not decode: their senders are told, and the log of calls, which is
  // limited, has them.
  google::protobuf::SetLogHandler(nullptr);
  server::LimitGrpcLog();
  auto access = Access::Open(options.tokens);
  if (!access.ok()) return access.status();
  auto impl = std::make_unique<Impl>(router, options, *std::move(access), std::move(parts));
  if (auto status = impl->Start(); !status.ok()) return status;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

void Server::Drain() { impl_->Stop(std::chrono::milliseconds(impl_->core().options.limits.drain_ms)); }
std::string Server::OpenCalls() const { return impl_->OpenCalls(); }
const std::vector<std::string>& Server::addresses() const { return impl_->addresses(); }
int Server::http_port() const { return impl_->http_port(); }
std::string Server::resp_address() const { return impl_->resp_address(); }
int Server::http_api_port() const { return impl_->http_api_port(); }

}  // namespace kvstore
