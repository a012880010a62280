#include "shardops/copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "backends/mysql/tables.h"

namespace kvstore::shardops {
namespace {

/// Held by the session that loads: who removes what it has made waits for it.
constexpr char kLoading[] = "kvstore_loading";
constexpr size_t kBlock = size_t{1} << 20;
/// The dump names its position at the beginning.
constexpr size_t kHeader = size_t{64} << 10;

/// A file descriptor, closed when this goes.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

/// A file that has no name, and nobody else reads.
Descriptor Unnamed(const std::string& text) {
  Descriptor file(::memfd_create("kvstore", 0));
  ::fchmod(file.get(), S_IRUSR | S_IWUSR);  // the programs refuse one that others could write
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) file.Close();
  return file;
}

std::string ReadAll(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  std::string text(static_cast<size_t>(status.st_size), '\0');
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// Whom the programs connect to, and as whom: not on the command line, where everyone could read it.
std::string OptionFile(const Host& host, const mysql::MySqlOptions& login) {
  const auto quoted = [](const std::string& text) {
    std::string escaped;
    for (const char c : text) {
      if (c == '"' || c == '\\') escaped += '\\';
      escaped += c;
    }
    return '"' + escaped + '"';
  };
  std::string text =
      fmt::format("[client]\nhost={}\nport={}\nprotocol=tcp\nuser={}\npassword={}\nmax-allowed-packet=1G\n",
                  quoted(host.name), host.port, quoted(login.user), quoted(login.password));
  if (login.tls.required) {
    text += "ssl\n";
    if (!login.tls.ca.empty())
      text += fmt::format("ssl-ca={}\nssl-verify-server-cert\n", quoted(login.tls.ca));
    if (!login.tls.cert.empty()) text += fmt::format("ssl-cert={}\n", quoted(login.tls.cert));
    if (!login.tls.key.empty()) text += fmt::format("ssl-key={}\n", quoted(login.tls.key));
  }
  return text;
}

/// A program that runs beside this one, and ends with it.
class Program {
 public:
  /// in, out  its standard input and output; -1: none.
  Program(std::vector<std::string> command, int in, int out)
      : name_(command.front()), errors_(::memfd_create("kvstore", MFD_CLOEXEC)) {
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (in >= 0) ::dup2(in, STDIN_FILENO);
    if (out >= 0) ::dup2(out, STDOUT_FILENO);
    ::dup2(errors_.get(), STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(kNotFound);
  }
  ~Program() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits until it ends.
  absl::Status Join() {
    int result = 0;
    if (process_ <= 0 || ::waitpid(std::exchange(process_, -1), &result, 0) < 0) {
      return absl::InternalError(name_ + ": cannot be run");
    }
    if (WIFEXITED(result) && WEXITSTATUS(result) == 0) return absl::OkStatus();
    if (WIFEXITED(result) && WEXITSTATUS(result) == kNotFound) {
      return absl::FailedPreconditionError(name_ + ": is not installed (Debian: mariadb-client)");
    }
    // It may show the statement first, which is long.
    const std::string text = ReadAll(errors_.get());
    const size_t error = text.rfind("ERROR ");
    return absl::InternalError(
        fmt::format("{}: {}", name_, error == std::string::npos ? text : text.substr(error)));
  }

 private:
  static constexpr int kNotFound = 127;
  const std::string name_;
  const Descriptor errors_;
  pid_t process_ = -1;
};

/// "... MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=42177742;" of a dump's beginning.
std::optional<Position> FindPosition(std::string_view header) {
  constexpr std::string_view kFile = "MASTER_LOG_FILE='";
  constexpr std::string_view kOffset = "', MASTER_LOG_POS=";
  const size_t file = header.find(kFile);
  if (file == std::string_view::npos) return std::nullopt;
  const std::string_view rest = header.substr(file + kFile.size());
  const size_t offset = rest.find(kOffset);
  if (offset == std::string_view::npos || rest.find(';', offset) == std::string_view::npos)
    return std::nullopt;
  Position position{std::string(rest.substr(0, offset)), 0};
  const char* const digits = rest.data() + offset + kOffset.size();
  if (std::from_chars(digits, rest.data() + rest.size(), position.offset).ec != std::errc())
    return std::nullopt;
  return position;
}

bool SendAll(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

std::string FileOf(const Descriptor& options) {
  return fmt::format("--defaults-file=/proc/self/fd/{}", options.get());
}

std::vector<std::string> DumpCommand(const Descriptor& options, const std::vector<std::string>& databases) {
  std::vector<std::string> command = {"mariadb-dump",    FileOf(options), "--single-transaction",
                                      "--master-data=2", "--routines",    "--databases"};
  command.insert(command.end(), databases.begin(), databases.end());
  return command;
}

std::vector<std::string> LoadCommand(const Descriptor& options, bool unlogged) {
  return {"mariadb", FileOf(options), "--default-character-set=utf8mb4", "--binary-mode",
          fmt::format("--init-command=SET @loading = GET_LOCK('{}', 60){}", kLoading,
                      unlogged ? ", SESSION sql_log_bin = 0" : "")};
}

absl::StatusOr<std::vector<std::string>> AllDatabases(const Host& source, const Access& access) {
  const auto admin = HostAdmin::Open(source, access);
  if (!admin.ok()) return admin.status();
  return (*admin)->Do([](mysql::Connection& connection) -> absl::StatusOr<std::vector<std::string>> {
    std::vector<std::string> names;
    mysql::Rows rows = connection.Ask(
        "SELECT schema_name FROM information_schema.schemata "
        "WHERE schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')");
    while (rows.Next()) names.push_back(rows.Bytes(1));
    return names;
  });
}

/// "'kvstore'@'10.%'" of all users but the servers' own.
absl::StatusOr<std::set<std::string>> Users(HostAdmin& host) {
  return host.Do([](mysql::Connection& connection) -> absl::StatusOr<std::set<std::string>> {
    std::set<std::string> names;
    mysql::Rows rows = connection.Ask(
        "SELECT user, host FROM mysql.user WHERE is_role = 'N' AND user NOT IN ('root', 'mysql', "
        "'mariadb.sys')");
    while (rows.Next()) names.insert(fmt::format("{}@{}", Quoted(rows.Bytes(1)), Quoted(rows.Bytes(2))));
    return names;
  });
}

/// Runs a dump into a load. The position of the dump, if it has one.
absl::StatusOr<std::optional<Position>> Pipe(const std::vector<std::string>& dump,
                                             const std::vector<std::string>& load,
                                             const std::function<bool(uint64_t)>& progress) {
  std::array<int, 2> from{};
  std::array<int, 2> to{};
  if (::pipe2(from.data(), O_CLOEXEC) != 0) return absl::ResourceExhaustedError(std::strerror(errno));
  Descriptor output(from[0]);
  Descriptor output_end(from[1]);
  // Not a pipe: writing to one whose reader has died would end this process.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to.data()) != 0) {
    return absl::ResourceExhaustedError(std::strerror(errno));
  }
  Descriptor input(to[0]);
  Descriptor input_end(to[1]);
  Program loading(load, input_end.get(), -1);
  Program dumping(dump, -1, output_end.get());
  output_end.Close();
  input_end.Close();
  const auto block = std::make_unique<std::array<char, kBlock>>();
  std::string header;
  uint64_t bytes = 0;
  for (;;) {
    const ssize_t size = ::read(output.get(), block->data(), block->size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    if (header.size() < kHeader) header.append(block->data(), std::min<size_t>(size, kHeader));
    if (!SendAll(input.get(), block->data(), static_cast<size_t>(size))) {
      // It has ended, and knows why.
      auto status = loading.Join();
      return status.ok() ? absl::InternalError("mariadb: ended before the copy did") : status;
    }
    bytes += static_cast<uint64_t>(size);
    if (progress && !progress(bytes)) return absl::CancelledError("was stopped");
  }
  if (auto status = dumping.Join(); !status.ok()) return status;
  input.Close();
  if (auto status = loading.Join(); !status.ok()) return status;
  return FindPosition(header);
}

}  // namespace

absl::StatusOr<Position> CopyDatabases(const Host& source, const Host& target, const Access& access,
                                       const CopyOptions& options) {
  std::vector<std::string> databases = options.databases;
  if (databases.empty()) {
    auto all = AllDatabases(source, access);
    if (!all.ok()) return all.status();
    databases = *std::move(all);
  }
  const Descriptor from = Unnamed(OptionFile(source, access.admin));
  const Descriptor to = Unnamed(OptionFile(target, access.admin));
  const std::vector<std::string> load = LoadCommand(to, options.unlogged);
  const auto position = Pipe(DumpCommand(from, databases), load, options.progress);
  if (!position.ok()) return position.status();
  if (!*position) {
    return absl::InternalError(
        fmt::format("mariadb-dump: names no position of {}'s binary log", source.ToString()));
  }
  return **position;
}

absl::Status CopyUsers(HostAdmin& source, HostAdmin& target) {
  const auto here = Users(source);
  if (!here.ok()) return here.status();
  const auto there = Users(target);
  if (!there.ok()) return there.status();
  std::vector<std::string> statements;
  std::string missing;
  const absl::Status read = source.Do([&](mysql::Connection& connection) {
    for (const std::string& name : *here) {
      if (there->contains(name)) continue;
      missing += (missing.empty() ? "" : ", ") + name;
      mysql::Rows made = connection.Ask("SHOW CREATE USER " + name);
      if (made.Next()) statements.push_back(made.Bytes(1));
      mysql::Rows rights = connection.Ask("SHOW GRANTS FOR " + name);
      while (rights.Next()) statements.push_back(rights.Bytes(1));
    }
    return absl::OkStatus();
  });
  if (!read.ok() || statements.empty()) return read;
  const absl::Status made = target.Do([&](mysql::Connection& connection) {
    connection.Run("SET SESSION sql_log_bin = 0");
    for (const std::string& statement : statements) connection.Run(statement);
    connection.Run("SET SESSION sql_log_bin = 1");
    return absl::OkStatus();
  });
  if (made.ok()) return made;
  return absl::Status(
      made.code(), fmt::format("{}\nThe operator's login cannot make users there (WITH GRANT OPTION): make "
                               "{} with the rights that they have at {}",
                               std::string(made.message()), missing, source.host().ToString()));
}

absl::Status DropDatabases(HostAdmin& host, const std::vector<std::string>& databases, bool unlogged) {
  return host.Do([&](mysql::Connection& connection) {
    mysql::Rows loading = connection.Ask(fmt::format("SELECT GET_LOCK('{}', 10)", kLoading));
    if (!loading.Next() || loading.IsNull(1) || loading.Uint(1) != 1) {
      return absl::UnavailableError(host.host().ToString() + ": is being copied to");
    }
    if (unlogged) connection.Run("SET SESSION sql_log_bin = 0");
    for (const std::string& name : databases) connection.Run("DROP DATABASE IF EXISTS " + mysql::Quote(name));
    if (unlogged) connection.Run("SET SESSION sql_log_bin = 1");
    connection.Run(fmt::format("DO RELEASE_LOCK('{}')", kLoading));
    return absl::OkStatus();
  });
}

}  // namespace kvstore::shardops
