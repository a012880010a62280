#include "server/http/listener.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "base/address.h"

namespace kvstore::server {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;

/// How long it waits after an error before it accepts again.
constexpr std::chrono::milliseconds kAcceptRetry{100};

int FirstRefused(double share) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > (rlim_t{1} << 30)) return 1 << 30;
  return static_cast<int>(static_cast<double>(limit.rlim_cur) * share);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Listen(const std::string& address, double share) {
  std::unique_ptr<Listener> listener(new Listener(share));
  if (const error_code error = listener->Open(address)) {
    return absl::UnavailableError(fmt::format("cannot listen on {} for HTTP: {}", address, error.message()));
  }
  return listener;
}

Listener::Listener(double share) : first_refused_(FirstRefused(share)) {}

Listener::~Listener() {
  context_.stop();
  for (std::thread& thread : threads_) thread.join();
}

error_code Listener::Open(const std::string& address) {
  const auto host = HostOf(address);
  if (!host) return asio::error::make_error_code(asio::error::invalid_argument);
  error_code error;
  const auto found = tcp::resolver(context_).resolve(*host, address.substr(address.rfind(':') + 1),
                                                     tcp::resolver::passive, error);
  if (error) return error;
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  // "[::]" listens for IPv4, too.
  if (!error && endpoint.address().is_v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  return error;
}

void Listener::Start(int threads, std::function<void(tcp::socket)> accepted) {
  accepted_ = std::move(accepted);
  asio::post(acceptor_.get_executor(), [this] { Accept(); });
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { context_.run(); });
}

void Listener::StopAccepting() {
  asio::post(acceptor_.get_executor(), [this] {
    error_code ignored;
    acceptor_.close(ignored);
  });
}

void Listener::Accept() {
  acceptor_.async_accept(asio::make_strand(context_), [this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) return;
    if (error) return AcceptLater();
    // The system gives the lowest free number, so this number says how many descriptors are in use.
    if (socket.native_handle() < first_refused_) accepted_(std::move(socket));
    Accept();
  });
}

void Listener::AcceptLater() {
  retry_.expires_after(kAcceptRetry);
  retry_.async_wait([this](error_code) { Accept(); });
}

}  // namespace kvstore::server
