#include "server/http/http_api.h"

#include <algorithm>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "server/http/connection.h"
#include "server/http/door.h"
#include "server/http/listener.h"

namespace kvstore::server {
namespace {

/// How long connections have to end before they are told so again.
constexpr std::chrono::milliseconds kStopAgain{100};
/// How long connections that are told to end may take for their last bytes.
constexpr std::chrono::milliseconds kLastAnswers{1'000};
/// The share of the file descriptors up to which connections are accepted, as gRPC's are.
constexpr double kDescriptors = 0.8;

/// How many threads read, write and carry out quick reads: as many as cores, within bounds.
int Threads() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 8); }

}  // namespace

class HttpApi::Impl {
 public:
  Impl(Core& core, const Certificates* certificates, std::unique_ptr<Listener> listener)
      : door_(core, certificates), listener_(std::move(listener)) {
    listener_->Start(Threads(), [this](boost::asio::ip::tcp::socket socket) {
      if (!door_.draining.load()) std::make_shared<Connection>(door_, std::move(socket))->Start();
    });
  }
  ~Impl() { Stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Drain() {
    door_.draining = true;
    listener_->StopAccepting();
    for (const auto& connection : door_.connections.All()) connection->Drain();
  }
  void Stop() {
    Drain();
    // Connections that end by themselves get their last bytes out first.
    if (door_.connections.AwaitNone(kLastAnswers)) return;
    // One that was accepted a moment ago may come late.
    do {
      for (const auto& connection : door_.connections.All()) connection->Stop();
    } while (!door_.connections.AwaitNone(kStopAgain));
  }
  int port() const { return listener_->port(); }

 private:
  HttpDoor door_;
  const std::unique_ptr<Listener> listener_;  // destroyed first
};

HttpApi::HttpApi(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpApi::~HttpApi() = default;

absl::StatusOr<std::unique_ptr<HttpApi>> HttpApi::Start(Core& core, const Certificates* certificates) {
  auto listener = Listener::Listen(core.options.http_api, kDescriptors);
  if (!listener.ok()) return listener.status();
  return std::unique_ptr<HttpApi>(
      new HttpApi(std::make_unique<Impl>(core, certificates, *std::move(listener))));
}

void HttpApi::Drain() { impl_->Drain(); }
void HttpApi::Stop() { impl_->Stop(); }
int HttpApi::port() const { return impl_->port(); }

}  // namespace kvstore::server
