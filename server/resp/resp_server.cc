#include "server/resp/resp_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <utility>

namespace kvstore::server {
namespace {

/// How often it is checked whether connections are gone.
constexpr std::chrono::milliseconds kCheckEvery{1};
/// How many connections may be open, but at most half of the descriptors that the process may have, so that
/// there are some for the other doors.
constexpr size_t kMostConnections = 10'000;
constexpr size_t kLeastConnections = 32;

resp::ConnectionLimits LimitsFor(const ServerOptions& options, unsigned loops) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const size_t most = std::clamp<size_t>(limit.rlim_cur / 2, kLeastConnections, kMostConnections);
  return {.each_loop = (most + loops - 1) / loops,
          .each_caller = options.TellsCallersApart() ? most / 2 : SIZE_MAX};
}

}  // namespace

RespServer::RespServer(Core& core, const Certificates* certificates) : core_(core) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const resp::Environment environment{
      .core = core_, .cursors = cursors_, .figures = figures_, .limits = LimitsFor(core_.options, cores)};
  for (unsigned i = 0; i < cores; ++i)
    loops_.push_back(std::make_unique<resp::Loop>(environment, certificates));
}

RespServer::~RespServer() { Stop(std::chrono::milliseconds(0)); }

void RespServer::Serve(int socket) {
  // The loop with the fewest connections, so that no client can choose one, and fill it.
  const auto least = std::min_element(loops_.begin(), loops_.end(), [](const auto& one, const auto& other) {
    return one->connections() < other->connections();
  });
  (*least)->Add(socket);
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
