#include "server/resp/loop.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/call/connections.h"

namespace kvstore::server::resp {
namespace {

/// How often the time of connections is looked after.
constexpr std::chrono::milliseconds kWatchEvery{100};

/// The error for a client for which there is no room, in the words of Redis.
constexpr std::string_view kFull = "-ERR max number of clients reached\r\n";

/// How many connections beyond those that a loop serves may wait to be taken in.
constexpr size_t kMostWaiting = 32;

/// Returns the family of a socket's addresses.
int FamilyOf(int socket) {
  int family = 0;
  socklen_t size = sizeof(family);
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 ? family : AF_UNSPEC;
}

}  // namespace

Loop::Loop(const Environment& environment, const Certificates* certificates)
    : environment_(environment), certificates_(certificates), puts_(context_, environment.core) {
  Watch();
  thread_ = std::thread([this] { context_.run(); });
}

Loop::~Loop() {
  context_.stop();
  thread_.join();
}

void Loop::Add(int socket) {
  // A loop that is busy takes in later what has connected: that must not be any number meanwhile.
  if (count_.fetch_add(1, std::memory_order_relaxed) >= environment_.limits.each_loop + kMostWaiting) {
    count_.fetch_sub(1, std::memory_order_relaxed);
    ::close(socket);
    return;
  }
  boost::asio::post(context_, [this, socket] { Serve(socket); });
}

void Loop::Serve(int socket) {
  Channel::Socket accepted(context_);
  boost::system::error_code error;
  accepted.assign(boost::asio::generic::stream_protocol(FamilyOf(socket), 0), socket, error);
  if (error) ::close(socket);
  if (error || closing_ || !MakeRoom()) {
    if (!error && !closing_ && certificates_ == nullptr)
      ::send(socket, kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    count_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  std::string peer = PeerOf(socket);
  auto channel = certificates_ == nullptr ? MakePlainChannel(std::move(accepted))
                                          : MakeTlsChannel(std::move(accepted), certificates_->context());
  const auto connection =
      std::make_shared<Connection>(environment_, context_, puts_, turns_, std::move(channel),
                                   peer.empty() ? "unix:" : std::move(peer), [this](Connection& closed) {
                                     count_.fetch_sub(1, std::memory_order_relaxed);
                                     connections_.erase(&closed);
                                   });
  connections_.emplace(connection.get(), connection);
  connection->Start();
}

bool Loop::MakeRoom() {
  if (connections_.size() < environment_.limits.each_loop) return true;
  std::shared_ptr<Connection> first;
  for (const auto& [address, connection] : connections_) {
    const auto since = connection->StrangerSince();
    if (since && (first == nullptr || *since < *first->StrangerSince())) first = connection;
  }
  if (first != nullptr) first->Cut();
  return first != nullptr;
}

template <typename Visit>
void Loop::ForEach(const Visit& visit) {
  std::vector<std::shared_ptr<Connection>> all;
  all.reserve(connections_.size());
  for (const auto& [address, connection] : connections_) all.push_back(connection);
  for (const auto& connection : all) visit(*connection);
}

void Loop::Watch() {
  timer_.expires_after(kWatchEvery);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    ForEach([now = Connection::Clock::now()](Connection& connection) { connection.CheckTime(now); });
    Watch();
  });
}

void Loop::Drain() {
  boost::asio::post(context_, [this] { ForEach([](Connection& connection) { connection.Drain(); }); });
}

void Loop::Close() {
  std::promise<void> closed;
  boost::asio::post(context_, [&] {
    closing_ = true;
    ForEach([](Connection& connection) { connection.Close(); });
    closed.set_value();
  });
  closed.get_future().wait();
}

}  // namespace kvstore::server::resp
