#include "tests/server/resp/resp_client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "tests/support/loopback.h"

namespace kvstore::testing {

RespClient::RespClient(const std::string& address)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const sockaddr_in server = Loopback(port);
  const timeval patience{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&server), sizeof(server)) != 0)
    throw std::runtime_error("cannot connect to " + address);
}

RespClient::~RespClient() {
  if (socket_ >= 0) ::close(socket_);
}

std::string RespClient::Encode(const std::vector<std::string>& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return bytes;
}

std::string RespClient::Encode(std::string_view line) {
  std::vector<std::string> words;
  for (;;) {
    const size_t end = line.find(' ');
    words.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) return Encode(words);
    line.remove_prefix(end + 1);
  }
}

std::string RespClient::Do(const std::vector<std::string>& words) {
  Send(Encode(words));
  return Receive();
}

std::string RespClient::Do(std::string_view line) {
  Send(Encode(line));
  return Receive();
}

bool RespClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::optional<char> RespClient::ReadByte() {
  if (at_ == buffer_.size()) {
    std::array<char, 1 << 16> some;
    const ssize_t size = closed_ ? 0 : ::recv(socket_, some.data(), some.size(), 0);
    timed_out_ = timed_out_ || (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
    closed_ = size <= 0;
    if (closed_) return std::nullopt;
    buffer_.assign(some.data(), static_cast<size_t>(size));
    at_ = 0;
  }
  return buffer_[at_++];
}

std::optional<std::string> RespClient::ReadLine() {
  std::string line;
  for (;;) {
    const auto byte = ReadByte();
    if (!byte) return std::nullopt;
    if (*byte == '\n') break;
    line += *byte;
  }
  if (line.empty() || line.back() != '\r') return std::nullopt;
  line.pop_back();
  return line;
}

std::optional<std::string> RespClient::ReadBulk(int64_t size) {
  std::string bytes;
  for (int64_t i = 0; i < size + 2; ++i) {
    const auto byte = ReadByte();
    if (!byte) return std::nullopt;
    bytes += *byte;
  }
  bytes.resize(static_cast<size_t>(size));
  return bytes;
}

std::string RespClient::ReadElements(int64_t count, std::string_view brackets, std::string_view between) {
  std::string text(1, brackets[0]);
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) text += i % 2 == 1 ? between : ", ";
    text += Receive();
    if (closed_) return kClosed;
  }
  return text + brackets[1];
}

std::string RespClient::Receive() {
  const auto line = ReadLine();
  if (!line || line->empty()) return kClosed;
  const std::string rest = line->substr(1);
  switch (line->front()) {
    case '+':
      return rest;
    case '-':
    case ',':
      return *line;
    case ':':
      return "(" + rest + ")";
    case '_':
      return "nil";
    case '$':
    case '=': {
      if (rest == "-1") return "nil";
      const auto bytes = ReadBulk(std::stoll(rest));
      if (!bytes) return kClosed;
      return (line->front() == '=' ? "=\"" : "\"") + *bytes + "\"";
    }
    case '*':
      return rest == "-1" ? "nil" : ReadElements(std::stoll(rest), "[]", ", ");
    case '~':
      return "~" + ReadElements(std::stoll(rest), "[]", ", ");
    case '%':
      return ReadElements(2 * std::stoll(rest), "{}", ": ");
    default:
      return "(what is no answer: " + *line + ")";
  }
}

bool RespClient::IsClosed() {
  while (ReadByte()) {
  }
  return !timed_out_;
}

void RespClient::EndSending() { ::shutdown(socket_, SHUT_WR); }

void RespClient::Reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::close(socket_);
  socket_ = -1;
  closed_ = true;
}

}  // namespace kvstore::testing
