#include "shardops/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <span>
#include <thread>

#include "backends/mysql/driver/tables.h"
#include "base/fail_point.h"
#include "shardops/quoted.h"
#include "shardops/snapshot.h"

namespace kvstore::shardops {
namespace {

using Tables = std::set<std::string>;
using Sums = std::map<std::string, std::string>;

/// How long the channel may take to reach the position at which both sides are compared.
constexpr std::chrono::seconds kCatchUp{60};
constexpr std::chrono::milliseconds kCommittedPoll{10};
/// The same on MySQL, where each attempt has clients' commits wait.
constexpr std::chrono::milliseconds kBlockedPoll{1000};
/// How many tables one statement checks. The comparison can be cancelled between two statements only.
constexpr size_t kBatch = 16;

/// Returns all tables in these databases, as "`db00001`.`pins`".
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

/// Returns whether there are transactions in the source's log between the position of its snapshot and what
/// the channel has applied.
absl::StatusOr<bool> LacksTransactions(HostAdmin& source, const Position& snapshot, const Position& applied) {
  // A snapshot of MySQL has all that was sent (BeginSnapshotAtPosition).
  if (source.engine() == Engine::kMySql || applied <= snapshot) return false;
  return source.WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<bool> {
    // A log also has events that belong to no transaction, such as those at the beginning of a file.
    mysql::Rows rows = connection.Ask(
        fmt::format("SELECT BINLOG_GTID_POS({}, {}) <=> BINLOG_GTID_POS({}, {})", Quoted(snapshot.file),
                    snapshot.offset, Quoted(applied.file), applied.offset));
    return rows.Next() && rows.Uint(1) == 0;
  });
}

/// Begins a snapshot on the source that has all that the paused channel has applied, and returns its
/// position. Without that the copy could have more than the source: a master sends a transaction to whoever
/// replicates from it before it commits, since it waits for its slave's acknowledgement in between.
absl::StatusOr<Position> BeginSourceSnapshot(HostAdmin& source, const Access& access,
                                             const Position& applied) {
  const auto deadline = std::chrono::steady_clock::now() + kCatchUp;
  for (;;) {
    auto position = BeginSnapshotAtPosition(source, access);
    // On MySQL commits could not be blocked: one of them waits for the slave.
    const bool waits = source.engine() == Engine::kMySql && absl::IsUnavailable(position.status());
    if (!position.ok() && !waits) return position;
    const absl::StatusOr<bool> lacks =
        waits ? absl::StatusOr<bool>(true) : LacksTransactions(source, *position, applied);
    if (!lacks.ok()) return lacks.status();
    if (!*lacks) return position;
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError(fmt::format(
          "{}: has not committed in {} s what it had sent already: does its slave acknowledge? kv "
          "shards status tells{}",
          source.host().ToString(), kCatchUp.count(),
          waits ? fmt::format(". The last attempt to wait for that: {}",
                              std::string(position.status().message()))
                : ""));
    }
    Reached("move.uncommitted");
    std::this_thread::sleep_for(waits ? kBlockedPoll : kCommittedPoll);
  }
}

/// Begins snapshots on both sides that have the same position of the source's log.
absl::Status BeginBoth(HostAdmin& source, HostAdmin& target, const Access& access, Channel& channel) {
  if (auto status = channel.Pause(); !status.ok()) return status;
  const auto both = [&]() -> absl::Status {
    const auto paused = channel.Read();
    if (!paused.ok()) return paused.status();
    const auto position = BeginSourceSnapshot(source, access, *paused ? (*paused)->applied : Position{});
    if (!position.ok()) return position.status();
    if (auto status = channel.ApplyUpTo(*position, kCatchUp); !status.ok()) return status;
    return BeginSnapshot(target);
  };
  const absl::Status status = both();
  const absl::Status on = channel.Resume(access);
  return status.ok() ? on : status;
}

absl::StatusOr<Sums> Checksums(HostAdmin& host, std::span<const std::string> tables) {
  return host.WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<Sums> {
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
                                                       const Access& access, const Position& from,
                                                       const std::vector<std::string>& databases,
                                                       const Progress& progress) {
  const auto here = HostAdmin::Open(source.host(), WithLongReadTimeout(access));
  if (!here.ok()) return here.status();
  const auto there = HostAdmin::Open(target.host(), WithLongReadTimeout(access));
  if (!there.ok()) return there.status();
  Channel channel(target, from);
  if (auto status = BeginBoth(**here, **there, access, channel); !status.ok()) return status;
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
    if (progress && !progress(begin + batch.size(), all.size()))
      return absl::CancelledError("was stopped: run the command again to go on");
  }
  return differ;
}

}  // namespace kvstore::shardops
