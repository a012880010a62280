#include "shardops/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <span>

#include "backends/mysql/tables.h"

namespace kvstore::shardops {
namespace {

using Tables = std::set<std::string>;
using Sums = std::map<std::string, std::string>;

/// How long the channel may take to come to the moment of the comparison.
constexpr std::chrono::seconds kCatchUp{60};
/// Tables of one statement: between two of them it can be stopped.
constexpr size_t kBatch = 16;

/// "`db00001`.`pins`" of all tables in these databases.
absl::StatusOr<Tables> ListTables(HostAdmin& host, const std::vector<std::string>& databases) {
  const auto all = host.ReadTables();
  if (!all.ok()) return all.status();
  Tables tables;
  for (const std::string& database : databases) {
    const auto found = all->find(database);
    if (found == all->end()) continue;
    for (const std::string& table : found->second) {
      tables.insert(fmt::format("{}.{}", mysql::Quote(database), mysql::Quote(table)));
    }
  }
  return tables;
}

/// Has the connection read what there is now, from here on.
absl::Status BeginSnapshot(HostAdmin& host) {
  return host.Do([](mysql::Connection& connection) {
    connection.Run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY");
    return absl::OkStatus();
  });
}

/// Where in the binary log the snapshot of a connection is.
absl::StatusOr<Position> SnapshotPosition(HostAdmin& host) {
  return host.Do([](mysql::Connection& connection) -> absl::StatusOr<Position> {
    Position position;
    mysql::Rows rows = connection.Ask("SHOW STATUS LIKE 'binlog_snapshot%'");
    while (rows.Next()) {
      if (rows.Bytes(1) == "Binlog_snapshot_file") position.file = rows.Bytes(2);
      if (rows.Bytes(1) == "Binlog_snapshot_position") position.offset = std::stoull(rows.Bytes(2));
    }
    return position;
  });
}

/// Snapshots of both sides at one moment of the source's log.
absl::Status BeginBoth(HostAdmin& source, HostAdmin& target, Channel& channel) {
  if (auto status = channel.Hold(); !status.ok()) return status;
  const auto both = [&]() -> absl::Status {
    if (auto status = BeginSnapshot(source); !status.ok()) return status;
    const auto position = SnapshotPosition(source);
    if (!position.ok()) return position.status();
    if (auto status = channel.HoldAt(*position, kCatchUp); !status.ok()) return status;
    return BeginSnapshot(target);
  };
  const absl::Status status = both();
  const absl::Status on = channel.GoOn();
  return status.ok() ? on : status;
}

absl::StatusOr<Sums> Checksums(HostAdmin& host, std::span<const std::string> tables) {
  return host.Do([&](mysql::Connection& connection) -> absl::StatusOr<Sums> {
    Sums sums;
    mysql::Rows rows = connection.Ask(fmt::format("CHECKSUM TABLE {} EXTENDED", fmt::join(tables, ", ")));
    while (rows.Next()) {
      if (rows.IsNull(2)) return absl::DataLossError(fmt::format("{}: cannot be read", rows.Bytes(1)));
      sums[rows.Bytes(1)] = rows.Bytes(2);
    }
    return sums;
  });
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CompareCopies(HostAdmin& source, HostAdmin& target,
                                                       const Access& access,
                                                       const std::vector<std::string>& databases,
                                                       const Progress& progress) {
  const auto here = HostAdmin::Open(source.host(), Patient(access));
  if (!here.ok()) return here.status();
  const auto there = HostAdmin::Open(target.host(), Patient(access));
  if (!there.ok()) return there.status();
  Channel channel(target);
  if (auto status = BeginBoth(**here, **there, channel); !status.ok()) return status;
  const auto tables = ListTables(source, databases);
  if (!tables.ok()) return tables.status();
  const auto copies = ListTables(target, databases);
  if (!copies.ok()) return copies.status();
  std::vector<std::string> differ;
  std::set_symmetric_difference(tables->begin(), tables->end(), copies->begin(), copies->end(),
                                std::back_inserter(differ));
  if (!differ.empty()) return differ;
  const std::vector<std::string> all(tables->begin(), tables->end());
  for (size_t begin = 0; begin < all.size(); begin += kBatch) {
    const auto rest = std::span(all).subspan(begin);
    const std::span<const std::string> batch = rest.first(std::min(rest.size(), kBatch));
    auto copied = std::async(std::launch::async, [&] { return Checksums(**there, batch); });
    const auto original = Checksums(**here, batch);
    const auto copy = copied.get();
    if (!original.ok()) return original.status();
    if (!copy.ok()) return copy.status();
    for (const auto& [table, sum] : *original) {
      const auto found = copy->find(table);
      if (found == copy->end() || found->second != sum) differ.push_back(table);
    }
    if (progress && !progress(begin + batch.size(), all.size())) return absl::CancelledError("was stopped");
  }
  return differ;
}

}  // namespace kvstore::shardops
