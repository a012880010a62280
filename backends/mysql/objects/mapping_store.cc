#include "backends/mysql/objects/mapping_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backend_api/scan_budget.h"
#include "backends/mysql/objects/open_shards.h"
#include "base/fail_point.h"
#include "idgen/object_id.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {
namespace {

/// How many entries a statement of a scan lists at most.
constexpr uint64_t kMaxListedEntries = 1024;
/// How many entries a statement counts at most, or passes because of an offset.
constexpr uint64_t kMaxCountedEntries = 65'536;
constexpr uint64_t kMaxPassedEntries = 65'536;

/// Lists entries of `from` in the order of their sequence, after the entry `after` if there is one.
Rows ListSome(Connection& connection, const Table& table, uint64_t from, bool descending,
              const std::optional<MappingEntry>& after, uint64_t limit, uint64_t offset) {
  if (!after) {
    return connection.Prepare(descending ? Sql::kListDescending : Sql::kListAscending, table)
        .Bind(from)
        .Bind(limit)
        .Bind(offset)
        .Query();
  }
  return connection.Prepare(descending ? Sql::kListDescendingAfter : Sql::kListAscendingAfter, table)
      .Bind(from)
      .Bind(after->sequence)
      .Bind(after->sequence)
      .Bind(after->to)
      .Bind(limit)
      .Bind(offset)
      .Query();
}

/// Adds to `count` how many entries there are from `to` on, as far as one statement counts. Returns where the
/// next statement is to begin; nullopt if all are counted.
std::optional<uint64_t> CountSome(Connection& connection, const Table& table, uint64_t from, uint64_t to,
                                  uint64_t& count) {
  Rows rows =
      connection.Prepare(Sql::kCountMapping, table).Bind(from).Bind(to).Bind(kMaxCountedEntries).Query();
  rows.Next();
  count += rows.Uint(1);
  if (rows.Uint(1) < kMaxCountedEntries || rows.Uint(2) == std::numeric_limits<uint64_t>::max())
    return std::nullopt;
  return rows.Uint(2) + 1;
}

}  // namespace

template <typename Work>
auto MySqlMappingStore::RunOnShardOf(uint64_t from, Repeat repeat, Work work)
    -> std::invoke_result_t<Work, Connection&, const Table&> {
  const uint32_t shard = ObjectId::ShardOf(from);
  if (fleet_->map(ShardSpace::kId).Find(shard) == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("from: shard {} is not open; kv shards get shows which shards are", shard));
  }
  return fleet_->Run(ShardSpace::kId, shard, repeat,
                     [&](Connection& connection) { return work(connection, dataset_->TableOn(shard)); });
}

absl::Status MySqlMappingStore::Add(uint64_t from, uint64_t to, std::optional<uint64_t> sequence) {
  // A retry after a commit would bring a mapping back that another client has removed in between.
  return RunOnShardOf(
      from, Repeat::kIfNotCommitted, [&](Connection& connection, const Table& table) -> absl::Status {
        if (auto status = dataset_->CheckDurable(connection, false); !status.ok()) return status;
        if (sequence) {
          connection.Prepare(Sql::kAddMapping, table).Bind(from).Bind(to).Bind(*sequence).Execute();
        } else {
          connection.Prepare(Sql::kAddMappingNow, table).Bind(from).Bind(to).Execute();
        }
        return absl::OkStatus();
      });
}

absl::StatusOr<bool> MySqlMappingStore::Remove(uint64_t from, uint64_t to) {
  return RunOnShardOf(
      from, Repeat::kIfNotCommitted, [&](Connection& connection, const Table& table) -> absl::StatusOr<bool> {
        if (auto status = dataset_->CheckDurable(connection, false); !status.ok()) return status;
        return connection.Prepare(Sql::kRemoveMapping, table).Bind(from).Bind(to).Execute() > 0;
      });
}

