#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/fleet/mysql_fixture.h"
#include "bench/rows/rows_bench.h"
#include "shardmap/mod_shard.h"

/// kv bench rows --backend mysql.
namespace kvstore::bench {
namespace {

using mysql::Sql;

constexpr uint64_t kVersions = 10'000;
constexpr uint64_t kRows = 2'000;
constexpr size_t kColumns = 10;

/// Row keys that live on the first host.
std::vector<std::string> KeysOfFirstHost(MySqlFixture& fixture, size_t count) {
  const std::vector<uint32_t> shards = fixture.ShardsOfFirstHost(ShardSpace::kMod);
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < count; ++i) {
    std::string key = fmt::format("user:{:08}", i);
    const uint32_t shard = ModShard(key, fixture.fleet().mod_shards());
    if (std::find(shards.begin(), shards.end(), shard) != shards.end()) keys.push_back(std::move(key));
  }
  return keys;
}

/// A statement of each shard.
class PerShard {
 public:
  PerShard(RawConnection& raw, MySqlFixture& fixture, Sql sql, const std::string& dataset, size_t count)
      : shards_(fixture.fleet().mod_shards()), statements_(shards_) {
    for (const uint32_t shard : fixture.ShardsOfFirstHost(ShardSpace::kMod)) {
      statements_[shard] = &raw.Prepare(sql, ShardSpace::kMod, dataset, shard, count);
    }
  }
  sql::PreparedStatement& Of(const std::string& row) { return *statements_[ModShard(row, shards_)]; }

