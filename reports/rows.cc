#include "reports/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "kvstore_api/call_scope.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

constexpr size_t kRowsReadTogether = 64;

absl::Status TakeItems(StoredRow& row, std::vector<Item>& items, const TakeBytes& read) {
  uint64_t bytes = 0;
  for (Item& item : items) {
    Cell& cell = item.cells.front();
    row.newest = std::max(row.newest, cell.timestamp);
    if (item.column == kGenerationColumn) {
      row.generation = std::move(cell.value);
    } else if (item.column == kVersionColumn) {
      KV_ASSIGN_OR_RETURN(row.version, VersionOf(row.key, std::move(cell)));
    } else if (item.column.size() == kChunkNameBytes) {
      bytes += cell.value.size();
      row.chunks.push_back({std::move(item.column), cell.timestamp, std::move(cell.value)});
    } else {
      return absl::DataLossError(fmt::format("{}: a column of {} bytes is not the name of a chunk",
                                             RowText(row.key), item.column.size()));
    }
  }
  return read == nullptr || bytes == 0 ? absl::OkStatus() : read(bytes);
}

ReadOptions WholePages(std::string marker) {
  return {.limit = static_cast<uint32_t>(kMaxPageCells), .marker = std::move(marker)};
}

/// Reads the pages after the first one.
absl::Status ReadOn(KVStore& store, const std::string& dataset, const std::string& key, std::string marker,
                    StoredRow& row, const TakeBytes& read) {
  if (!marker.empty()) row.complete_to = row.newest;
  while (!marker.empty()) {
    KV_RETURN_IF_ERROR(CheckCall());
    KV_ASSIGN_OR_RETURN(Row page, store.GetRow(dataset, key, WholePages(std::move(marker))));
    KV_RETURN_IF_ERROR(TakeItems(row, page.items, read));
    marker = std::move(page.marker);
  }
  return absl::OkStatus();
}

/// Removes the chunks whose points another one has, and sorts the others by age.
void KeepGreatestStretches(std::vector<LiveChunk>& chunks) {
  // Each compaction takes neighbours, so that of two stretches one has the other in it, or they have nothing
  // in common. Sorted like this, a stretch follows those that have it in them.
  std::sort(chunks.begin(), chunks.end(), [](const LiveChunk& a, const LiveChunk& b) {
    if (a.stretch.oldest != b.stretch.oldest) return a.stretch.oldest < b.stretch.oldest;
    return a.stretch.newest > b.stretch.newest;
  });
  size_t kept = 0;
  for (LiveChunk& chunk : chunks) {
    if (kept > 0 && chunk.stretch.newest <= chunks[kept - 1].stretch.newest) continue;
    if (&chunk != &chunks[kept]) chunks[kept] = std::move(chunk);
    ++kept;
  }
  chunks.resize(kept);
}

/// Takes the first rows of a batch, and returns how many: rows for which the memory of a batch has no room
/// are left over.
absl::StatusOr<size_t> TakeBatch(KVStore& store, const std::string& dataset, std::span<const RowKey> keys,
                                 const TakeRow& take, const TakeFailure& failed, const TakeBytes& read) {
  KV_RETURN_IF_ERROR(CheckCall());
  std::vector<std::string> names;
  for (const RowKey& key : keys) names.push_back(EncodeRowKey(key));
  std::vector<RowRead> reads;
  for (const std::string& name : names) reads.push_back({name, WholePages("")});
  auto pages = store.GetRows(dataset, reads);
  if (!pages.ok()) {
    if (failed == nullptr || !absl::IsUnavailable(pages.status())) return pages.status();
    KV_RETURN_IF_ERROR(failed(keys.front(), pages.status()));
    return keys.size();
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    absl::StatusOr<Row>& page = (*pages)[i];
    // A row that was left out of a full batch is read when it is the first of one.
    if (i > 0 && absl::IsResourceExhausted(page.status())) return i;
    StoredRow row{.key = keys[i]};
    absl::Status status = page.status();
    if (status.ok()) status = TakeItems(row, page->items, read);
    if (status.ok()) status = ReadOn(store, dataset, names[i], page->marker, row, read);
    if (!status.ok()) {
      if (failed == nullptr) return status;
      KV_RETURN_IF_ERROR(failed(keys[i], status));
      continue;
    }
    page = Row{};
    if (!row.chunks.empty()) KV_RETURN_IF_ERROR(take(std::move(row)));
  }
  return keys.size();
}

}  // namespace

std::string RowText(const RowKey& key) {
  return fmt::format("row of report {}, metric {}, period {}, salt {}", key.report, key.metric,
                     key.period_start_s, key.salt);
}

absl::StatusOr<RowVersion> VersionOf(const RowKey& key, Cell&& cell) {
  if (cell.value.size() != kChunkNameBytes) {
    return absl::DataLossError(
        fmt::format("{}: a version of {} bytes is not the name of a chunk", RowText(key), cell.value.size()));
  }
  return RowVersion{cell.timestamp, std::move(cell.value)};
}

