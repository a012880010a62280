#include "backends/mysql/rows/row_store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backend_api/outcome.h"
#include "backend_api/row_rules.h"
#include "backends/mysql/rows/row_scan.h"
#include "kvstore_api/limits.h"
#include "shardmap/mod_shard.h"

namespace kvstore::mysql {
namespace {

/// How many rows one statement reads, and how many cells it lists at most.
constexpr size_t kReadTogether = 64;
constexpr uint64_t kTogetherCells = 1024;

/// Whether the read can share a statement with others, because it is of the whole row as it is now.
bool IsPlain(const ReadOptions& options) {
  return !options.columns && options.time_range.start == 0 && options.time_range.end > kMaxTimestamp;
}

}  // namespace

uint32_t MySqlRowStore::ShardOf(std::string_view row) const { return ModShard(row, fleet_->mod_shards()); }

absl::StatusOr<RowPage> MySqlRowStore::Get(std::string_view row, const ReadOptions& options,
                                           const std::optional<RowPosition>& after) {
  const uint32_t shard = ShardOf(row);
  std::optional<std::vector<std::string>> columns;
  return fleet_->Run(
      ShardSpace::kMod, shard, Repeat::kAlways, [&](Connection& connection) -> absl::StatusOr<RowPage> {
        const PageQuery query = MakeQuery(*dataset_, dataset_->LowestLive(connection), options, columns);
        return ReadPage(connection, dataset_->TableOn(shard), row, query, after);
      });
}

absl::StatusOr<PutResult> MySqlRowStore::Put(std::string_view row, std::span<const CellWrite> cells,
                                             const WriteOptions& options) {
  return writer_.Put(ShardOf(row), row, cells, options);
}

absl::Status MySqlRowStore::Delete(std::string_view row, const DeleteOptions& options) {
  return writer_.Delete(ShardOf(row), row, options);
}

void MySqlRowStore::ByShard(std::span<const std::string_view> keys,
                            const std::function<void(uint32_t, std::span<const size_t>)>& work) const {
  std::map<uint32_t, std::vector<size_t>> by_shard;
  for (size_t i = 0; i < keys.size(); ++i) by_shard[ShardOf(keys[i])].push_back(i);
  std::vector<uint32_t> shards;
  for (const auto& [shard, places] : by_shard) shards.push_back(shard);
  fleet_->ForEach(ShardSpace::kMod, shards, [&](size_t i) { work(shards[i], by_shard.at(shards[i])); });
}

std::vector<size_t> MySqlRowStore::ReadTogether(Connection& connection, const Table& table,
                                                std::span<const RowRead> reads,
                                                std::span<const size_t> places,
                                                std::vector<absl::StatusOr<RowPage>>& pages) const {
  // The sizes of lists are powers of two, filled up with the last key, so that few statements are prepared.
  size_t size = 1;
  while (size < places.size()) size *= 2;
  std::optional<std::vector<std::string>> all_columns;
  std::map<std::string, std::vector<ListedCell>> cells_by_row;
  bool cut = false;
  const uint64_t lowest_live = dataset_->LowestLive(connection);
  {
    Call call = connection.Prepare(Sql::kRowsCells, table, size);
    for (size_t i = 0; i < size; ++i) call.Bind(reads[places[std::min(i, places.size() - 1)]].row);
    // Expired cells are listed too, so that the limit bounds what the server reads.
    call.Bind(kTogetherCells);
    uint64_t listed = 0;
    for (Rows rows = call.Query(); rows.Next(); ++listed)
      cells_by_row[rows.Bytes(1)].push_back(ReadCell(rows, 2));
    cut = listed == kTogetherCells;
  }
  std::vector<size_t> rest;
  for (const size_t place : places) {
    const RowRead& read = reads[place];
    const auto found = cells_by_row.find(std::string(read.row));
    // If the limit cut the list, its last row may have more cells, and the rows after it are missing.
    if (cut && (found == cells_by_row.end() || std::next(found) == cells_by_row.end())) {
      rest.push_back(place);
      continue;
    }
    const PageQuery query = MakeQuery(*dataset_, lowest_live, read.options, all_columns);
    const std::optional<RowPosition> from_the_start;
    PageBuilder builder(query, from_the_start);
    // The cells are copied, because the same row may be asked for twice.
    std::vector<ListedCell> cells = found == cells_by_row.end() ? std::vector<ListedCell>() : found->second;
    PutNewestFirst(cells, *table.family);
    bool complete = true;
    for (ListedCell& cell : cells) {
      const auto verdict = builder.Inspect(cell.column, cell.timestamp, cell.bytes);
      complete = !verdict.take || cell.value.has_value();
      if (!complete || verdict.wants == PageBuilder::Wants::kNothing) break;
      if (verdict.take) builder.Add(std::move(cell.column), cell.timestamp, *std::move(cell.value));
    }
    if (complete) {
      pages[place] = builder.Finish();
    } else {
      rest.push_back(place);
    }
  }
  return rest;
}

void MySqlRowStore::GetOnShard(uint32_t shard, std::span<const RowRead> reads, std::span<const size_t> places,
                               BatchBytes& bytes, std::vector<absl::StatusOr<RowPage>>& pages) const {
  std::vector<size_t> plain;
  std::vector<size_t> alone;
  for (const size_t place : places) (IsPlain(reads[place].options) ? plain : alone).push_back(place);
  if (plain.size() == 1) {
    alone.push_back(plain[0]);
    plain.clear();
  }
  const auto fail = [&](std::span<const size_t> failed, const absl::Status& status) {
    for (const size_t place : failed) pages[place] = status;
  };
  for (std::span<const size_t> left(plain); !left.empty();) {
    const auto now = left.first(std::min(left.size(), kReadTogether));
    left = left.subspan(now.size());
    if (bytes.full() && now.front() != 0) {
      fail(now, BatchFullError());
      continue;
    }
    const auto rest =
        fleet_->Run(ShardSpace::kMod, shard, Repeat::kAlways,
                    [&](Connection& connection) -> absl::StatusOr<std::vector<size_t>> {
                      return ReadTogether(connection, dataset_->TableOn(shard), reads, now, pages);
                    });
    for (const size_t place : now) {
      if (pages[place].ok()) bytes.Add(pages[place]->items);
    }
    if (rest.ok()) {
      alone.insert(alone.end(), rest->begin(), rest->end());
    } else {
      fail(now, rest.status());
    }
  }
  for (const size_t place : alone) {
    if (bytes.full() && place != 0) {
      pages[place] = BatchFullError();
      continue;
    }
    std::optional<std::vector<std::string>> columns;
    pages[place] = fleet_->Run(
        ShardSpace::kMod, shard, Repeat::kAlways, [&](Connection& connection) -> absl::StatusOr<RowPage> {
          const PageQuery query =
              MakeQuery(*dataset_, dataset_->LowestLive(connection), reads[place].options, columns);
          return ReadPage(connection, dataset_->TableOn(shard), reads[place].row, query, std::nullopt);
        });
    if (pages[place].ok()) bytes.Add(pages[place]->items);
  }
}

std::vector<absl::StatusOr<RowPage>> MySqlRowStore::GetMany(std::span<const RowRead> reads) {
  std::vector<absl::StatusOr<RowPage>> pages(reads.size(), absl::UnknownError("not read"));
  std::vector<std::string_view> keys;
  keys.reserve(reads.size());
  for (const RowRead& read : reads) keys.push_back(read.row);
  BatchBytes bytes;
  ByShard(keys, [&](uint32_t shard, std::span<const size_t> places) {
    GetOnShard(shard, reads, places, bytes, pages);
  });
  return pages;
}

std::vector<absl::StatusOr<PutResult>> MySqlRowStore::PutMany(std::span<const RowWrite> writes) {
  std::vector<absl::StatusOr<PutResult>> results(writes.size(), absl::UnknownError("not put"));
  std::vector<std::string_view> keys;
  keys.reserve(writes.size());
  for (const RowWrite& write : writes) keys.push_back(write.row);
  ByShard(keys, [&](uint32_t shard, std::span<const size_t> places) {
    writer_.PutMany(shard, writes, places, results);
  });
  return results;
}

std::vector<absl::Status> MySqlRowStore::DeleteMany(std::span<const RowDelete> deletes) {
  std::vector<absl::Status> results(deletes.size());
  std::vector<std::string_view> keys;
  keys.reserve(deletes.size());
  for (const RowDelete& one : deletes) keys.push_back(one.row);
  ByShard(keys, [&](uint32_t shard, std::span<const size_t> places) {
    absl::Status refused;
    for (const size_t place : places) {
      // As with puts, once a delete was refused because the dataset migrates, the rest is refused too: what
      // is retried must not come after a later write to the same row.
      results[place] = refused.ok() ? writer_.Delete(shard, keys[place], deletes[place].options) : refused;
      if (IsMigrating(results[place])) refused = results[place];
    }
  });
  return results;
}

absl::StatusOr<std::vector<Partition>> MySqlRowStore::Partitions(size_t) {
  // One for each shard, however many are wanted.
  std::vector<Partition> partitions;
  for (uint32_t shard = 0; shard < fleet_->mod_shards(); ++shard) {
    const std::string name = DatabaseName(ShardSpace::kMod, shard);
    partitions.push_back({.name = name, .range = {.shard = name}});
  }
  return partitions;
}

absl::StatusOr<std::unique_ptr<RowScan>> MySqlRowStore::Scan(const RowRange& range,
                                                             const ScanOptions& options,
                                                             const std::optional<ScanPosition>& after) {
  return MySqlRowScan::Open(fleet_, dataset_, range, options, after);
}

}  // namespace kvstore::mysql
