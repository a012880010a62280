#include "tests/support/zookeeper_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <fstream>

#include "tests/support/loopback.h"
#include "tests/support/processes.h"

namespace kvstore::testing {
ZooKeeperServer::ZooKeeperServer() : port_(FreePort()) {
  std::ofstream(dir_ / "zoo.cfg") << fmt::format(
      "tickTime=200\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
      "maxClientCnxns=0\n4lw.commands.whitelist=srvr,mntr\n",
      (dir_ / "data").string(), port_);
  Start();
}

ZooKeeperServer::~ZooKeeperServer() { Stop(); }

void ZooKeeperServer::Start() {
  const std::string config = (dir_ / "zoo.cfg").string();
  const std::string log = (dir_ / "log").string();
  process_ = ::fork();
  if (process_ == 0) {
    // The server is killed with the test, however that ends.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execlp("java", "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
             "-Dzookeeper.forceSync=no", "-cp", "/usr/share/java/zookeeper.jar",
             "org.apache.zookeeper.server.quorum.QuorumPeerMain", config.c_str(), nullptr);
    ::_exit(127);
  }
  AwaitServer(process_, "ZooKeeper", log,
              [this] { return Ask("srvr").find("Mode: standalone") != std::string::npos; });
}

/// Returns the server's answer to a four-letter command; empty if it does not serve.
std::string ZooKeeperServer::Ask(const char* word) const {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // While the server starts it may accept a connection and never answer.
  const timeval patience{.tv_sec = 0, .tv_usec = 300'000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const sockaddr_in address = Loopback(port_);
  std::string answer;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::write(socket, word, 4) == 4) {
    std::array<char, 4096> buffer{};
    for (ssize_t size = 0; (size = ::read(socket, buffer.data(), buffer.size())) > 0;) {
      answer.append(buffer.data(), static_cast<size_t>(size));
    }
  }
  ::close(socket);
  return answer;
}

void ZooKeeperServer::Stop() {
  if (process_ > 0) Kill(process_);
  process_ = -1;
}

int ZooKeeperServer::Sessions() const {
  const std::string answer = Ask("mntr");
  const std::string name = "zk_global_sessions\t";
  const size_t at = answer.find(name);
  return at == std::string::npos ? -1 : std::stoi(answer.substr(at + name.size()));
}

}  // namespace kvstore::testing
