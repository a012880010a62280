#include "bench/migration/migrate_raw.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "backend_api/unit_key.h"
#include "bench/fleet/mysql_fixture.h"
#include "shardmap/mod_shard.h"

namespace kvstore::bench {
namespace {

using Clock = std::chrono::steady_clock;
using mysql::Sql;

constexpr size_t kTogether = 128;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Runs work for each host's shards in a thread of its own, with a connection.
double OnHosts(MigratingStore& store,
               const std::function<void(RawConnection&, const std::vector<uint32_t>&)>& work) {
  std::map<Host, std::vector<uint32_t>> shards;
  for (const ShardRange& range : store.mysql().fleet().map(ShardSpace::kMod).ranges()) {
    for (uint32_t shard = range.first; shard <= range.last; ++shard) shards[range.master].push_back(shard);
  }
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (const auto& [host, unused] : shards) {
    connections.push_back(std::make_unique<RawConnection>(host, store.fleet()));
  }
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  size_t i = 0;
  for (const auto& [host, mine] : shards) {
    threads.emplace_back(
        [&, connection = connections[i++].get(), list = &mine] { work(*connection, *list); });
  }
  for (std::thread& thread : threads) thread.join();
  return Since(begin);
}

}  // namespace

double RawRocksScan(MigratingStore& store, std::vector<RawCell>& cells) {
  const auto begin = Clock::now();
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  const auto family = store.rocksdb().engine().FindFamily(MigratingStore::kDataset);
  const std::unique_ptr<rocksdb::Iterator> it(
      store.rocksdb().engine().db().NewIterator(options, family->handle));
  std::vector<std::pair<std::string, std::string>> read;
  read.reserve(store.cells());
  for (it->SeekToFirst(); it->Valid(); it->Next())
    read.emplace_back(it->key().ToString(), it->value().ToString());
  const double seconds = Since(begin);
  for (auto& [key, value] : read) {
    auto unit = *ParseRowUnitKey(std::string_view(key).substr(0, key.size() - 8));
    cells.push_back({std::move(unit.row), *std::move(unit.column), std::move(value)});
  }
  return seconds;
}

double RawMySqlInsert(MigratingStore& store, const std::vector<RawCell>& cells) {
  const DatasetSpec spec{.name = MigratingStore::kRawDataset, .backend = "mysql", .incarnation = 1};
  Check(store.mysql().CreateDataset(spec));
  const uint32_t shards = store.mysql().fleet().mod_shards();
  std::map<uint32_t, std::vector<const RawCell*>> by_shard;
  for (const RawCell& cell : cells) by_shard[ModShard(cell.row, shards)].push_back(&cell);
  return OnHosts(store, [&](RawConnection& connection, const std::vector<uint32_t>& mine) {
    for (const uint32_t shard : mine) {
      const auto& list = by_shard[shard];
      for (size_t at = 0; at < list.size();) {
        connection.Run("START TRANSACTION");
        for (int batch = 0; batch < 8 && at < list.size(); ++batch) {
          const size_t count = list.size() - at >= kTogether ? kTogether : 1;
          sql::PreparedStatement& statement =
              connection.Prepare(Sql::kPutCells, ShardSpace::kMod, MigratingStore::kRawDataset, shard, count);
          uint32_t bound = 0;
          for (size_t i = 0; i < count; ++i, ++at) {
            statement.setString(++bound, list[at]->row);
            statement.setString(++bound, list[at]->column);
            statement.setUInt64(++bound, 1);
            statement.setString(++bound, list[at]->value);
          }
          statement.executeUpdate();
        }
        connection.Run("COMMIT");
      }
    }
  });
}

double RawMySqlScan(MigratingStore& store, const char* dataset) {
  return OnHosts(store, [&](RawConnection& connection, const std::vector<uint32_t>& mine) {
    for (const uint32_t shard : mine) {
      std::string row;
      for (;;) {
        sql::PreparedStatement& statement =
            connection.Prepare(Sql::kScanCells, ShardSpace::kMod, dataset, shard, 0);
        statement.setString(1, row);
        statement.setUInt64(2, 0);
        statement.setUInt64(3, 5000);
        const std::unique_ptr<sql::ResultSet> rows(statement.executeQuery());
        uint64_t count = 0;
        std::string value;
        for (; rows->next(); ++count) {
          row = rows->getString(1);
          value = rows->getString(5);
        }
        if (count < 5000) break;
      }
    }
  });
}

double RawRocksWrite(MigratingStore& store, const std::vector<RawCell>& cells) {
  Check(store.router().CreateDataset({.name = MigratingStore::kRawDataset, .backend = "rocksdb"}));
  const auto family = store.rocksdb().engine().FindFamily(MigratingStore::kRawDataset);
  const auto begin = Clock::now();
  for (size_t at = 0; at < cells.size();) {
    rocksdb::WriteBatch batch;
    for (size_t i = 0; i < 1000 && at < cells.size(); ++i, ++at) {
      std::string key = RowUnitKey(cells[at].row, cells[at].column) + std::string(8, '\xff');
      batch.Put(family->handle, key, cells[at].value);
    }
    store.rocksdb().engine().db().Write({}, &batch);
  }
  const double seconds = Since(begin);
  Check(store.router().DropDataset(MigratingStore::kRawDataset, {}));
  return seconds;
}

}  // namespace kvstore::bench
