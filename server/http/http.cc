#include "server/http/http.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/address.h"

namespace kvstore::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

/// How long a whole request may take to arrive, even if a byte comes now and then.
constexpr std::chrono::seconds kRequestTimeout{1};
constexpr std::chrono::seconds kAnswerTimeout{10};
constexpr unsigned kMaxHeaderBytes = 8 << 10;
/// How many connections may be open, but at most a tenth of the descriptors that the process may have.
/// Further ones are closed at once.
constexpr size_t kMaxOpen = 1'000;
constexpr size_t kMinOpen = 64;
/// More than one, so that a slow text of /metrics delays nobody who asks whether the server lives.
constexpr int kThreads = 2;
/// How long it waits after an error before it accepts again.
constexpr std::chrono::milliseconds kAcceptRetry{100};

/// Returns how many connections may be open, by the descriptors that this process may have.
size_t MostOpen() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return std::clamp<size_t>(limit.rlim_cur / 10, kMinOpen, kMaxOpen);
}

/// A connection: one request and its answer.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const HttpServer::Pages& pages, std::atomic<size_t>& open)
      : stream_(std::move(socket)), pages_(pages), open_(open) {
    ++open_;
    parser_.header_limit(kMaxHeaderBytes);
  }
  ~Session() { --open_; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->Read(); });
  }

 private:
  void Read() {
    stream_.expires_after(kRequestTimeout);
    // A body is not read.
    http::async_read_header(stream_, buffer_, parser_, [self = shared_from_this()](error_code error, size_t) {
      if (!error) self->Answer();
    });
  }

  void Answer() {
    const auto& request = parser_.get();
    const std::string_view target(request.target().data(), request.target().size());
    const std::string_view page = target.substr(0, target.find('?'));
    const bool head = request.method() == http::verb::head;
    if (!head && request.method() != http::verb::get) {
      Set(http::status::method_not_allowed, "text/plain", "GET and HEAD only\n");
    } else if (page == "/metrics") {
      Set(http::status::ok, "text/plain; version=0.0.4; charset=utf-8", pages_.metrics());
    } else if (page == "/healthz") {
      Set(http::status::ok, "text/plain", "ok\n");
    } else if (page == "/readyz") {
      const bool ready = pages_.ready();
      Set(ready ? http::status::ok : http::status::service_unavailable, "text/plain",
          ready ? "ok\n" : "not ready\n");
    } else {
      Set(http::status::not_found, "text/plain", "there are /metrics, /healthz and /readyz\n");
    }
    if (head) response_.body().clear();
    stream_.expires_after(kAnswerTimeout);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code, size_t) {
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  void Set(http::status status, std::string_view type, std::string body) {
    response_.result(status);
    response_.set(http::field::content_type, beast::string_view(type.data(), type.size()));
    response_.keep_alive(false);
    response_.content_length(body.size());
    response_.body() = std::move(body);
  }

  beast::tcp_stream stream_;
  const HttpServer::Pages& pages_;
  std::atomic<size_t>& open_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
};

}  // namespace

class HttpServer::Listener {
 public:
  explicit Listener(Pages pages) : pages_(std::move(pages)) {}
  ~Listener() {
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Begins to listen; returns why it cannot.
  error_code Listen(const std::string& address) {
    const auto host = HostOf(address);
    if (!host) return asio::error::make_error_code(asio::error::invalid_argument);
    error_code error;
    const auto found = tcp::resolver(context_).resolve(*host, address.substr(address.rfind(':') + 1),
                                                       tcp::resolver::passive, error);
    if (error) return error;
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (error) return error;
    Accept();
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { context_.run(); });
    return {};
  }
  int port() const { return port_; }

 private:
  void Accept() {
    acceptor_.async_accept(asio::make_strand(context_), [this](error_code error, tcp::socket socket) {
      if (error) return AcceptLater();
      if (open_ < most_open_) std::make_shared<Session>(std::move(socket), pages_, open_)->Start();
      Accept();
    });
  }
  /// Accepts again after a pause, when for example there was no descriptor.
  void AcceptLater() {
    retry_.expires_after(kAcceptRetry);
    retry_.async_wait([this](error_code) { Accept(); });
  }

  const Pages pages_;
  const size_t most_open_ = MostOpen();
  std::atomic<size_t> open_{0};
  asio::io_context context_;
  tcp::acceptor acceptor_{context_};
  asio::steady_timer retry_{context_};
  int port_ = 0;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Pages pages) {
  auto listener = std::make_unique<Listener>(std::move(pages));
  if (const error_code error = listener->Listen(address)) {
    return absl::UnavailableError(fmt::format("cannot listen on {} for HTTP: {}", address, error.message()));
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listener)));
}

int HttpServer::port() const { return listener_->port(); }

}  // namespace kvstore::server
