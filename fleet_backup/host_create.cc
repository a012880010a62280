#include "fleet_backup/host_create.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "backup/destination.h"
#include "backup/layout.h"
#include "backup/list.h"
#include "backup/object_sender.h"
#include "backup/pace.h"
#include "backup/progress_counter.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/files.h"
#include "base/process.h"
#include "base/temporary_folder.h"
#include "blobstore/descriptor.h"
#include "catalog/zookeeper_nodes.h"
#include "fleet_backup/piece_cutter.h"
#include "fleet_backup/piece_sender.h"
#include "kvstore_api/call_scope.h"
#include "shardops/notes.h"
#include "shardops/option_file.h"
#include "shardops/pipe.h"
#include "shardops/program.h"

namespace kvstore::fleet_backup {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
/// How soon a read of the stream notices that the call must end.
constexpr int kPollMs = 100;

/// Reads the file in which mariadb-backup says what it has copied.
absl::StatusOr<std::string> ReadInfo(const std::filesystem::path& folder) {
  auto info = ReadFile(folder / "mariadb_backup_info");
  // Its name before MariaDB 11.1.
  if (absl::IsNotFound(info.status())) info = ReadFile(folder / "xtrabackup_info");
  return info;
}

std::string ThisHost() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Checks that mariadb-backup can read the server's files here.
absl::Status CheckLocal(shardops::HostAdmin& slave) {
  return slave.WithConnection([&](mysql::Connection& connection) -> absl::Status {
    mysql::Rows rows = connection.Ask("SELECT @@hostname, @@datadir");
    rows.Next();
    const std::string name = slave.host().ToString();
    if (const std::string machine = rows.Bytes(1); machine != ThisHost()) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: is on the machine {}, and this is {}: mariadb-backup reads the server's files, so run "
          "this command there",
          name, machine, ThisHost()));
    }
    const std::string folder = rows.Bytes(2);
    if (::access(folder.c_str(), R_OK | X_OK) == 0) return absl::OkStatus();
    return absl::PermissionDeniedError(fmt::format(
        "{}: this user cannot read {} ({}): run this command as the user of the server, or as root", name,
        folder, std::strerror(errno)));
  });
}

absl::Status CheckSlave(shardops::FleetOperator& fleet, const BackedUpPair& pair, shardops::HostAdmin& slave,
                        const shardops::HostState& state) {
  const std::string name = pair.hosts.slave.ToString();
  if (auto status = shardops::CheckReplicates(pair.hosts.slave, state, pair.hosts.master); !status.ok()) {
    return status;
  }
  if (!state.binlog || !state.log_slave_updates) {
    return absl::FailedPreconditionError(
        fmt::format("{}: needs log_bin and log_slave_updates, without which no time after the backup can be "
                    "restored: set them in its configuration, and start it again",
                    name));
  }
  if (auto status = shardops::CheckCopyEnded(fleet, pair.hosts.slave); !status.ok()) return status;
  return CheckLocal(slave);
}

/// Checks that the backups that are there are not of another pair, which has the same GTID domain by mistake.
absl::Status CheckSamePair(shardops::FleetOperator& fleet, const BackedUpPair& pair, BlobStore& blobs) {
  const auto newest = backup::NewestBackup(blobs);
  if (absl::IsNotFound(newest.status())) return absl::OkStatus();
  if (!newest.ok()) return newest.status();
  const auto manifest = backup::ReadManifest(blobs, *newest);
  // One that cannot be read keeps no others from being made.
  if (!manifest.ok() || !manifest->server) return absl::OkStatus();
  const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  for (const shardops::Pair& other : maps->Pairs()) {
    if (other == pair.hosts) continue;
    // Hosts that are in no map any more were replaced by those of now.
    for (const std::string& host : {manifest->server->master, manifest->server->slave}) {
      if (other.master.ToString() != host && other.slave.ToString() != host) continue;
      return absl::FailedPreconditionError(fmt::format(
          "{}: its pair has the GTID domain {}, and so has the pair of {}, whose backups are in {}: "
          "give each pair a gtid_domain_id of its own (docs/runbook.md)",
          pair.hosts.slave.ToString(), pair.domain, host, blobs.url()));
    }
  }
  return absl::OkStatus();
}

