#include "tests/blobstore/hostile_http.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "tests/support/loopback.h"

namespace kvstore::testing {
namespace {

constexpr size_t kKeptBodyBytes = size_t{64} << 10;
constexpr uint64_t kForEverBytes = uint64_t{16} << 30;
constexpr int kPollMs = 50;

/// Waits until something can be read; returns false if the server is stopping.
bool AwaitBytes(int socket, const std::atomic<bool>& stopping) {
  pollfd polled{socket, POLLIN, 0};
  while (!stopping) {
    if (::poll(&polled, 1, kPollMs) > 0) return true;
  }
  return false;
}

/// Reads until `buffer` has `size` bytes; returns false at the end of the connection.
bool ReadUntil(int socket, const std::atomic<bool>& stopping, std::string& buffer, size_t size) {
  std::array<char, 65536> bytes{};
  while (buffer.size() < size) {
    if (!AwaitBytes(socket, stopping)) return false;
    const ssize_t read = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (read <= 0) return false;
    buffer.append(bytes.data(), static_cast<size_t>(read));
  }
  return true;
}

HostileHttp::Request ParseHead(std::string_view head) {
  HostileHttp::Request request;
  const std::string_view first = head.substr(0, head.find("\r\n"));
  const size_t space = first.find(' ');
  request.method = first.substr(0, space);
  request.target = first.substr(space + 1, first.rfind(' ') - space - 1);
  for (size_t at = first.size() + 2; at < head.size();) {
    const size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view line = head.substr(at, end - at);
    const size_t colon = line.find(": ");
    if (colon != std::string_view::npos) {
      std::string name(line.substr(0, colon));
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      request.headers[name] = line.substr(colon + 2);
    }
    at = end + 2;
  }
  return request;
}

}  // namespace

bool HostileHttp::Answer::Send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    pollfd polled{socket_, POLLOUT, 0};
    if (server_.stopping_) return false;
    if (::poll(&polled, 1, kPollMs) == 0) continue;
    const ssize_t size =
        ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size <= 0) {
      close_ = true;
      return false;
    }
    sent += static_cast<size_t>(size);
  }
  return true;
}

bool HostileHttp::Answer::Send(int status, const std::string& headers, const std::string& body) {
  return Send(fmt::format("HTTP/1.1 {} Some Words\r\n{}content-length: {}\r\n\r\n{}", status, headers,
                          body.size(), body));
}

uint64_t HostileHttp::Answer::SendForEver(const std::string& bytes) {
  uint64_t sent = 0;
  while (sent < kForEverBytes && Send(bytes)) sent += bytes.size();
  close_ = true;
  return sent;
}

void HostileHttp::Answer::Stall() {
  std::string ignored;
  ReadUntil(socket_, server_.stopping_, ignored, SIZE_MAX);
  close_ = true;
}

HostileHttp::HostileHttp(Handler handler) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HostileHttp::~HostileHttp() {
  stopping_ = true;
  acceptor_.join();
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  ::close(listener_);
}

std::vector<HostileHttp::Request> HostileHttp::Requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

void HostileHttp::Accept() {
  while (AwaitBytes(listener_, stopping_)) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    const MutexLock lock(mutex_);
    threads_.emplace_back([this, socket] {
      Serve(socket);
      ::close(socket);
    });
  }
}

void HostileHttp::Serve(int socket) {
  std::string buffer;
  while (true) {
    size_t end = 0;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
      if (!ReadUntil(socket, stopping_, buffer, buffer.size() + 1)) return;
    }
    Request request = ParseHead(std::string_view(buffer).substr(0, end));
    buffer.erase(0, end + 4);
    Answer answer(*this, socket);
    if (request.headers.contains("expect")) answer.Send("HTTP/1.1 100 Continue\r\n\r\n");
    const auto length = request.headers.find("content-length");
    const size_t body = length == request.headers.end() ? 0 : std::stoull(length->second);
    if (!ReadUntil(socket, stopping_, buffer, body)) return;
    request.body = buffer.substr(0, body);
    buffer.erase(0, body);
    int number = 0;
    {
      const MutexLock lock(mutex_);
      requests_.push_back(request);
      requests_.back().body.resize(std::min(body, kKeptBodyBytes));
      number = static_cast<int>(requests_.size());
    }
    handler_(request, number, answer);
    if (answer.close_) return;
  }
}

}  // namespace kvstore::testing
