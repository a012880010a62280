#include "backends/mysql/objects/mapping_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend_api/scan_budget.h"
#include "backends/mysql/objects/open_shards.h"
#include "idgen/object_id.h"

namespace kvstore::mysql {
namespace {

/// How many entries a statement of a scan lists at most.
constexpr uint64_t kMaxListedEntries = 1024;

}  // namespace

template <typename Work>
auto MySqlMappingStore::RunOnShardOf(uint64_t from, Repeat repeat, Work work)
    -> std::invoke_result_t<Work, Connection&, const Table&> {
  const uint32_t shard = ObjectId::ShardOf(from);
  if (fleet_->map(Space::kId).Find(shard) == nullptr) {
    return absl::InvalidArgumentError(fmt::format("from: shard {} is not open", shard));
  }
  return fleet_->Run(Space::kId, shard, repeat,
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
        // One entry more than asked for tells whether there are more.
        const uint64_t limit = uint64_t{query.limit} + 1;
        const auto rows = [&] {
          if (query.after) {
            return connection
                .Prepare(query.descending ? Sql::kListDescendingAfter : Sql::kListAscendingAfter, table)
                .Bind(from)
                .Bind(query.after->sequence)
                .Bind(query.after->sequence)
                .Bind(query.after->to)
                .Bind(limit)
                .Query();
          }
          return connection.Prepare(query.descending ? Sql::kListDescending : Sql::kListAscending, table)
              .Bind(from)
              .Bind(limit)
              .Bind(query.offset)
              .Query();
        };
        MappingList list;
        for (Rows entries = rows(); entries.Next();) {
          if (list.entries.size() == query.limit) {
            list.more = true;
            break;
          }
          list.entries.push_back({entries.Uint(1), entries.Uint(2)});
        }
        return list;
      });
}

absl::StatusOr<uint64_t> MySqlMappingStore::Count(uint64_t from) {
  return RunOnShardOf(from, Repeat::kAlways,
                      [&](Connection& connection, const Table& table) -> absl::StatusOr<uint64_t> {
                        Rows rows = connection.Prepare(Sql::kCountMapping, table).Bind(from).Query();
                        rows.Next();
                        return rows.Uint(1);
                      });
}

// ---- scans ----

absl::StatusOr<std::vector<ScannedMapping>> MySqlMappingStore::ListFrom(uint32_t shard,
                                                                        const MappingPosition& start,
                                                                        uint64_t limit) {
  return fleet_->Run(
      Space::kId, shard, Repeat::kAlways,
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