 private:
  const uint32_t shards_;
  std::vector<sql::PreparedStatement*> statements_;
};

/// Reads from a result what a caller needs of its cells: names, timestamps, values, each once.
uint64_t ReadCells(sql::PreparedStatement& statement, uint64_t expected) {
  const std::unique_ptr<sql::ResultSet> rows(statement.executeQuery());
  std::vector<Cell> cells;
  std::string column;
  while (rows->next()) {
    column = rows->getString(1);
    cells.push_back({rows->getUInt64(2), rows->getString(4)});
  }
  if (cells.size() != expected || column.empty()) Check(absl::InternalError("another number of cells"));
  return 1;
}

void MeasureVersions(MySqlFixture& fixture, const MySqlBenchOptions& options, Report& report) {
  const std::string dataset = fixture.Create("versions", Shape::kRows, 0);
  KVStore& store = fixture.store();
  const std::string row = KeysOfFirstHost(fixture, 1)[0];
  for (uint64_t begin = 1; begin <= kVersions; begin += 1000) {
    std::vector<std::string> values;
    std::vector<CellWrite> cells;
    for (uint64_t i = begin; i < begin + 1000; ++i) values.push_back(MakeValue(i));
    for (uint64_t i = begin; i < begin + 1000; ++i) cells.push_back({"click", values[i - begin], i});
    Check(store.PutRow(dataset, row, cells, {}).status());
  }
  RawConnection raw(fixture.FirstHost(ShardSpace::kMod), fixture.options());
  PerShard newest(raw, fixture, Sql::kColumnCells, dataset, 1);
  ReadOptions read{.versions = 50};
  read.columns.emplace().emplace_back("click");
  const Work ours = [&](uint64_t) {
    const auto page = store.GetRow(dataset, row, read);
    Check(page.status());
    if (page->items.at(0).cells.size() != 50) Check(absl::InternalError("another number of cells"));
    return uint64_t{1};
  };
  const char* const entries =
      "SELECT SUM(variable_value) FROM information_schema.global_status WHERE variable_name IN "
      "('Handler_read_first', 'Handler_read_key', 'Handler_read_last', 'Handler_read_next', "
      "'Handler_read_prev')";
  const uint64_t before = raw.Ask(entries);
  const uint64_t of_asking = raw.Ask(entries) - before;
  const uint64_t idle = raw.Ask(entries);
  for (uint64_t i = 0; i < 100; ++i) ours(i);
  report.figures.emplace_back("newest_50_of_10000_rows_examined",
                              static_cast<double>(raw.Ask(entries) - idle - of_asking) / 100);
  Measure(report, options, "newest_50_of_10000", 1, ours, [&](uint64_t) {
    sql::PreparedStatement& statement = newest.Of(row);
    statement.setString(1, row);
    statement.setString(2, "click");
    statement.setUInt64(3, 0);
    statement.setUInt64(4, uint64_t{1} << 63);
    statement.setUInt64(5, 50);
    return ReadCells(statement, 50);
  });
  fixture.Drop(dataset);
}

void MeasureRows(MySqlFixture& fixture, const MySqlBenchOptions& options, Report& report) {
  const std::string dataset = fixture.Create("rows", Shape::kRows);
  KVStore& store = fixture.store();
  const std::vector<std::string> keys = KeysOfFirstHost(fixture, kRows);
  std::vector<std::string> columns;
  std::vector<std::string> values;
  for (size_t c = 0; c < kColumns; ++c) {
    columns.push_back(fmt::format("field{}", c));
    values.push_back(MakeValue(c));
  }
  std::vector<CellWrite> cells;
  for (size_t c = 0; c < kColumns; ++c) cells.push_back({columns[c], values[c], 1'700'000'000'000});
  std::vector<RowWrite> writes;
  for (const std::string& key : keys) writes.push_back({key, cells, {}});
  const auto put = store.PutRows(dataset, writes);
  Check(put.status());
  for (const auto& result : *put) Check(result.status());

  RawConnection raw(fixture.FirstHost(ShardSpace::kMod), fixture.options());
  PerShard select(raw, fixture, Sql::kRowCells, dataset, 1);
  PerShard upsert(raw, fixture, Sql::kPutCells, dataset, kColumns);
  Measure(
      report, options, "get_row_10", 1,
      [&](uint64_t i) {
        const auto row = store.GetRow(dataset, keys[i * 7919 % kRows], {});
        Check(row.status());
        if (row->items.size() != kColumns) Check(absl::InternalError("another number of columns"));
        return uint64_t{1};
      },
      [&](uint64_t i) {
        const std::string& key = keys[i * 7919 % kRows];
        sql::PreparedStatement& statement = select.Of(key);
        statement.setString(1, key);
        statement.setString(2, "");
        statement.setUInt64(3, 0);
        statement.setUInt64(4, 101);
        return ReadCells(statement, kColumns);
      });
  Measure(
      report, options, "put_row_10", 1,
      [&](uint64_t i) {
        Check(store.PutRow(dataset, keys[i * 7919 % kRows], cells, {}).status());
        return uint64_t{1};
      },
      [&](uint64_t i) {
        const std::string& key = keys[i * 7919 % kRows];
        sql::PreparedStatement& statement = upsert.Of(key);
        unsigned at = 0;
        for (const CellWrite& cell : cells) {
          statement.setString(++at, key);
          statement.setString(++at, std::string(cell.column));
          statement.setUInt64(++at, *cell.timestamp);
          statement.setString(++at, std::string(cell.value));
        }
        statement.executeUpdate();
        return uint64_t{1};
      });
  std::vector<CellWrite> assigned = cells;
  for (CellWrite& cell : assigned) cell.timestamp.reset();
  // Four round trips: the shard's clock is held until the cells are committed.
  Measure(
      report, options, "put_row_10_assigned", 1,
      [&](uint64_t i) {
        Check(store.PutRow(dataset, keys[i * 7919 % kRows], assigned, {}).status());
        return uint64_t{1};
      },
      nullptr);
  Measure(
      report, options, "put_rows_100_cells", 1,
      [&](uint64_t i) {
        const auto results = store.PutRows(dataset, std::span(writes).subspan(i * 10 % (kRows - 10), 10));
        Check(results.status());
        for (const auto& result : *results) Check(result.status());
        return uint64_t{100};
      },
      nullptr);
  fixture.Drop(dataset);
}

}  // namespace

absl::StatusOr<Report> BenchMySqlRows(const MySqlBenchOptions& options) {
  auto fixture = MySqlFixture::Open(options);
  if (!fixture.ok()) return fixture.status();
  Report report = NewReport("rows", options);
  MeasureVersions(**fixture, options, report);
  MeasureRows(**fixture, options, report);
  return report;
}

}  // namespace kvstore::bench
