#include "tests/fleet_size/zookeeper_ensemble.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/loopback.h"
#include "tests/support/processes.h"

namespace kvstore::testing::fleet_size {
namespace {

/// Whether a server answers that it is the leader or a follower.
bool Serves(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 0, .tv_usec = 300'000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const sockaddr_in address = Loopback(port);
  std::string answer;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::write(socket, "srvr", 4) == 4) {
    std::array<char, 4096> buffer{};
    for (ssize_t size = 0; (size = ::read(socket, buffer.data(), buffer.size())) > 0;) {
      answer.append(buffer.data(), static_cast<size_t>(size));
    }
  }
  ::close(socket);
  return answer.find("Mode: leader") != std::string::npos ||
         answer.find("Mode: follower") != std::string::npos;
}

}  // namespace

ZooKeeperEnsemble::ZooKeeperEnsemble() {
  std::string members;
  for (size_t i = 0; i < servers_.size(); ++i) {
    members += fmt::format("server.{}=127.0.0.1:{}:{}\n", i + 1, FreePort(), FreePort());
    servers_[i].port = FreePort();
  }
  for (size_t i = 0; i < servers_.size(); ++i) {
    const std::filesystem::path data = servers_[i].dir / "data";
    std::filesystem::create_directory(data);
    std::ofstream(data / "myid") << i + 1;
    std::ofstream(servers_[i].dir / "zoo.cfg") << fmt::format(
        "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\nmaxClientCnxns=0\nclientPortListenBacklog=4096\n"
        "4lw.commands.whitelist=srvr\n{}",
        data.string(), servers_[i].port, members);
  }
  Start();
}

ZooKeeperEnsemble::~ZooKeeperEnsemble() { Stop(); }

std::string ZooKeeperEnsemble::servers() const {
  std::string all;
  for (const Server& server : servers_)
    all += fmt::format("{}127.0.0.1:{}", all.empty() ? "" : ",", server.port);
  return all;
}

std::vector<uint16_t> ZooKeeperEnsemble::ports() const {
  std::vector<uint16_t> all;
  for (const Server& server : servers_) all.push_back(server.port);
  return all;
}

void ZooKeeperEnsemble::Launch(Server& server) {
  const std::string config = (server.dir / "zoo.cfg").string();
  const std::string log = (server.dir / "log").string();
  server.process = ::fork();
  if (server.process != 0) return;
  // The server is killed with the test, however that ends.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execlp("java", "java", "-Xmx1g", "-Dzookeeper.forceSync=no", "-cp", "/usr/share/java/zookeeper.jar",
           "org.apache.zookeeper.server.quorum.QuorumPeerMain", config.c_str(), nullptr);
  ::_exit(127);
}

void ZooKeeperEnsemble::Start() {
  for (Server& server : servers_) Launch(server);
  for (Server& server : servers_) {
    AwaitServer(server.process, "ZooKeeper", (server.dir / "log").string(),
                [&] { return Serves(server.port); });
  }
}

void ZooKeeperEnsemble::Stop() {
  for (Server& server : servers_) {
    if (server.process > 0) Kill(server.process);
    server.process = -1;
  }
}

uint64_t ZooKeeperEnsemble::ResidentBytes() const {
  uint64_t bytes = 0;
  for (const Server& server : servers_) {
    uint64_t size = 0;
    uint64_t resident = 0;
    std::ifstream(fmt::format("/proc/{}/statm", server.process)) >> size >> resident;
    bytes += resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  return bytes;
}

}  // namespace kvstore::testing::fleet_size
