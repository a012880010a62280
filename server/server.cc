#include "server/server.h"

#include <fmt/format.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/files.h"
#include "server/address.h"
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
  builder.AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
  // Two servers on one port would each get a part of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Who does not speak HTTP/2 soon is shown out; who is gone without a word is found out.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  // What is read from all sockets together, before it is a request of ours.
  grpc::ResourceQuota quota("kvstore");
  quota.Resize(options.limits.max_bytes * 2);
  builder.SetResourceQuota(quota);
}

}  // namespace

class Server::Impl {
 public:
  Impl(Router& router, Migrations* migrations, const ServerOptions& options, std::unique_ptr<Access> access)
      : core_(router, migrations, options, std::move(access)), service_(core_), endpoints_(core_) {}

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
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    Configure(builder, core_.options);
    const std::vector<std::string>& listen = core_.options.listen;
    if (auto status = server::CheckNotTaken(listen); !status.ok()) return status;
    std::vector<int> ports(listen.size(), 0);
    for (size_t i = 0; i < listen.size(); ++i) {
      builder.AddListeningPort(listen[i], *credentials, &ports[i]);
    }
    builder.RegisterService(&service_);
    builder.RegisterService(&endpoints_);
    grpc_ = builder.BuildAndStart();
    for (size_t i = 0; i < listen.size(); ++i) {
      const bool unix = listen[i].starts_with("unix:");
      if (!grpc_ || (ports[i] == 0 && !unix)) {
        return absl::UnavailableError(
            fmt::format("cannot listen on {}: the port is in use, or the address is not this machine's",
                        fmt::join(listen, ", ")));
      }
      addresses_.push_back(unix ? listen[i]
                                : fmt::format("{}:{}", listen[i].substr(0, listen[i].rfind(':')), ports[i]));
    }
    if (!core_.options.http.empty()) {
      auto http = HttpServer::Start(core_.options.http, {.metrics = [this] { return core_.metrics.Text(); },
                                                         .ready = [this] { return !core_.draining.load(); }});
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
    grpc_->GetHealthCheckService()->SetServingStatus(false);
    // gRPC's own patience would also wait for clients that have a connection and no call.
    const auto until = std::chrono::steady_clock::now() + patience;
    while (core_.admission.calls() > 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    grpc_->Shutdown(std::chrono::system_clock::now() + (patience.count() > 0 ? kLastAnswers : patience));
    grpc_->Wait();
  }

  const Core& core() const { return core_; }
  const std::vector<std::string>& addresses() const { return addresses_; }
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
      lock.lock();
    }
  }

  Core core_;
  server::Service service_;
  server::EndpointService endpoints_;
  std::unique_ptr<grpc::Server> grpc_;
  server::Waker waker_;
  std::unique_ptr<HttpServer> http_;
  std::vector<std::string> addresses_;
  bool stopped_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wanted_;
  bool stopping_ = false;
  std::thread janitor_;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Router& router, const ServerOptions& options,
                                                      Migrations* migrations) {
  if (auto status = server::CheckAddresses(options); !status.ok()) return status;
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
