#include "server/server.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/files.h"
#include "server/acceptor.h"
#include "server/address.h"
#include "server/health.h"
#include "server/http.h"
#include "server/service.h"
#include "server/waker.h"
#include "wire/convert.h"

namespace kvstore {
namespace {

using server::Access;
using server::Core;
using server::HttpServer;

/// How often files that may change, and calls that may hang, are looked at, and threads woken (Waker).
constexpr std::chrono::milliseconds kTick{500};
/// When all calls have ended their answers are still on their way.
constexpr std::chrono::milliseconds kLastAnswers{50};
/// Calls of one connection at a time; clients with more use more connections.
constexpr int kMaxStreams = 256;
/// A connection that has no calls for so long is ended; clients connect again when they have one.
constexpr int kMaxIdleMs = 300'000;

absl::StatusOr<std::string> ReadPem(std::string_view field, const std::filesystem::path& file) {
  auto text = ReadFile(file);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      fmt::format("server.tls.{}: {}", field, std::string(text.status().message())));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(const ServerTls& tls) {
  if (tls.cert.empty()) return grpc::InsecureServerCredentials();
  const auto cert = ReadPem("cert", tls.cert);
  if (!cert.ok()) return cert.status();
  const auto key = ReadPem("key", tls.key);
  if (!key.ok()) return key.status();
  grpc::SslServerCredentialsOptions options;
  if (!tls.client_ca.empty()) {
    const auto ca = ReadPem("client_ca", tls.client_ca);
    if (!ca.ok()) return ca.status();
    options = grpc::SslServerCredentialsOptions(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = *ca;
  }
  options.pem_key_cert_pairs.push_back({*key, *cert});
  return grpc::SslServerCredentials(options);
}

void Configure(grpc::ServerBuilder& builder, const ServerOptions& options) {
  builder.SetMaxReceiveMessageSize(wire::kMaxRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  // No pings that estimate the network's bandwidth; a window that is large enough for imports instead.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 256 << 10);
  // What gRPC does for each call and nobody here asks for: statistics of channels, compression of answers, a
  // timer of its own beside the call's limits.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  // A small message could be made a large one, before anybody has looked at its size or asked who sends it.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
  // Who does not speak HTTP/2 soon is shown out; who is gone without a word is found out.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  // What is read from all sockets together, before it is a request of ours.
  grpc::ResourceQuota quota("kvstore");
  quota.Resize(options.limits.max_bytes * 2);
  builder.SetResourceQuota(quota);
}

/// Leaves out what gRPC adds to all servers of a process, which is reflection.
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
  Impl(Router& router, Migrations* migrations, const ServerOptions& options, std::unique_ptr<Access> access)
      : core_(router, migrations, options, std::move(access)),
        service_(core_),
        health_([this] { return !core_.draining.load(); }, core_.anonymous) {}

  ~Impl() {
    Stop(std::chrono::milliseconds(0));
    http_.reset();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wanted_.notify_all();
    if (janitor_.joinable()) janitor_.join();
  }

  absl::Status Start() {
    const auto credentials = Credentials(core_.options.tls);
    if (!credentials.ok()) return credentials.status();
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    Configure(builder, core_.options);
    if (auto status = server::CheckNotTaken(core_.options.listen); !status.ok()) return status;
    // Reflection reads what anybody sends, as large as it may be: not that of strangers.
    if (!core_.access->open_to_all()) builder.SetOption(std::make_unique<WithoutPlugins>());
    auto acceptor = server::Acceptor::Listen(core_.options.listen);
    if (!acceptor.ok()) return acceptor.status();
    auto connections = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, *credentials);
    builder.RegisterService(&service_);
    builder.RegisterService(&health_);
    grpc_ = builder.BuildAndStart();
    if (!grpc_) return absl::UnavailableError("gRPC cannot serve with these certificates");
    acceptor_ = *std::move(acceptor);
    acceptor_->Start([given = std::shared_ptr(std::move(connections))](int listener, int connection) {
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
    janitor_ = std::thread([this] { Watch(); });
    return absl::OkStatus();
  }

  void Stop(std::chrono::milliseconds patience) {
    if (!grpc_ || std::exchange(stopped_, true)) return;
    core_.draining = true;
    core_.open.Drain();
    // gRPC's own patience would also wait for clients that have a connection and no call.
    const auto until = std::chrono::steady_clock::now() + patience;
    while (core_.admission.calls() > 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    acceptor_->Stop();
    grpc_->Shutdown(std::chrono::system_clock::now() + (patience.count() > 0 ? kLastAnswers : patience));
    grpc_->Wait();
  }

  const Core& core() const { return core_; }
  const std::vector<std::string>& addresses() const { return acceptor_->addresses(); }
  int http_port() const { return http_ ? http_->port() : 0; }

 private:
  void Watch() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      wanted_.wait_for(lock, kTick);
      lock.unlock();
      waker_.Wake();
      core_.access->Refresh();
      core_.open.CancelStalled(std::chrono::steady_clock::now() -
                               std::chrono::milliseconds(core_.options.limits.stall_ms));
      core_.anonymous.CancelOld();
      core_.greetings.CancelOld();
      core_.figures.CancelOld();
      lock.lock();
    }
  }

  Core core_;
  server::Service service_;
  server::HealthService health_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<server::Acceptor> acceptor_;
  server::Waker waker_;
  std::unique_ptr<HttpServer> http_;
  bool stopped_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wanted_;
  bool stopping_ = false;
  std::thread janitor_;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Router& router, const ServerOptions& options,
                                                      Migrations* migrations) {
  if (auto status = server::CheckAddresses(options); !status.ok()) return status;
  // What does not decode is told to who sent it, and by the log of calls, which has a limit.
  google::protobuf::SetLogHandler(nullptr);
  auto access = Access::Open(options.tokens);
  if (!access.ok()) return access.status();
  auto impl = std::make_unique<Impl>(router, migrations, options, *std::move(access));
  if (auto status = impl->Start(); !status.ok()) return status;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

void Server::Drain() { impl_->Stop(std::chrono::milliseconds(impl_->core().options.limits.drain_ms)); }
const std::vector<std::string>& Server::addresses() const { return impl_->addresses(); }
int Server::http_port() const { return impl_->http_port(); }

}  // namespace kvstore
