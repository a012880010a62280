#include "fleet_backup/host_restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/mysql/driver/tables.h"
#include "backup/restore_folder.h"
#include "base/fail_point.h"
#include "base/files.h"
#include "fleet_backup/stream_extract.h"
#include "shardops/gtid.h"
#include "shardops/pipe.h"
#include "shardops/program.h"
#include "shardops/quoted.h"

namespace kvstore::fleet_backup {
namespace {

namespace fs = std::filesystem;

/// Databases that belong to the server.
constexpr std::array<std::string_view, 4> kOwnDatabases = {"information_schema", "mysql",
                                                           "performance_schema", "sys"};
/// Files of a restored server that only a ScratchServer needs.
constexpr const char* kScratchFiles[] = {"my.cnf", "socket", "pid", "server.log", "tmp"};

/// One run of RestoreHost.
class HostRestore {
 public:
  HostRestore(const backup::Manifest& manifest, BlobStore& blobs, fs::path folder,
              const HostRestoreOptions& options)
      : manifest_(manifest), blobs_(blobs), folder_(std::move(folder)), options_(options) {}
  /// Removes what is not of use to anybody.
  ~HostRestore() {
    if (!begun_ || usable_) return;
    std::error_code ignored;
    for (const char* const name : {"mysql", "log"}) fs::remove_all(folder_ / name, ignored);
    backup::EndRestoreFolder(folder_);
  }
  HostRestore(const HostRestore&) = delete;
  HostRestore& operator=(const HostRestore&) = delete;