absl::StatusOr<std::vector<LiveChunk>> LiveChunks(const StoredRow& row) {
  std::vector<LiveChunk> all;
  std::set<ChunkName> covered;
  for (const StoredChunk& stored : row.chunks) {
    auto chunk = Chunk::Open(stored.bytes);
    if (!chunk.ok()) {
      return absl::Status(chunk.status().code(),
                          fmt::format("{}, chunk of {}: {}", RowText(row.key), stored.timestamp,
                                      std::string(chunk.status().message())));
    }
    const ChunkNotes& notes = chunk->directory().notes;
    covered.insert(notes.covers.begin(), notes.covers.end());
    // Readers of the points rely on one kind: chunks of different kinds have different columns.
    if (!all.empty() && chunk->directory().kind != all.front().chunk.directory().kind) {
      return absl::DataLossError(fmt::format("{}: it has chunks of kind {} and of kind {}", RowText(row.key),
                                             Name(all.front().chunk.directory().kind),
                                             Name(chunk->directory().kind)));
    }
    const ChunkOrder own{stored.timestamp, stored.name};
    ChunkStretch stretch = notes.merged.value_or(ChunkStretch{own, own});
    all.push_back({*std::move(chunk), std::move(stretch), &stored});
  }
  std::erase_if(all, [&](const LiveChunk& live) { return covered.contains(live.stored->name); });
  KeepGreatestStretches(all);
  return all;
}

uint64_t PeriodOf(int64_t time_ms, uint64_t period_s) {
  const auto seconds = static_cast<uint64_t>(time_ms) / 1000;
  return seconds - seconds % period_s;
}

absl::Status ReadRows(KVStore& store, const std::string& dataset, const RowsWanted& wanted,
                      const TakeRow& take, const TakeFailure& failed, const TakeBytes& read,
                      uint64_t max_listed) {
  const uint64_t periods = (wanted.last_period_s - wanted.first_period_s) / wanted.period_s + 1;
  if (periods > max_listed) {
    const absl::Status status = ScanStoredRows(
        store, dataset,
        MetricRange(wanted.salt, wanted.report, wanted.metric, wanted.first_period_s, wanted.last_period_s),
        take, read);
    if (failed == nullptr || !absl::IsUnavailable(status)) return status;
    return failed({wanted.salt, wanted.report, wanted.metric, wanted.first_period_s}, status);
  }
  std::vector<RowKey> keys;
  for (uint64_t i = 0; i < periods; ++i) {
    keys.push_back({wanted.salt, wanted.report, wanted.metric, wanted.first_period_s + i * wanted.period_s});
  }
  return ReadListedRows(store, dataset, keys, take, failed, read);
}

absl::Status ReadListedRows(KVStore& store, const std::string& dataset, std::span<const RowKey> rows,
                            const TakeRow& take, const TakeFailure& failed, const TakeBytes& read) {
  while (!rows.empty()) {
    KV_ASSIGN_OR_RETURN(
        const size_t taken,
        TakeBatch(store, dataset, rows.first(std::min(rows.size(), kRowsReadTogether)), take, failed, read));
    rows = rows.subspan(taken);
  }
  return absl::OkStatus();
}

absl::Status ScanStoredRows(KVStore& store, const std::string& dataset, const KeyRange& range,
                            const TakeRow& take, const TakeBytes& read) {
  KV_ASSIGN_OR_RETURN(const auto cursor,
                      store.ScanRows(dataset, {.start = range.start, .end = range.end}, {}));
  ScannedRow piece;
  StoredRow row;
  bool begun = false;
  // A row whose remaining cells were deleted between two pieces ends without a last piece.
  const auto take_again = [&]() -> absl::Status {
    KV_ASSIGN_OR_RETURN(StoredRow now, ReadStoredRow(store, dataset, row.key, read));
    return now.chunks.empty() ? absl::OkStatus() : take(std::move(now));
  };
  while (true) {
    KV_RETURN_IF_ERROR(CheckCall());
    KV_ASSIGN_OR_RETURN(const bool more, cursor->Next(piece));
    if (!more) break;
    if (begun && piece.key != EncodeRowKey(row.key)) {
      KV_RETURN_IF_ERROR(take_again());
      begun = false;
    }
    if (!begun) {
      row = StoredRow{};
      KV_ASSIGN_OR_RETURN(row.key, DecodeRowKey(piece.key));
    }
    KV_RETURN_IF_ERROR(TakeItems(row, piece.items, read));
    if (!begun && piece.continues) row.complete_to = row.newest;
    begun = piece.continues;
    if (!begun) KV_RETURN_IF_ERROR(take(std::move(row)));
  }
  return begun ? take_again() : absl::OkStatus();
}

absl::StatusOr<StoredRow> ReadStoredRow(KVStore& store, const std::string& dataset, const RowKey& key,
                                        const TakeBytes& read) {
  StoredRow row{.key = key};
  const std::string name = EncodeRowKey(key);
  KV_ASSIGN_OR_RETURN(Row page, store.GetRow(dataset, name, WholePages("")));
  KV_RETURN_IF_ERROR(TakeItems(row, page.items, read));
  KV_RETURN_IF_ERROR(ReadOn(store, dataset, name, std::move(page.marker), row, read));
  return row;
}

}  // namespace kvstore::reports
