#include "tests/support/kv_server.h"

#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <utility>

#include "tests/support/loopback.h"
#include "tests/support/processes.h"

namespace kvstore::testing {

KvServer::KvServer(std::string program, std::vector<std::string> arguments)
    : program_(std::move(program)),
      arguments_(std::move(arguments)),
      address_("127.0.0.1:" + std::to_string(FreePort())),
      http_port_(FreePort()) {
  Start();
}

KvServer::~KvServer() {
  if (process_ > 0) Kill();
}

uint16_t KvServer::port() const {
  return static_cast<uint16_t>(std::stoi(address_.substr(address_.rfind(':') + 1)));
}

void KvServer::Start() {
  std::vector<std::string> command = {program_};
  command.insert(command.end(), arguments_.begin(), arguments_.end());
  for (const char* word : {"serve", "--listen"}) command.emplace_back(word);
  command.push_back(address_);
  command.emplace_back("--http");
  command.push_back(http());
  const std::string out = (dir_ / "out").string();
  std::filesystem::remove(out);
  process_ = ForkProgram(command, out);
  AwaitServer(process_, "kv serve", out, [&] {
    std::ifstream file(out);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.find("serving on") != std::string::npos;
  });
}

void KvServer::Kill() { testing::Kill(std::exchange(process_, -1)); }

int KvServer::Stop() {
  ::kill(process_, SIGTERM);
  return Wait(std::exchange(process_, -1)).code;
}

uint64_t KvServer::ResidentBytes() const {
  std::ifstream statm("/proc/" + std::to_string(process_) + "/statm");
  uint64_t pages = 0;
  uint64_t resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace kvstore::testing