  absl::StatusOr<RestoredHost> Run(const WithServer& with_server) {
    absl::Status status = FetchData();
    if (status.ok()) status = RunServer(with_server);
    if (status.ok()) {
      Reached("host-restore-done");
      backup::EndRestoreFolder(folder_);
      return std::move(restored_);
    }
    if (!usable_) return status;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), "\nWhat was restored so far is left in ",
                                     folder_.string(), "; remove it before the next attempt"));
  }

 private:
  fs::path data() const { return folder_ / "mysql"; }
  void Report(const std::string& line) const {
    if (options_.report) options_.report(line);
  }
  bool ShowProgress(std::string_view step, uint64_t done, uint64_t total) const {
    return !options_.progress || options_.progress(step, done, total);
  }

  /// Fetches the log and the data, and makes the data whole.
  absl::Status FetchData() {
    const std::string what = fmt::format("backup {} of {}", manifest_.id, blobs_.url());
    if (auto status = backup::BeginRestoreFolder(folder_, manifest_.server->bytes, what); !status.ok()) {
      return status;
    }
    begun_ = true;
    if (auto status = ReadNodes(); !status.ok()) return status;
    // The log first: whether it has all that is needed is known before the data is fetched, which takes long.
    if (auto status = FetchLog(); !status.ok()) return status;
    std::error_code error;
    fs::create_directory(data(), error);
    if (error) return FileError(data(), "create", error.value());
    Report(fmt::format("fetching the backup {} of {}", manifest_.id, manifest_.server->host));
    absl::Status extracted = ExtractStream(manifest_, blobs_, data(), [this](uint64_t done, uint64_t total) {
      return ShowProgress("restore", done, total);
    });
    if (!extracted.ok()) return extracted;
    Report("making its files whole (mariadb-backup --prepare)");
    Reached("host-restore-prepare");
    shardops::Program prepare({"mariadb-backup", "--prepare", "--target-dir=" + data().string()}, -1, -1);
    absl::Status prepared = prepare.Join();
    usable_ = prepared.ok();
    return prepared;
  }

  absl::Status ReadNodes() {
    auto text = ReadNodesFile(manifest_, blobs_);
    if (!text.ok()) return text.status();
    auto nodes = DecodeSharedNodes(*text);
    if (!nodes.ok()) return nodes.status();
    restored_.nodes = *std::move(nodes);
    return absl::OkStatus();
  }

  absl::Status FetchLog() {
    restored_.log.as_of_ms = manifest_.began_ms;
    restored_.log.last = manifest_.server->gtid;
    if (options_.at_ms == 0) return absl::OkStatus();
    Reached("host-restore-log");
    auto log = SpoolLog(blobs_, manifest_, options_.at_ms, folder_ / "log");
    if (!log.ok()) return log.status();
    if (!log->nodes.empty()) {
      auto nodes = DecodeSharedNodes(log->nodes);
      if (!nodes.ok()) return nodes.status();
      restored_.nodes = *std::move(nodes);
    }
    restored_.log = *std::move(log);
    return absl::OkStatus();
  }

  /// Plays the log and drops what is not wanted, in a server on the data.
  absl::Status RunServer(const WithServer& with_server) {
    Reached("host-restore-server");
    auto server = ScratchServer::Start(folder_);
    if (!server.ok()) return server.status();
    if (auto status = Play(**server); !status.ok()) return status;
    if (options_.shards) {
      if (auto status = CutOut(**server, *options_.shards); !status.ok()) return status;
    }
    // The server replicates from here, should it become a part of the fleet.
    const std::string position =
        fmt::format("SET GLOBAL gtid_slave_pos = {}", shardops::Quoted(restored_.gtid));
    if (auto status = (*server)->Run({position}); !status.ok()) return status;
    if (with_server) {
      if (auto status = with_server(**server, restored_); !status.ok()) return status;
    }
    if (!options_.shards) {
      if (auto status = (*server)->DropUser(); !status.ok()) return status;
    }
    if (auto status = (*server)->Stop(); !status.ok()) return status;
    if (options_.shards) return absl::OkStatus();
    std::error_code ignored;
    for (const char* const name : kScratchFiles) fs::remove_all(folder_ / name, ignored);
    return absl::OkStatus();
  }

  absl::Status Play(ScratchServer& server) {
    const auto position = server.Ask("SELECT @@GLOBAL.gtid_slave_pos");
    if (!position.ok()) return position.status();
    // The position of the manifest has what the host has written as a master; that of the server has what was
    // committed in the moment in which the backup was made.
    const std::string has = shardops::LatestOfEachDomain(position->front(), manifest_.server->gtid);
    restored_.gtid = shardops::LatestOfEachDomain(has, restored_.log.last);
    if (restored_.log.files.empty()) return absl::OkStatus();
    if (auto status = TrimLog(restored_.log, has); !status.ok()) return status;
    Report(fmt::format("playing {} transactions of the binary log", restored_.log.transactions));
    Reached("host-restore-play");
    std::vector<std::string> read = {"mariadb-binlog", "--no-defaults"};
    for (const fs::path& file : restored_.log.files) read.push_back(file.string());
    const std::vector<std::string> execute = {"mariadb", "--defaults-file=" + server.options_file().string(),
                                              "--binary-mode"};
    return shardops::Pipe(read, execute, [this](uint64_t bytes) { return ShowProgress("play", bytes, 0); })
        .status();
  }

  static absl::StatusOr<bool> HasTables(ScratchServer& server, const std::string& database) {
    const auto tables =
        server.Ask(fmt::format("SELECT 1 FROM information_schema.tables WHERE table_schema = {} LIMIT 1",
                               shardops::Quoted(database)));
    if (!tables.ok()) return tables.status();
    return !tables->empty();
  }

  /// Drops all databases but those of the shards.
  absl::Status CutOut(ScratchServer& server, const shardops::MoveRange& shards) {
    const auto databases = server.Ask("SELECT schema_name FROM information_schema.schemata");
    if (!databases.ok()) return databases.status();
    const std::set<std::string> there(databases->begin(), databases->end());
    const std::vector<std::string> names = shards.Databases();
    const std::set<std::string> wanted(names.begin(), names.end());
    for (const std::string& name : wanted) {
      const bool moved = there.contains(mysql::MovedName(name));
      // The tables of a shard that has moved away are put into another database, and its own stays.
      const auto has = HasTables(server, name);
      if (!has.ok()) return has.status();
      if (there.contains(name) && (*has || !moved)) continue;
      return absl::FailedPreconditionError(fmt::format(
          "shards: {} did not have {} at that time{}", manifest_.server->host, name,
          moved ? ": the shard had moved away; restore it from the pair that it moved to, with --host" : ""));
    }
    std::vector<std::string> statements;
    for (const std::string& name : there) {
      const bool own = std::find(kOwnDatabases.begin(), kOwnDatabases.end(), name) != kOwnDatabases.end();
      if (!own && !wanted.contains(name)) statements.push_back("DROP DATABASE " + mysql::Quote(name));
    }
    Report(fmt::format("dropping the {} databases of other shards", statements.size()));
    Reached("host-restore-cut");
    return server.Run(statements);
  }

  const backup::Manifest& manifest_;
  BlobStore& blobs_;
  const fs::path folder_;
  const HostRestoreOptions& options_;
  RestoredHost restored_;
  bool begun_ = false;
  bool usable_ = false;  // the data is whole
};

}  // namespace

absl::StatusOr<RestoredHost> RestoreHost(const backup::Manifest& manifest, BlobStore& blobs,
                                         const fs::path& folder, const HostRestoreOptions& options,
                                         const WithServer& with_server) {
  if (!manifest.server) {
    return absl::InvalidArgumentError(fmt::format("backup: {} is not one of a MySQL server", manifest.id));
  }
  if (options.at_ms != 0 && manifest.finished_ms > options.at_ms) {
    return absl::InvalidArgumentError(
        fmt::format("at: the backup {} was finished later; name an older one, or none", manifest.id));
  }
  return HostRestore(manifest, blobs, backup::FolderPath(folder), options).Run(with_server);
}

}  // namespace kvstore::fleet_backup
