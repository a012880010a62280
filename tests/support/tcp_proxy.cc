#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

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
  const MutexLock lock(mutex_);
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

void TcpProxy::Set(const std::string& text, Trap trap) {
  const MutexLock lock(mutex_);
  trap_text_ = text;
  trap_ = std::move(trap);
}

void TcpProxy::CutAtAnswerTo(const std::string& text, bool for_good, std::function<void()> meanwhile) {
  Set(text, {.fault = Fault::kCutAtAnswer, .for_good = for_good, .meanwhile = std::move(meanwhile)});
}

void TcpProxy::CutBefore(const std::string& text, std::function<void()> meanwhile) {
  Set(text, {.fault = Fault::kCutBefore, .meanwhile = std::move(meanwhile)});
}

void TcpProxy::ReplaceAnswerTo(const std::string& text, const std::string& answer) {
  Set(text, {.fault = Fault::kReplaceAnswer, .answer = answer});
}

bool TcpProxy::HasCut() const {
  const MutexLock lock(mutex_);
  return trap_text_.empty();
}

std::string TcpProxy::SaidSince() const {
  const MutexLock lock(mutex_);
  return said_since_;
}

bool TcpProxy::Pass(int from, int to, bool to_server, Trap& sprung) {
  std::array<char, 65536> buffer{};
  const ssize_t size = ::recv(from, buffer.data(), buffer.size(), 0);
  if (size <= 0 || (sprung.fault == Fault::kCutAtAnswer && !to_server)) return false;
  std::string_view data(buffer.data(), static_cast<size_t>(size));
  std::string answer;
  if (to_server) {
    const MutexLock lock(mutex_);
    if (replaced_) said_since_ += data;
    if (!trap_text_.empty() && data.find(trap_text_) != std::string_view::npos) {
      sprung = std::exchange(trap_, {});
      if (sprung.for_good) cut_ = true;
      trap_text_.clear();
      if (sprung.fault == Fault::kCutBefore) return false;
    }
  } else if (sprung.fault == Fault::kReplaceAnswer) {
    answer = std::exchange(sprung, {}).answer;
    data = answer;
    const MutexLock lock(mutex_);
    replaced_ = true;
  }
  if (delay_ms_ > 0) ::usleep(delay_ms_ * 1000);
  return ::send(to, data.data(), data.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(data.size());
}

void TcpProxy::Accept() {
  while (!stopping_) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    sockets_.insert(sockets_.end(), {client, server});
  }
  if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 && !cut_) {
    std::array<pollfd, 2> ready{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
    Trap sprung;
    const uint64_t forgotten = forgotten_;
    while (::poll(ready.data(), ready.size(), -1) > 0) {
      while ((stalled_ || forgotten != forgotten_) && !cut_ && !stopping_) ::usleep(1000);
      if (ready[0].revents != 0 && !Pass(client, server, /*to_server=*/true, sprung)) break;
      if (ready[1].revents != 0 && !Pass(server, client, /*to_server=*/false, sprung)) break;
    }
    if (sprung.meanwhile) {
      ::shutdown(server, SHUT_RDWR);
      sprung.meanwhile();
    }
  }
  const MutexLock lock(mutex_);
  for (const int socket : {client, server}) {
    sockets_.erase(std::find(sockets_.begin(), sockets_.end(), socket));
    ::close(socket);
  }
}

}  // namespace kvstore::testing
