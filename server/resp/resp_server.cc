#include "server/resp/resp_server.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "server/resp/tls.h"

namespace kvstore::server {
namespace {

/// How often it is checked whether connections are gone.
constexpr std::chrono::milliseconds kCheckEvery{1};

}  // namespace

absl::StatusOr<std::unique_ptr<RespServer>> RespServer::Make(Core& core) {
  auto tls = resp::MakeTlsContext(core.options.tls);
  if (!tls.ok()) return tls.status();
  return std::unique_ptr<RespServer>(new RespServer(core, *std::move(tls)));
}

RespServer::RespServer(Core& core, std::unique_ptr<boost::asio::ssl::context> tls)
    : core_(core), tls_(std::move(tls)) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < cores; ++i) {
    loops_.push_back(std::make_unique<resp::Loop>(
        resp::Environment{.core = core_, .cursors = cursors_, .figures = figures_}, tls_.get()));
  }
}

RespServer::~RespServer() { Stop(std::chrono::milliseconds(0)); }

void RespServer::Serve(int socket) {
  loops_[next_.fetch_add(1, std::memory_order_relaxed) % loops_.size()]->Add(socket);
}

void RespServer::Drain() {
  for (const auto& loop : loops_) loop->Drain();
}

bool RespServer::AwaitNone(std::chrono::steady_clock::time_point until) const {
  while (HasConnections()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kCheckEvery);
  }
  return true;
}

void RespServer::Stop(std::chrono::milliseconds patience) {
  AwaitNone(std::chrono::steady_clock::now() + patience);
  for (const auto& loop : loops_) loop->Close();
  // Commands that workers carry out were cancelled, and hold their connections until they end.
  AwaitNone(std::chrono::steady_clock::time_point::max());
}

void RespServer::Describe(MetricsSink& sink) const {
  sink.Gauge("kvstore_resp_connections", "Connections of the Redis protocol that are open", {},
             static_cast<double>(figures_.connections.load(std::memory_order_relaxed)));
  sink.Counter("kvstore_resp_connections_total", "Connections of the Redis protocol since the start", {},
               static_cast<double>(figures_.connected.load(std::memory_order_relaxed)));
  sink.Counter("kvstore_resp_commands_total", "Commands of the Redis protocol since the start", {},
               static_cast<double>(figures_.commands.load(std::memory_order_relaxed)));
  sink.Counter("kvstore_resp_cut_total",
               "Connections of the Redis protocol that were ended because of what their clients sent, or did "
               "not send or take in time",
               {}, static_cast<double>(figures_.cut.load(std::memory_order_relaxed)));
}

}  // namespace kvstore::server
