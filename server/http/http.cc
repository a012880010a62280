#include "server/http/http.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "base/address.h"
#include "server/http/door.h"

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
/// Limits of the number of open connections, which is a tenth of the descriptors that the process may have.
/// One connection more closes the oldest one, so that a slow request keeps nobody out.
constexpr size_t kMaxOpen = 1'000;
constexpr size_t kMinOpen = 64;
/// More than one, so that a slow text of /metrics delays nobody who asks whether the server lives.
constexpr int kThreads = 2;

/// Returns how many connections may be open, by the descriptors that this process may have.
size_t MostOpen() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return std::clamp<size_t>(limit.rlim_cur / 10, kMinOpen, kMaxOpen);
}

}  // namespace

/// A connection: one request and its answer.
class HttpServer::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const HttpServer::Pages& pages, bool checks_host, Sessions& sessions)
      : stream_(std::move(socket)), pages_(pages), checks_host_(checks_host), sessions_(sessions) {
    parser_.header_limit(kMaxHeaderBytes);
  }
  ~Session() { sessions_.Remove(*this); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start() {
    sessions_.Add(shared_from_this());
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->Read(); });
  }
  /// Ends it, whatever it is at.
  void Close() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->stream_.close(); });
  }

 private:
  friend class Sessions;

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
    const auto host = request[http::field::host];
    if (checks_host_ && !NamesThisMachine({host.data(), host.size()})) {
      Set(http::status::forbidden, "text/plain",
          "Host: must be localhost or an IP address. Other names are refused, because a web page could reach "
          "this server under a name of its own (DNS rebinding)\n");
    } else if (!head && request.method() != http::verb::get) {
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
  const bool checks_host_;
  Sessions& sessions_;
  std::optional<Sessions::List::iterator> place_;  // guarded by the mutex of sessions_
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
};

void HttpServer::Sessions::Add(const std::shared_ptr<Session>& session) {
  static const size_t most = MostOpen();
  std::shared_ptr<Session> first;
  {
    const MutexLock lock(mutex_);
    session->place_ = list_.insert(list_.end(), session);
    for (auto oldest = list_.begin(); list_.size() > most && first == nullptr && oldest != list_.end();
         ++oldest)
      first = oldest->lock();
    if (first != nullptr) Take(*first);
  }
  if (first != nullptr) first->Close();
}

void HttpServer::Sessions::Remove(Session& session) {
  const MutexLock lock(mutex_);
  Take(session);
}

void HttpServer::Sessions::Take(Session& session) {
  if (session.place_) list_.erase(*session.place_);
  session.place_.reset();
}

HttpServer::HttpServer(std::unique_ptr<Listener> listener, Pages pages, bool checks_host)
    : pages_(std::move(pages)), listener_(std::move(listener)) {
  listener_->Start(kThreads, [this, checks_host](tcp::socket socket) {
    std::make_shared<Session>(std::move(socket), pages_, checks_host, sessions_)->Start();
  });
}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Pages pages) {
  auto listener = Listener::Listen(address, /*share=*/1.0);
  if (!listener.ok()) return listener.status();
  return std::unique_ptr<HttpServer>(
      new HttpServer(*std::move(listener), std::move(pages), IsLocal(address)));
}

int HttpServer::port() const { return listener_->port(); }

}  // namespace kvstore::server
