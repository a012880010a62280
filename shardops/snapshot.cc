#include "shardops/snapshot.h"

#include <string>

#include "shardops/blocked_commits.h"

namespace kvstore::shardops {
namespace {

absl::StatusOr<Position> SnapshotPositionOfMariaDb(HostAdmin& host) {
  return host.WithConnection([](mysql::Connection& connection) -> absl::StatusOr<Position> {
    Position position;
    mysql::Rows rows = connection.Ask("SHOW STATUS LIKE 'binlog_snapshot%'");
    while (rows.Next()) {
      if (rows.Bytes(1) == "Binlog_snapshot_file") position.file = rows.Bytes(2);
      if (rows.Bytes(1) == "Binlog_snapshot_position") position.offset = std::stoull(rows.Bytes(2));
    }
    return position;
  });
}

}  // namespace

absl::Status BeginSnapshot(HostAdmin& host) {
  return host.WithConnection([](mysql::Connection& connection) {
    connection.Run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY");
    return absl::OkStatus();
  });
}

absl::StatusOr<Position> BeginSnapshotAtPosition(HostAdmin& host, const Access& access) {
  if (host.engine() == Engine::kMariaDb) {
    if (auto status = BeginSnapshot(host); !status.ok()) return status;
    return SnapshotPositionOfMariaDb(host);
  }
  auto blocked = BlockedCommits::Block(host.host(), access);
  if (!blocked.ok()) return blocked.status();
  if (auto status = BeginSnapshot(host); !status.ok()) return status;
  auto position = ReadPosition(host);
  if (!position.ok()) return position;
  // If this process was suspended in between, the position may be a later one than that of the snapshot.
  if (auto status = blocked->Check(); !status.ok()) return status;
  return position;
}

}  // namespace kvstore::shardops
