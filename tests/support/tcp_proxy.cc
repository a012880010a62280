#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "tests/support/loopback.h"

namespace kvstore::testing {

TcpProxy::TcpProxy(uint16_t target) : target_(target) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the proxy cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

TcpProxy::~TcpProxy() {
  stopping_ = true;
  Cut();
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

void TcpProxy::Cut() {
  cut_ = true;
  const std::lock_guard lock(mutex_);
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

void TcpProxy::CutAtAnswerTo(const std::string& text, bool for_good) {
  const std::lock_guard lock(mutex_);
  cut_for_good_ = for_good;
  cut_text_ = text;
}

bool TcpProxy::HasCut() const {
  const std::lock_guard lock(mutex_);
  return cut_text_.empty();
}

bool TcpProxy::Pass(int from, int to, bool to_server, bool& cut_at_answer) {
  std::array<char, 65536> buffer{};
  const ssize_t size = ::recv(from, buffer.data(), buffer.size(), 0);
  if (size <= 0 || (cut_at_answer && !to_server)) return false;
  if (to_server) {
    const std::lock_guard lock(mutex_);
    const std::string_view data(buffer.data(), static_cast<size_t>(size));
    if (!cut_text_.empty() && data.find(cut_text_) != std::string_view::npos) {
      cut_at_answer = true;
      if (cut_for_good_) cut_ = true;
      cut_text_.clear();
    }
  }
  if (delay_ms_ > 0) ::usleep(delay_ms_ * 1000);
  return ::send(to, buffer.data(), static_cast<size_t>(size), MSG_NOSIGNAL) == size;
}

void TcpProxy::Accept() {
  while (!stopping_) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const std::lock_guard lock(mutex_);
    if (cut_) {
      ::close(client);
    } else {
      threads_.emplace_back([this, client] { Forward(client); });
    }
  }
}

void TcpProxy::Forward(int client) {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target_);
  {
    const std::lock_guard lock(mutex_);
    sockets_.insert(sockets_.end(), {client, server});
  }
  if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 && !cut_) {
    std::array<pollfd, 2> ready{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
    bool cut_at_answer = false;
    while (::poll(ready.data(), ready.size(), -1) > 0) {
      while (stalled_ && !cut_ && !stopping_) ::usleep(1000);
      if (ready[0].revents != 0 && !Pass(client, server, /*to_server=*/true, cut_at_answer)) break;
      if (ready[1].revents != 0 && !Pass(server, client, /*to_server=*/false, cut_at_answer)) break;
    }
  }
  const std::lock_guard lock(mutex_);
  for (const int socket : {client, server}) {
    sockets_.erase(std::find(sockets_.begin(), sockets_.end(), socket));
    ::close(socket);
  }
}

}  // namespace kvstore::testing
