#include "tests/support/cache_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/processes.h"

namespace kvstore::testing {

CacheServer::CacheServer(Kind kind, std::vector<std::string> arguments, std::optional<Tls> tls)
    : kind_(kind), arguments_(std::move(arguments)), tls_(std::move(tls)), port_(FreePort()) {
  Start();
}

CacheServer::~CacheServer() { Stop(); }

std::vector<std::string> CacheServer::Command() const {
  const std::string port = std::to_string(port_);
  if (kind_ == Kind::kMemcached) {
    std::vector<std::string> command = {"memcached", "-l", "127.0.0.1", "-p", port,  "-m",
                                        "64",        "-c", "4096",      "-u", "root"};
    if (!tls_) return command;
    std::string options = fmt::format("ssl_chain_cert={},ssl_key={}", tls_->cert, tls_->key);
    if (!tls_->client_ca.empty())
      options += fmt::format(",ssl_ca_cert={},ssl_verify_mode=2", tls_->client_ca);
    command.insert(command.end(), {"-Z", "-o", options});
    return command;
  }
  std::vector<std::string> command = {"redis-server",       "--bind", "127.0.0.1",      "--save", "", "--dir",
                                      dir_.path().string(), "--port", tls_ ? "0" : port};
  if (!tls_) return command;
  command.insert(command.end(),
                 {"--tls-port", port, "--tls-cert-file", tls_->cert, "--tls-key-file", tls_->key,
                  "--tls-auth-clients", tls_->client_ca.empty() ? "no" : "yes", "--tls-ca-cert-file",
                  tls_->client_ca.empty() ? tls_->cert : tls_->client_ca});
  return command;
}

void CacheServer::Start() {
  if (running()) return;
  std::vector<std::string> command = Command();
  command.insert(command.end(), arguments_.begin(), arguments_.end());
  const std::string log = (dir_.path() / "log").string();
  process_ = ForkProgram(command, log);
  AwaitServer(process_, command.front(), log, [this] { return Serves(); });
}

bool CacheServer::Serves() const {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 0, .tv_usec = 300'000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const sockaddr_in address = Loopback(port_);
  const std::string_view ask = kind_ == Kind::kMemcached ? "mn\r\n" : "PING\r\n";
  std::array<char, 64> answer{};
  const bool connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const bool answers = connected && !tls_ &&
                       ::write(socket, ask.data(), ask.size()) == static_cast<ssize_t>(ask.size()) &&
                       ::read(socket, answer.data(), answer.size() - 1) > 0;
  ::close(socket);
  // Redis answers with this while it reads what it has saved.
  return tls_ ? connected : answers && !std::string_view(answer.data()).starts_with("-LOADING");
}

void CacheServer::Stop() {
  if (running()) Kill(process_);
  process_ = -1;
}

void CacheServer::Pause() {
  ::kill(process_, SIGSTOP);
  // Each thread stops when it notices.
  const auto stopped = [&] {
    for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process_))) {
      std::ifstream stat(thread.path() / "stat");
      const std::string text(std::istreambuf_iterator<char>(stat), {});
      const size_t name = text.rfind(") ");
      if (name == std::string::npos || text.at(name + 2) != 'T') return false;
    }
    return true;
  };
  Eventually(stopped);
}

void CacheServer::Continue() { ::kill(process_, SIGCONT); }

}  // namespace kvstore::testing