/// Reads what a program writes.
class ProgramOutput {
 public:
  static absl::StatusOr<ProgramOutput> Start(std::vector<std::string> command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ResourceExhaustedError(std::strerror(errno));
    Descriptor output(ends[0]);
    const Descriptor input(ends[1]);
    auto program = std::make_unique<shardops::Program>(std::move(command), -1, input.get());
    return ProgramOutput(std::move(program), std::move(output));
  }

  /// Returns how many bytes were read; 0 at the end.
  absl::StatusOr<size_t> Read(char* buffer, size_t size) const {
    for (;;) {
      if (auto status = CheckCall(); !status.ok()) return status;
      pollfd polled{.fd = output_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&polled, 1, kPollMs) <= 0) continue;
      const ssize_t got = ::read(output_.get(), buffer, size);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return absl::UnavailableError(std::strerror(errno));
    }
  }
  absl::Status Join() { return program_->Join(); }

 private:
  ProgramOutput(std::unique_ptr<shardops::Program> program, Descriptor output)
      : program_(std::move(program)), output_(std::move(output)) {}

  std::unique_ptr<shardops::Program> program_;
  Descriptor output_;
};

/// Returns a field of the file in which mariadb-backup says what it has done; empty if there is none.
std::string FieldOf(const std::string& info, std::string_view name) {
  std::istringstream lines(info);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(fmt::format("{} = ", name))) return line.substr(name.size() + 3);
  }
  return "";
}

/// Returns the GTID position in "filename 'binlog.000002', position '1129', GTID of the last change '1-1-5'".
std::optional<std::string> GtidIn(const std::string& position) {
  constexpr std::string_view kBefore = "GTID of the last change '";
  const size_t at = position.find(kBefore);
  if (at == std::string::npos) return std::nullopt;
  const std::string rest = position.substr(at + kBefore.size());
  return rest.substr(0, rest.find('\''));
}

/// One run of CreateHostBackup.
class HostCreate {
 public:
  HostCreate(shardops::FleetOperator& fleet, const BackedUpPair& pair, backup::ObjectSender& sender,
             const HostCreateOptions& options, uint64_t expected_bytes)
      : fleet_(fleet),
        pair_(pair),
        sender_(sender),
        pace_(options.bytes_per_s),
        progress_(options.progress, expected_bytes,
                  "the backup was stopped; the next one goes on where it was") {}

  /// Sends the stream of mariadb-backup, and sets what it says.
  absl::Status SendStream(backup::Manifest& manifest) {
    const auto folder = TemporaryFolder::Make("kv-backup-");
    if (!folder.ok()) return folder.status();
    const shardops::UnnamedFile login(
        shardops::OptionFile("mariadb-backup", pair_.hosts.slave, fleet_.access.admin, ""));
    auto output = ProgramOutput::Start({"mariadb-backup", "--defaults-file=" + login.path(), "--backup",
                                        "--stream=mbstream", "--target-dir=" + (*folder)->path().string(),
                                        "--extra-lsndir=" + (*folder)->path().string()});
    if (!output.ok()) return output.status();
    PieceSender pieces(sender_);
    PieceCutter cutter([&pieces](std::string piece) { return pieces.Add(std::move(piece)); });
    std::string buffer(kReadBytes, '\0');
    for (;;) {
      const auto size = output->Read(buffer.data(), buffer.size());
      if (!size.ok()) return size.status();
      if (*size == 0) break;
      if (auto status = cutter.Add(std::string_view(buffer).substr(0, *size)); !status.ok()) return status;
      if (auto status = pace_.Wait(*size); !status.ok()) return status;
      if (auto status = progress_.Add(*size); !status.ok()) return status;
    }
    if (auto status = output->Join(); !status.ok()) return status;
    if (auto status = cutter.Finish(); !status.ok()) return status;
    auto files = pieces.Finish();
    if (!files.ok()) return files.status();
    manifest.files = *std::move(files);
    const auto info = ReadInfo((*folder)->path());
    if (!info.ok()) return info.status();
    const auto gtid = GtidIn(FieldOf(*info, "binlog_pos"));
    if (!gtid) {
      return absl::InternalError("mariadb-backup: it does not say which GTID position the backup has");
    }
    manifest.engine = "mariadb " + FieldOf(*info, "server_version");
    manifest.server = backup::ServerPart{.host = pair_.hosts.slave.ToString(),
                                         .master = pair_.hosts.master.ToString(),
                                         .slave = pair_.hosts.slave.ToString(),
                                         .domain = pair_.domain,
                                         .gtid = *gtid,
                                         .shards = pair_.shards,
                                         .bytes = progress_.done()};
    return absl::OkStatus();
  }

