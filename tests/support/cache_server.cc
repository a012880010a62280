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

CacheServer::CacheServer(Kind kind, std::vector<std::string> arguments)
    : kind_(kind), arguments_(std::move(arguments)), port_(FreePort()) {
  Start();
}

CacheServer::~CacheServer() { Stop(); }

void CacheServer::Start() {
  if (running()) return;
  std::vector<std::string> command;
  const std::string port = std::to_string(port_);
  if (kind_ == Kind::kMemcached) {
    command = {"memcached", "-l", "127.0.0.1", "-p", port, "-m", "64", "-c", "4096", "-u", "root"};
  } else {
    command = {"redis-server",      "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir",
               dir_.path().string()};
  }
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
  const bool answers = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
                       ::write(socket, ask.data(), ask.size()) == static_cast<ssize_t>(ask.size()) &&
                       ::read(socket, answer.data(), answer.size() - 1) > 0;
  ::close(socket);
  // Redis answers with this while it reads what it has saved.
  return answers && !std::string_view(answer.data()).starts_with("-LOADING");
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
