#include "tests/support/mariadb_server.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/mysql_words.h"
#include "tests/support/processes.h"

namespace kvstore::testing {
namespace {

/// The log is small, since each server writes it whole when it is made.
constexpr const char* kLogSize = "--innodb-log-file-size=32M";
constexpr const char* kMySqlLogSize = "--innodb-redo-log-capacity=16M";

/// Returns the program of a MySQL server.
std::string MySqlProgram() { return std::string(std::getenv("KV_TEST_MYSQL")) + "/kvstore-mysqld"; }

void InstallMySql(const TempDir& dir) {
  // Connections by TCP come from 127.0.0.1, which is not localhost where names are not resolved.
  std::ofstream(dir / "init.sql") << "CREATE USER root@'127.0.0.1' IDENTIFIED BY '';\n"
                                     "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n";
  const Output output = RunProgram({MySqlProgram(), "--user=root", "--initialize-insecure",
                                    "--datadir=" + (dir / "data").string(),
                                    "--init-file=" + (dir / "init.sql").string(), kMySqlLogSize});
  if (output.code != 0) throw std::runtime_error("mysqld --initialize-insecure: " + output.out + output.err);
  // The server's UUID is in this file: a server that finds none makes one of its own.
  std::filesystem::remove(dir / "data/auto.cnf");
}

void InstallMariaDb(const TempDir& dir) {
  const Output output =
      RunProgram({"env", "TMPDIR=" + dir.path().string(), "mariadb-install-db", "--no-defaults", "--force",
                  "--datadir=" + (dir / "data").string(), "--auth-root-authentication-method=normal",
                  "--skip-test-db", "--user=root", kLogSize});
  if (output.code != 0) throw std::runtime_error("mariadb-install-db: " + output.out + output.err);
}

/// Returns the data folder of a server that has nothing yet. It is made once for each process, because
/// copying it takes a fraction of the time.
std::filesystem::path EmptyData(bool mysql) {
  if (mysql) {
    static const TempDir dir;
    static const bool made = (InstallMySql(dir), true);
    return made ? dir / "data" : "";
  }
  static const TempDir dir;
  static const bool made = (InstallMariaDb(dir), true);
  return made ? dir / "data" : "";
}

/// Returns the program and the arguments that only one engine has.
std::vector<std::string> ProgramOf(bool mysql) {
  if (!mysql) return {"mariadbd", "--no-defaults", "--performance-schema=OFF", kLogSize};
  // The variable tells the server that this process starts it again (Supervise). MySQL writes a binary log
  // unless it is told not to; a test that needs one says so in its arguments.
  return {"env",
          fmt::format("MYSQLD_PARENT_PID={}", ::getpid()),
          MySqlProgram(),
          "--mysqlx=OFF",
          "--skip-log-bin",
          "--cte-max-recursion-depth=10000000",
          kMySqlLogSize};
}

}  // namespace

bool OnMySql() {
  const char* const folder = std::getenv("KV_TEST_MYSQL");
  return folder != nullptr && *folder != '\0';
}

MariaDbServer::MariaDbServer(std::vector<std::string> arguments, bool mysql)
    : mysql_(mysql), port_(FreePort()), arguments_(mysql ? MySqlArguments(arguments) : std::move(arguments)) {
  // Each server has a folder of its own for temporary files, since a server that starts removes those it
  // finds.
  std::filesystem::create_directory(dir_ / "tmp");
  std::filesystem::copy(EmptyData(mysql_), data(), std::filesystem::copy_options::recursive);
  Start();
}

MariaDbServer::~MariaDbServer() { Kill(); }

void MariaDbServer::Start() {
  Launch();
  // If it throws, the process is gone.
  pid_t process = process_.exchange(-1);
  AwaitServer(process, mysql_ ? "MySQL" : "MariaDB", dir_ / "log.err", [this] { return Serves(); });
  process_ = process;
  killed_ = false;
  const bool may_restart = std::any_of(arguments_.begin(), arguments_.end(), [](const std::string& one) {
    return one.find("mysql_clone") != std::string::npos;
  });
  if (may_restart) supervisor_ = std::thread([this] { Supervise(); });
}

void MariaDbServer::Supervise() {
  while (!killed_) {
    if (const std::optional<Exit> ended = process_ > 0 ? Ended(process_) : std::nullopt) {
      process_ = -1;
      constexpr int kRestart = 16;  // the code that asks the service manager for a start
      if (ended->code == kRestart) Launch();
    }
    ::usleep(50'000);
  }
}

void MariaDbServer::Launch() {
  std::vector<std::string> command = ProgramOf(mysql_);
  const std::vector<std::string> common = {
      "--user=root", "--datadir=" + data().string(), "--tmpdir=" + (dir_ / "tmp").string(),
      "--socket=" + (dir_ / "socket").string(), fmt::format("--port={}", port_), "--bind-address=127.0.0.1",
      "--skip-name-resolve", "--max-connections=500",
      // Tests need little memory, and need not survive a power cut.
      "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", "--innodb-file-per-table=0",
      "--log-error=" + (dir_ / "log.err").string()};
  for (const auto& more : {common, arguments_}) command.insert(command.end(), more.begin(), more.end());
  // With this signal ignored, the server gets an error when a file would exceed LimitFiles.
  ::signal(SIGXFSZ, SIG_IGN);
  process_ = ForkProgram(command, (dir_ / "out").string());
}

void MariaDbServer::Kill() {
  killed_ = true;
  if (supervisor_.joinable()) supervisor_.join();
  if (process_ > 0) testing::Kill(process_);
  process_ = -1;
}

void MariaDbServer::LimitFiles(uint64_t bytes) {
  const rlimit limit{bytes > 0 ? bytes : RLIM_INFINITY, RLIM_INFINITY};
  if (::prlimit(process_, RLIMIT_FSIZE, &limit, nullptr) != 0) throw std::runtime_error("prlimit");
}

void MariaDbServer::Pause() {
  ::kill(process_, SIGSTOP);
  // Waits until the last of the server's threads has stopped.
  Eventually([this] {
    for (const auto& task :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process_.load()))) {
      std::ifstream stat(task.path() / "stat");
      const std::string text{std::istreambuf_iterator<char>(stat), {}};
      const size_t name_end = text.rfind(") ");
      if (name_end != std::string::npos && text[name_end + 2] != 'T') return false;
    }
    return true;
  });
}
void MariaDbServer::Resume() { ::kill(process_, SIGCONT); }

bool MariaDbServer::Serves() const {
  return RunProgram({"mariadb-admin", "--no-defaults", "--socket=" + (dir_ / "socket").string(),
                     "--user=root", "ping"})
             .code == 0;
}

std::string MariaDbServer::Run(const std::string& sql) const {
  const Output output = RunProgram({"mariadb", "--no-defaults", "--socket=" + (dir_ / "socket").string(),
                                    "--user=root", "--batch", "--skip-column-names", "mysql"},
                                   mysql_ ? InMySqlWords(sql) : sql);
  if (output.code != 0) throw std::runtime_error(output.err);
  return output.out;
}

}  // namespace kvstore::testing
