#include "shardops/copy.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "backends/mysql/driver/tables.h"
#include "shardops/option_file.h"
#include "shardops/pipe.h"

namespace kvstore::shardops {
namespace {

/// Returns the options by which a client logs in to a host.
std::string ClientOptions(const Host& host, const Access& access) {
  return OptionFile("client", host, access.admin, "protocol=tcp\nmax-allowed-packet=1G\n");
}

/// Finds the position that a dump names near its beginning: "... MASTER_LOG_FILE='binlog.000001',
/// MASTER_LOG_POS=42177742;". Returns nullopt if it names none.
std::optional<Position> FindPosition(std::string_view header) {
  constexpr std::string_view kFile = "MASTER_LOG_FILE='";
  constexpr std::string_view kOffset = "', MASTER_LOG_POS=";
  const size_t file = header.find(kFile);
  if (file == std::string_view::npos) return std::nullopt;
  const std::string_view rest = header.substr(file + kFile.size());
  const size_t offset = rest.find(kOffset);
  if (offset == std::string_view::npos || rest.find(';', offset) == std::string_view::npos)
    return std::nullopt;
  Position position{.file = std::string(rest.substr(0, offset)), .offset = 0, .gtids = {}};
  const char* const digits = rest.data() + offset + kOffset.size();
  if (std::from_chars(digits, rest.data() + rest.size(), position.offset).ec != std::errc())
    return std::nullopt;
  return position;
}

std::string FileOf(const UnnamedFile& options) { return "--defaults-file=" + options.path(); }

std::vector<std::string> DumpCommand(const UnnamedFile& options, const std::vector<std::string>& databases) {
  std::vector<std::string> command = {"mariadb-dump",    FileOf(options), "--single-transaction",
                                      "--master-data=2", "--routines",    "--databases"};
  command.insert(command.end(), databases.begin(), databases.end());
  return command;
}

/// The command checks the claim when its connection begins, and fails if the target is not claimed by this
/// operator any more: a process that was suspended for long must not load into a host that another operator
/// may have made a master by now. It takes the lock kLoadingLock first, so that from the check on
/// DropDatabases waits until the load ends. (A subquery with two rows is what makes the init command fail.)
std::vector<std::string> LoadCommand(const UnnamedFile& options, uint64_t claim, bool unlogged) {
  return {"mariadb", FileOf(options), "--default-character-set=utf8mb4", "--binary-mode",
          fmt::format("--init-command=SET @loading = GET_LOCK('{}', 60), @claimed = IF(IS_USED_LOCK('{}') "
                      "<=> {}, 1, (SELECT 1 "
                      "UNION SELECT 2)){}",
                      kLoadingLock, kOperatorLock, claim, unlogged ? ", SESSION sql_log_bin = 0" : "")};
}

/// Returns all users but the server's own, as "'kvstore'@'10.%'".
absl::StatusOr<std::set<std::string>> Users(HostAdmin& host) {
  return host.WithConnection([](mysql::Connection& connection) -> absl::StatusOr<std::set<std::string>> {
    std::set<std::string> names;
    mysql::Rows rows = connection.Ask(
        "SELECT user, host FROM mysql.user WHERE is_role = 'N' AND user NOT IN ('root', 'mysql', "
        "'mariadb.sys')");
    while (rows.Next()) names.insert(fmt::format("{}@{}", Quoted(rows.Bytes(1)), Quoted(rows.Bytes(2))));
    return names;
  });
}

}  // namespace

absl::StatusOr<Position> CopyDatabases(const Host& source, const Host& target, const Access& access,
                                       const CopyOptions& options) {
  std::vector<std::string> databases = options.databases;
  if (databases.empty()) {
    const auto admin = HostAdmin::Open(source, access);
    if (!admin.ok()) return admin.status();
    auto all = (*admin)->ReadDatabases();
    if (!all.ok()) return all.status();
    databases = *std::move(all);
  }
  const UnnamedFile from(ClientOptions(source, access));
  const UnnamedFile to(ClientOptions(target, access));
  const std::vector<std::string> load = LoadCommand(to, options.claim, options.unlogged);
  // The beginning of the dump, which Pipe returns, names the snapshot's position.
  const auto header = Pipe(DumpCommand(from, databases), load, options.progress);
  if (!header.ok()) return header.status();
  const auto position = FindPosition(*header);
  if (!position) {
    return absl::InternalError(fmt::format(
        "mariadb-dump: its output does not name a position of the binary log of {}", source.ToString()));
  }
  return *position;
}

absl::Status CopyUsers(HostAdmin& source, HostAdmin& target) {
  const auto here = Users(source);
  if (!here.ok()) return here.status();
  const auto there = Users(target);
  if (!there.ok()) return there.status();
  std::vector<std::string> statements;
  std::string missing;
  absl::Status read = source.WithConnection([&](mysql::Connection& connection) {
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
  absl::Status made = target.WithConnection([&](mysql::Connection& connection) {
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
  return host.WithConnection([&](mysql::Connection& connection) {
    mysql::Rows loading = connection.Ask(fmt::format("SELECT GET_LOCK('{}', 10)", kLoadingLock));
    if (!loading.Next() || loading.IsNull(1) || loading.Uint(1) != 1) {
      return absl::UnavailableError(
          fmt::format("{}: a copy of an earlier command, which has died, is still being loaded: run this "
                      "command again when that has ended",
                      host.host().ToString()));
    }
    if (unlogged) connection.Run("SET SESSION sql_log_bin = 0");
    for (const std::string& name : databases) connection.Run("DROP DATABASE IF EXISTS " + mysql::Quote(name));
    if (unlogged) connection.Run("SET SESSION sql_log_bin = 1");
    connection.Run(fmt::format("DO RELEASE_LOCK('{}')", kLoadingLock));
    return absl::OkStatus();
  });
}

}  // namespace kvstore::shardops
