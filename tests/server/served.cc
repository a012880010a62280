#include "tests/server/served.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <stdexcept>
#include <utility>

#include "assembly/open_router.h"
#include "kvstore/v1/kvstore.grpc.pb.h"

namespace kvstore::testing {
namespace {

template <typename T>
T OrThrow(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

}  // namespace

ServerOptions TestServerOptions() {
  // gRPC ends with the last server or connection, for which 1.51 may take ten seconds: it waits for a thread
  // that polls. So it does not end before the process.
  static const bool stays = (grpc_init(), true);
  static_cast<void>(stays);
  ServerOptions options;
  options.listen = {"127.0.0.1:0"};
  return options;
}

Served::Served(const ServerOptions& options, ServerParts parts)
    : router_(OrThrow(OpenRouter({.data = dir_ / "store"}))),
      options_(options),
      parts_(std::move(parts)),
      server_(OrThrow(Server::Start(*router_, options, parts_))) {}

Served::~Served() = default;

uint16_t Served::port() const {
  return static_cast<uint16_t>(std::stoi(address().substr(address().rfind(':') + 1)));
}

std::unique_ptr<KVStore> Served::Client(const ConnectOptions& options) const {
  return OrThrow(Connect(address(), options));
}

double Served::Metric(const std::string& name, const std::string& token) const {
  const auto stub = v1::KVStore::NewStub(grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  v1::GetMetricsResponse metrics;
  if (!stub->GetMetrics(&context, {}, &metrics).ok()) return -1;
  const size_t at = metrics.text().find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(metrics.text().substr(at + name.size() + 2));
}

void Served::Restart() {
  options_.listen = server_->addresses();
  server_.reset();
  server_ = OrThrow(Server::Start(*router_, options_, parts_));
}

}  // namespace kvstore::testing