  /// Adds what processes share in ZooKeeper. The tables are those of the end of the stream, and so is this.
  absl::Status SendNodes(backup::Manifest& manifest) {
    const auto nodes = ReadSharedNodes(fleet_.zookeeper, fleet_.root);
    if (!nodes.ok()) return nodes.status();
    auto file = sender_.Keep(kSharedNodesFile, EncodeSharedNodes(*nodes));
    if (!file.ok()) return file.status();
    manifest.files.push_back(*std::move(file));
    return absl::OkStatus();
  }

 private:
  shardops::FleetOperator& fleet_;
  const BackedUpPair& pair_;
  backup::ObjectSender& sender_;
  backup::Pace pace_;
  backup::ProgressCounter progress_;
};

}  // namespace

absl::StatusOr<BackedUpPair> FindPair(shardops::FleetOperator& fleet, const Host& host) {
  const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  const auto pairs = maps->Pairs();
  const auto pair =
      std::find_if(pairs.begin(), pairs.end(), [&](const shardops::Pair& one) { return one.Has(host); });
  if (pair == pairs.end()) {
    return absl::NotFoundError(fmt::format(
        "host: {} is in no shard map; kv shards status shows the hosts that are", host.ToString()));
  }
  BackedUpPair found{.hosts = *pair, .domain = 0, .shards = {}};
  for (const shardops::StoredMap& map : maps->all()) {
    for (const ShardRange& range : map.map.ranges()) {
      if (range.master != pair->master || range.slave != pair->slave) continue;
      found.shards.push_back({.space = map.space, .first = range.first, .last = range.last});
    }
  }
  const auto slave = shardops::HostAdmin::Open(pair->slave, fleet.access);
  if (!slave.ok()) return slave.status();
  // mariadb-backup copies no files of MySQL, and the binary logs are read by MariaDB's GTIDs.
  auto status = shardops::CheckIsMariaDb(pair->slave, (*slave)->engine(), "a backup of a pair");
  if (!status.ok()) return status;
  const auto state = (*slave)->Read();
  if (!state.ok()) return state.status();
  found.domain = state->gtid_domain;
  return found;
}

absl::StatusOr<backup::Manifest> CreateHostBackup(shardops::FleetOperator& fleet, const BackedUpPair& pair,
                                                  BlobStore& blobs, const HostCreateOptions& options) {
  backup::Manifest manifest{.began_ms = WallClockMs(), .host = ProcessName(), .version = KV_VERSION};
  const auto began = std::chrono::steady_clock::now();
  const auto slave = shardops::HostAdmin::Open(pair.hosts.slave, fleet.access);
  if (!slave.ok()) return slave.status();
  const auto state = (*slave)->Read();
  if (!state.ok()) return state.status();
  if (auto status = CheckSlave(fleet, pair, **slave, *state); !status.ok()) return status;
  if (auto status = CheckSamePair(fleet, pair, blobs); !status.ok()) return status;
  const auto expected = (*slave)->ReadSize();
  if (!expected.ok()) return expected.status();
  const auto note = shardops::LoadNote(fleet, pair.hosts.slave);
  if (!note.ok()) return note.status();
  const auto destination = backup::Destination::LookAt(blobs, manifest.began_ms);
  if (!destination.ok()) return destination.status();
  manifest.id = backup::NewBackupId(manifest.began_ms, destination->newest());
  backup::ObjectSender sender(blobs, *destination, manifest.id);
  HostCreate create(fleet, pair, sender, options, *expected);
  Reached("backup-checkpoint");
  if (auto status = create.SendStream(manifest); !status.ok()) return status;
  if (auto status = create.SendNodes(manifest); !status.ok()) return status;
  // Somebody may have begun, and ended, a copy of the master to this host: what the stream has of it then is
  // not all that the GTID position says.
  const auto note_after = shardops::LoadNote(fleet, pair.hosts.slave);
  if (!note_after.ok()) return note_after.status();
  if (note_after->version != note->version) {
    return absl::AbortedError(fmt::format(
        "{}: an operator has changed it while it was backed up; run this command again, what was sent "
        "counts",
        pair.hosts.slave.ToString()));
  }
  manifest.sent_objects = sender.sent_objects();
  manifest.sent_bytes = sender.sent_bytes();
  if (auto status = backup::PutManifest(blobs, manifest, began); !status.ok()) return status;
  return manifest;
}

}  // namespace kvstore::fleet_backup
