#include "fleet_backup/scratch_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/mysql/driver/errors.h"
#include "base/files.h"
#include "blobstore/descriptor.h"
#include "kvstore_api/call_scope.h"
#include "shardops/option_file.h"
#include "shardops/quoted.h"

namespace kvstore::fleet_backup {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kServesInterval{50};
/// How long an orderly end may take: changed pages are written.
constexpr std::chrono::hours kMaxStop{1};
constexpr uint32_t kDay = 86'400;
/// As much of the end of the server's log is told.
constexpr size_t kToldLogBytes = 1'500;

/// Returns a port of the loopback interface that nobody uses now; 0 if there is none.
uint16_t UnusedPort() {
  const Descriptor open(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const bytes = reinterpret_cast<sockaddr*>(&address);
  if (::bind(open.get(), bytes, size) != 0 || ::getsockname(open.get(), bytes, &size) != 0) return 0;
  return ntohs(address.sin_port);
}

/// Has upper and lower case, digits and a sign, as plugins of the restored server may ask for.
std::string NewPassword() {
  std::random_device device;
  return fmt::format("Kv-{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

/// The settings without which the server could not read its files, from the file that mariadb-backup has put
/// beside them.
std::string InnoDbSettings(const fs::path& data) {
  std::istringstream lines(ReadFile(data / "backup-my.cnf").value_or(""));
  std::string settings;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("innodb_")) settings += "loose-" + line + "\n";
  }
  std::error_code error;
  // Tables of MyRocks need its plugin, which the configuration of the server that was backed up loads.
  if (fs::exists(data / "#rocksdb", error))
    settings += "plugin-maturity=unknown\nplugin-load-add=ha_rocksdb\n";
  return settings;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchServer>> ScratchServer::Start(const fs::path& folder) {
  const std::string socket = (folder / "socket").string();
  if (socket.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(fmt::format(
        "to: {} is too long by {} bytes for the name of a socket; choose a folder with a shorter path",
        socket, socket.size() - sizeof(sockaddr_un::sun_path) + 1));
  }
  const uint16_t port = UnusedPort();
  if (port == 0) return absl::ResourceExhaustedError("there is no free port for a server on this machine");
  std::unique_ptr<ScratchServer> server(new ScratchServer(folder, port, NewPassword()));
  if (auto status = server->WriteOptions(); !status.ok()) return status;
  if (auto status = server->Launch(); !status.ok()) return status;
  return server;
}

absl::Status ScratchServer::WriteOptions() const {
  std::error_code error;
  fs::create_directories(folder_ / "tmp", error);
  if (error) return FileError(folder_ / "tmp", "create", error.value());
  const auto quoted = [this](const char* name) { return shardops::OptionValue((folder_ / name).string()); };
  const std::string text = fmt::format(
      "# A MariaDB server on what was restored here: mariadbd --defaults-file=THIS_FILE\n"
      "# To look at it: mariadb --defaults-file=THIS_FILE\n"
      "[mysqld]\n{}datadir={}\ntmpdir={}\nsocket={}\npid-file={}\nlog-error={}\n"
      "bind-address=127.0.0.1\nport={}\nskip-name-resolve\nskip-log-bin\nskip-slave-start\n"
      "max-allowed-packet=1G\nperformance-schema=OFF\n"
      "innodb-buffer-pool-size=512M\ninnodb-flush-log-at-trx-commit=2\n{}"
      "[client]\nsocket={}\nuser={}\npassword={}\nloose-max-allowed-packet=1G\n",
      ::geteuid() == 0 ? "user=root\n" : "", quoted("mysql"), quoted("tmp"), quoted("socket"), quoted("pid"),
      quoted("server.log"), port_, InnoDbSettings(folder_ / "mysql"), quoted("socket"), kUser,
      shardops::OptionValue(password_));
  return ReplaceFile(options_file(), text);
}

absl::Status ScratchServer::Launch() {
  const fs::path init = folder_ / "init.sql";
  std::string users;
  for (const char* const from : {"localhost", "127.0.0.1"}) {
    users += fmt::format(
        "CREATE OR REPLACE USER {0}@'{1}' IDENTIFIED BY {2};\n"
        "GRANT ALL ON *.* TO {0}@'{1}' WITH GRANT OPTION;\n",
        kUser, from, shardops::Quoted(password_));
  }
  if (auto status = ReplaceFile(init, users); !status.ok()) return status;
  program_ = std::make_unique<shardops::Program>(
      std::vector<std::string>{"mariadbd", "--defaults-file=" + options_file().string(),
                               "--init-file=" + init.string()},
      -1, -1);
  absl::Status status;
  for (;;) {
    status = CheckCall();
    if (!status.ok()) break;
    // It fails while the server starts.
    if (Connect().ok()) break;
    if (auto ended = program_->TryJoin()) {
      program_.reset();
      status = ended->ok() ? absl::InternalError("mariadbd: it has ended") : WithLog(*ended);
      break;
    }
    std::this_thread::sleep_for(kServesInterval);
  }
  std::error_code ignored;
  fs::remove(init, ignored);
  return status;
}

absl::Status ScratchServer::WithLog(const absl::Status& status) const {
  std::string log = ReadFile(folder_ / "server.log").value_or("");
  if (log.empty()) return status;
  if (log.size() > kToldLogBytes) log = "..." + log.substr(log.size() - kToldLogBytes);
  return absl::Status(status.code(), absl::StrCat(status.message(), "\n", log));
}

absl::StatusOr<std::unique_ptr<mysql::Connection>> ScratchServer::Connect() const {
  mysql::MySqlOptions options{.user = kUser, .password = password_, .any_role = true};
  options.pool.read_timeout_s = kDay;
  return mysql::Connection::Open(host(), options);
}

absl::Status ScratchServer::Run(const std::vector<std::string>& statements) const {
  const auto connection = Connect();
  if (!connection.ok()) return connection.status();
  try {
    for (const std::string& statement : statements) {
      if (auto status = CheckCall(); !status.ok()) return status;
      (*connection)->Run(statement);
    }
  } catch (const sql::SQLException& error) {
    return mysql::ToStatus(error);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ScratchServer::Ask(std::string_view statement) const {
  const auto connection = Connect();
  if (!connection.ok()) return connection.status();
  try {
    std::vector<std::string> values;
    mysql::Rows rows = (*connection)->Ask(std::string(statement));
    while (rows.Next()) values.push_back(rows.Bytes(1));
    return values;
  } catch (const sql::SQLException& error) {
    return mysql::ToStatus(error);
  }
}

absl::Status ScratchServer::DropUser() const {
  return Run({fmt::format("DROP USER {0}@'localhost', {0}@'127.0.0.1'", kUser)});
}

absl::Status ScratchServer::Stop() {
  program_->Terminate();
  const auto until = std::chrono::steady_clock::now() + kMaxStop;
  for (;;) {
    if (auto ended = program_->TryJoin()) {
      program_.reset();
      return ended->ok() ? absl::OkStatus() : WithLog(*ended);
    }
    if (auto status = CheckCall(); !status.ok()) return status;
    if (std::chrono::steady_clock::now() > until) {
      return WithLog(absl::DeadlineExceededError("mariadbd: it does not end"));
    }
    std::this_thread::sleep_for(kServesInterval);
  }
}

}  // namespace kvstore::fleet_backup