absl::StatusOr<MappingList> MySqlMappingStore::List(uint64_t from, const MappingQuery& query) {
  return RunOnShardOf(
      from, Repeat::kAlways, [&](Connection& connection, const Table& table) -> absl::StatusOr<MappingList> {
        MappingList list;
        uint64_t offset = query.offset;
        std::optional<MappingEntry> after = query.after;
        std::optional<Transaction> snapshot;
        if (offset > kMaxPassedEntries) snapshot.emplace(connection, Transaction::Kind::kSnapshot);
        for (; offset > kMaxPassedEntries; offset -= kMaxPassedEntries) {
          if (auto status = CheckCall(); !status.ok()) return status;
          Rows last = ListSome(connection, table, from, query.descending, after, 1, kMaxPassedEntries - 1);
          if (!last.Next()) return list;
          after = MappingEntry{last.Uint(1), last.Uint(2)};
          Reached("mapping.passed");
        }
        // One entry more than asked for tells whether there are more.
        for (Rows entries = ListSome(connection, table, from, query.descending, after,
                                     uint64_t{query.limit} + 1, offset);
             entries.Next();) {
          if (list.entries.size() == query.limit) {
            list.more = true;
            break;
          }
          list.entries.push_back({entries.Uint(1), entries.Uint(2)});
        }
        if (snapshot) snapshot->Commit();
        return list;
      });
}

absl::StatusOr<uint64_t> MySqlMappingStore::Count(uint64_t from) {
  return RunOnShardOf(from, Repeat::kAlways,
                      [&](Connection& connection, const Table& table) -> absl::StatusOr<uint64_t> {
                        // Most counts take one statement. A long one is begun again in a snapshot, because
                        // several statements would otherwise see different moments.
                        uint64_t count = 0;
                        if (CountSome(connection, table, from, 0, count) == std::nullopt) return count;
                        Transaction transaction(connection, Transaction::Kind::kSnapshot);
                        count = 0;
                        for (std::optional<uint64_t> to = 0; to;) {
                          if (auto status = CheckCall(); !status.ok()) return status;
                          to = CountSome(connection, table, from, *to, count);
                          Reached("mapping.counted");
                        }
                        transaction.Commit();
                        return count;
                      });
}

// ---- scans ----

absl::StatusOr<std::vector<ScannedMapping>> MySqlMappingStore::ListFrom(uint32_t shard,
                                                                        const MappingPosition& start,
                                                                        uint64_t limit) {
  return fleet_->Run(
      ShardSpace::kId, shard, Repeat::kAlways,
      [&](Connection& connection) -> absl::StatusOr<std::vector<ScannedMapping>> {
        std::vector<ScannedMapping> listed;
        for (Rows rows = connection.Prepare(Sql::kMappingsFrom, dataset_->TableOn(shard))
                             .Bind(start.from)
                             .Bind(start.from)
                             .Bind(start.to)
                             .Bind(limit)
                             .Query();
             rows.Next();) {
          listed.push_back({.from = rows.Uint(1), .to = rows.Uint(2), .sequence = rows.Uint(3)});
        }
        return listed;
      });
}

absl::StatusOr<MappingScanPage> MySqlMappingStore::Scan(const MappingPosition& start, uint64_t end,
                                                        uint32_t limit) {
  MappingScanPage page;
  const uint32_t last = ObjectId::ShardOf(end - 1);
  for (auto shard = FirstOpenShard(*fleet_, ObjectId::ShardOf(start.from), last); shard;
       shard = FirstOpenShard(*fleet_, *shard + 1, last)) {
    MappingPosition place = std::max(start, {.from = ObjectId::ValueOf(*shard, 0, 0)});
    for (bool more = true; more;) {
      // A page that has examined as much as it may ends, once it has got further than its beginning.
      if (page.entries.size() == limit || (IsScanBudgetSpent() && place > start)) {
        page.next = place;
        return page;
      }
      const uint64_t wanted = std::min<uint64_t>(kMaxListedEntries, limit - page.entries.size());
      const auto listed = ListFrom(*shard, place, wanted);
      if (!listed.ok()) return listed.status();
      SpendScanBudget(kExaminedByStatement);
      for (const ScannedMapping& entry : *listed) {
        if (entry.from >= end) return page;
        page.entries.push_back(entry);
      }
      more = listed->size() == wanted;
      if (more) place = {.from = listed->back().from, .to = listed->back().to + 1};
    }
  }
  return page;
}

absl::StatusOr<std::vector<Partition>> MySqlMappingStore::Partitions(size_t wanted) {
  return PartitionShards(*fleet_, wanted);
}

}  // namespace kvstore::mysql
