#include "reports/row_list.h"

#include <algorithm>
#include <utility>

#include "kvstore_api/call_scope.h"
#include "reports/rollup_cell.h"
#include "reports/row_cells.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

constexpr size_t kRowsOfPiece = 512;
/// How often a walk is begun, if scans fail.
constexpr int kMaxListAttempts = 3;

struct FoundCell {
  std::string row;
  Cell cell;
};

/// Reads one column of the next rows of a range. `marker` says where to go on, and is empty at the end.
absl::StatusOr<std::vector<FoundCell>> ReadPiece(KVStore& store, const std::string& dataset,
                                                 const KeyRange& range, const char* column,
                                                 std::string& marker) {
  KV_ASSIGN_OR_RETURN(const auto cursor, store.ScanRows(dataset, {.start = range.start, .end = range.end},
                                                        {.columns = std::vector<std::string>{column},
                                                         .marker = std::move(marker)}));
  marker.clear();
  std::vector<FoundCell> found;
  ScannedRow row;
  while (found.size() < kRowsOfPiece) {
    KV_RETURN_IF_ERROR(CheckCall());
    KV_ASSIGN_OR_RETURN(const bool more, cursor->Next(row));
    if (!more) return found;
    for (Item& item : row.items) found.push_back({row.key, std::move(item.cells.front())});
  }
  marker = cursor->marker();
  return found;
}

/// Gives one column of all rows of a range to `take`, piece by piece. When the dataset has been cut over to
/// another backend, a scan fails that was open on shards, and a marker is refused: then all begins again.
template <typename Take>
absl::Status Walk(KVStore& store, const std::string& dataset, const KeyRange& range, const char* column,
                  const Take& take) {
  std::string marker;
  for (int attempt = 1;;) {
    auto found = ReadPiece(store, dataset, range, column, marker);
    if (!found.ok()) {
      const bool may_have_moved =
          absl::IsUnavailable(found.status()) || absl::IsFailedPrecondition(found.status());
      if (!may_have_moved || attempt++ == kMaxListAttempts) return found.status();
      marker.clear();
      continue;
    }
    if (!found->empty()) KV_RETURN_IF_ERROR(take(*std::move(found)));
    if (marker.empty()) return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<RowState> ReadRowState(KVStore& store, const std::string& dataset, const RowKey& key) {
  const CellsWanted wanted{EncodeRowKey(key), {kGenerationColumn, kVersionColumn}};
  KV_ASSIGN_OR_RETURN(auto answers, ReadCells(store, dataset, {&wanted, 1}));
  if (!answers.front().ok()) return answers.front().status();
  Cells& cells = *answers.front();
  RowState state;
  if (const auto found = cells.find(kVersionColumn); found != cells.end()) {
    KV_ASSIGN_OR_RETURN(state.version, VersionOf(key, std::move(found->second)));
  }
  if (const auto found = cells.find(kGenerationColumn); found != cells.end()) {
    state.generation = std::move(found->second.value);
  }
  return state;
}

absl::Status ListRows(KVStore& store, const std::string& dataset, const KeyRange& range,
                      const TakeListed& take) {
  return Walk(store, dataset, range, kVersionColumn, [&](std::vector<FoundCell>&& found) -> absl::Status {
    std::vector<ListedRow> rows;
    for (FoundCell& one : found) {
      KV_ASSIGN_OR_RETURN(const RowKey key, DecodeRowKey(one.row));
      KV_ASSIGN_OR_RETURN(RowVersion version, VersionOf(key, std::move(one.cell)));
      rows.push_back({key, std::move(version)});
    }
    return take(rows);
  });
}

absl::StatusOr<std::vector<RowKey>> KeysOf(KVStore& store, const std::string& dataset,
                                           const RowsWanted& wanted) {
  std::vector<RowKey> keys;
  const uint64_t periods = (wanted.last_period_s - wanted.first_period_s) / wanted.period_s + 1;
  if (periods <= kMaxListedRows) {
    for (uint64_t i = 0; i < periods; ++i) {
      keys.push_back(
          {wanted.salt, wanted.report, wanted.metric, wanted.first_period_s + i * wanted.period_s});
    }
    return keys;
  }
  const auto take = [&](std::span<const ListedRow> rows) {
    for (const ListedRow& row : rows) keys.push_back(row.key);
    return absl::OkStatus();
  };
  KV_RETURN_IF_ERROR(ListRows(
      store, dataset,
      MetricRange(wanted.salt, wanted.report, wanted.metric, wanted.first_period_s, wanted.last_period_s),
      take));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

absl::StatusOr<std::vector<RowKey>> ExistingKeysOf(KVStore& store, const std::string& dataset,
                                                   const RowsWanted& wanted) {
  KV_ASSIGN_OR_RETURN(const std::vector<RowKey> keys, KeysOf(store, dataset, wanted));
  std::vector<CellsWanted> versions;
  for (const RowKey& key : keys) versions.push_back({EncodeRowKey(key), {kVersionColumn}});
  KV_ASSIGN_OR_RETURN(const auto cells, ReadCells(store, dataset, versions));
  std::vector<RowKey> existing;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!cells[i].ok()) return cells[i].status();
    if (!cells[i]->empty()) existing.push_back(keys[i]);
  }
  return existing;
}

absl::Status ListRollupRows(KVStore& store, const std::string& dataset, const KeyRange& range,
                            const TakeKeys& take) {
  return Walk(store, dataset, range, kMadeColumn, [&](std::vector<FoundCell>&& found) -> absl::Status {
    std::vector<RowKey> keys;
    for (const FoundCell& one : found) {
      KV_ASSIGN_OR_RETURN(keys.emplace_back(), DecodeRollupKey(one.row));
    }
    return take(keys);
  });
}

}  // namespace kvstore::reports
