#include <fmt/format.h>

#include <utility>

#include "backend_api/scan_budget.h"
#include "json_api/operations.h"
#include "json_api/put_items.h"
#include "kvstore_api/limits.h"

namespace kvstore::json_api {
namespace {

constexpr size_t kMaxScanPageBytes = kDefaultScanBytes;

TimeRange ReadTimeRange(JsonFields& fields) {
  TimeRange range;
  range.start = fields.OptionalUint("start_timestamp", 0, kMaxTimestamp).value_or(range.start);
  range.end = fields.OptionalUint("end_timestamp", 0, kMaxTimestamp + 1).value_or(range.end);
  return range;
}

struct RowReadRequest {
  std::string row;
  ReadOptions options;
};

RowReadRequest ReadRowRead(JsonFields& fields) {
  RowReadRequest read;
  read.row = fields.Bytes("row");
  read.options.columns = fields.OptionalBytesList("columns");
  read.options.versions = ReadCount(fields, "versions", read.options.versions);
  read.options.time_range = ReadTimeRange(fields);
  read.options.limit = ReadCount(fields, "limit", read.options.limit);
  read.options.marker = ReadMarker(fields);
  read.options.after_column = fields.OptionalBytes("after_column");
  return read;
}

struct RowWriteRequest {
  std::string row;
  PutItems items;
  bool conditional = false;
  std::string condition_column;
  std::optional<std::string> condition_value;

  RowWrite ToWrite() const {
    RowWrite write{.row = row, .cells = items.cells};
    if (conditional) {
      write.options.condition = Condition{.column = condition_column};
      if (condition_value) write.options.condition->equals = *condition_value;
    }
    return write;
  }
};

void ReadCondition(JsonFields& fields, RowWriteRequest& write) {
  const Json* condition = fields.Find("condition");
  if (condition == nullptr) return;
  JsonFields inner(*condition, fields.Path("condition."));
  write.conditional = true;
  write.condition_column = inner.Bytes("column");
  const auto absent = inner.OptionalBool("absent");
  write.condition_value = inner.OptionalBytes("equals");
  if (absent.has_value() == write.condition_value.has_value() || absent == false) {
    inner.Fail("absent", "give either \"absent\": true or \"equals\"");
  }
  fields.Fail(inner.Finish());
}

RowWriteRequest ReadRowWrite(JsonFields& fields) {
  RowWriteRequest write;
  write.row = fields.Bytes("row");
  write.items = ReadItems(fields);
  ReadCondition(fields, write);
  return write;
}

struct RowDeleteRequest {
  std::string row;
  DeleteOptions options;
};

RowDeleteRequest ReadRowDelete(JsonFields& fields) {
  RowDeleteRequest request;
  request.row = fields.Bytes("row");
  request.options.columns = fields.OptionalBytesList("columns");
  if (fields.Find("cells") == nullptr) return request;
  request.options.cells.emplace();
  const auto& cells = fields.Array("cells");
  for (size_t i = 0; i < cells.size(); ++i) {
    JsonFields inner(cells[i], fields.Path(fmt::format("cells[{}].", i)));
    CellName cell;
    cell.column = inner.Bytes("column");
    cell.timestamp = inner.Uint("timestamp", 0, kMaxTimestamp);
    request.options.cells->push_back(std::move(cell));
    fields.Fail(inner.Finish());
  }
  return request;
}

/// Reads `rows: [...]`, each element by `read`. Mistakes are recorded in `fields`.
template <typename Request>
std::vector<Request> ReadRowsOf(JsonFields& fields, Request (*read)(JsonFields&)) {
  std::vector<Request> requests;
  const auto& rows = fields.Array("rows");
  for (size_t i = 0; i < rows.size(); ++i) {
    JsonFields inner(rows[i], fields.Path(fmt::format("rows[{}].", i)));
    requests.push_back(read(inner));
    fields.Fail(inner.Finish());
  }
  return requests;
}

Json PutToJson(const PutResult& result) {
  Json answer = Json::object();
  if (result.timestamp) answer["timestamp"] = *result.timestamp;
  return answer;
}

/// Returns about how many bytes of JSON a row becomes.
size_t BytesOf(const ScannedRow& row) {
  constexpr size_t kCellBytes = 40;  // {"timestamp":1700000000000,"value":""},
  size_t bytes = row.key.size();
  for (const Item& item : row.items) {
    bytes += item.column.size();
    for (const Cell& cell : item.cells) bytes += kCellBytes + cell.value.size();
  }
  return bytes;
}

/// Returns one page of a scan: up to `limit` rows or 1 MiB. Within a ScanBudget it ends when that is spent,
/// perhaps without a row, but never where it began, so that each page makes progress.
///
/// begin  The marker with which the scan was opened.
Answer ScanPage(RowCursor& cursor, uint32_t limit, const std::string& begin) {
  Json rows = Json::array();
  size_t bytes = 0;
  std::string marker;
  while (true) {
    std::string before = cursor.marker();
    ScannedRow row;
    const auto more = cursor.Next(row);
    if (IsPaused(more.status())) {
      marker = cursor.marker();
      if (marker == begin) continue;
      break;
    }
    if (!more.ok()) return more.status();
    if (!*more) {
      marker.clear();
      break;
    }
    bytes += BytesOf(row);
    if (rows.size() == limit || (!rows.empty() && bytes > kMaxScanPageBytes)) {
      marker = std::move(before);
      break;
    }
    rows.push_back(ScannedRowToJson(row));
    if (row.continues) {
      marker = cursor.marker();
      break;
    }
  }
  return Json{{"rows", std::move(rows)}, {"marker", MarkerToJson(marker)}};
}

}  // namespace

Answer PutRow(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const RowWriteRequest request = ReadRowWrite(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const RowWrite write = request.ToWrite();
  const auto result = store.PutRow(dataset, write.row, write.cells, write.options);
  if (!result.ok()) return result.status();
  return PutToJson(*result);
}

JsonForm PutRowForm() {
  return {.summary = "Writes cells of one row, all or none",
          .request = {RequiredField("dataset", "Text"), RequiredField("row", "Bytes"),
                      RequiredField("items", "PutItems"), OptionalField("condition", "Condition")},
          .answer = {OptionalField("timestamp", "Timestamp")}};
}

Answer PutRows(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const auto requests = ReadRowsOf(fields, &ReadRowWrite);
  if (auto status = fields.Finish(); !status.ok()) return status;
  std::vector<RowWrite> writes;
  for (const RowWriteRequest& request : requests) writes.push_back(request.ToWrite());
  const auto results = store.PutRows(dataset, writes);
  if (!results.ok()) return results.status();
  return ResultsToJson(*results, [&](size_t i) -> Answer {
    const auto& result = (*results)[i];
    if (!result.ok()) return result.status();
    return PutToJson(*result);
  });
}

JsonForm PutRowsForm() {
  return {.summary = "Writes 1 to 10,000 rows, each of which succeeds or fails on its own",
          .request = {RequiredField("dataset", "Text"), RequiredField("rows", "RowWrites")},
          .answer = {RequiredField("results", "PutResults")}};
}

Answer GetRow(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const RowReadRequest read = ReadRowRead(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto row = store.GetRow(dataset, read.row, read.options);
  if (!row.ok()) return row.status();
  return RowToJson(read.row, *row);
}

JsonForm GetRowForm() {
  return {.summary = "Returns one page of a row; as long as the marker is not null, more may follow",
          .get = "/v1/datasets/{dataset}/rows/{row}",
          .request = {RequiredField("dataset", "Text"), RequiredField("row", "Bytes"),
                      OptionalField("columns", "BytesList"), OptionalField("versions", "Uint"),
                      OptionalField("start_timestamp", "Timestamp"),
                      OptionalField("end_timestamp", "Timestamp"), OptionalField("limit", "Uint"),
                      OptionalField("marker", "Marker"), OptionalField("after_column", "Bytes")},
          .answer = {RequiredField("row", "Bytes"), RequiredField("items", "Items"),
                     RequiredField("marker", "Marker")}};
}

Answer GetRows(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const auto requests = ReadRowsOf(fields, &ReadRowRead);
  if (auto status = fields.Finish(); !status.ok()) return status;
  std::vector<RowRead> reads;
  for (const RowReadRequest& request : requests) reads.push_back({request.row, request.options});
  const auto rows = store.GetRows(dataset, reads);
  if (!rows.ok()) return rows.status();
  return ResultsToJson(*rows, [&](size_t i) -> Answer {
    const auto& row = (*rows)[i];
    if (!row.ok()) return row.status();
    return RowToJson(requests[i].row, *row);
  });
}

JsonForm GetRowsForm() {
  return {.summary = "Returns pages of 1 to 10,000 rows, each with its own status",
          .request = {RequiredField("dataset", "Text"), RequiredField("rows", "RowReads")},
          .answer = {RequiredField("results", "RowResults")}};
}

Answer DeleteRow(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const RowDeleteRequest request = ReadRowDelete(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.DeleteRow(dataset, request.row, request.options));
}

JsonForm DeleteRowForm() {
  return {.summary = "Removes a row, or columns or cells of it, all or none",
          .request = {RequiredField("dataset", "Text"), RequiredField("row", "Bytes"),
                      OptionalField("columns", "BytesList"), OptionalField("cells", "CellNames")}};
}

Answer DeleteRows(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const auto requests = ReadRowsOf(fields, &ReadRowDelete);
  if (auto status = fields.Finish(); !status.ok()) return status;
  std::vector<RowDelete> deletes;
  for (const RowDeleteRequest& request : requests) deletes.push_back({request.row, request.options});
  const auto results = store.DeleteRows(dataset, deletes);
  if (!results.ok()) return results.status();
  return ResultsToJson(*results, [&](size_t i) { return Done((*results)[i]); });
}

JsonForm DeleteRowsForm() {
  return {.summary = "Removes 1 to 10,000 rows, each of which succeeds or fails on its own",
          .request = {RequiredField("dataset", "Text"), RequiredField("rows", "RowDeletes")},
          .answer = {RequiredField("results", "DoneResults")}};
}

Answer ScanRows(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  RowRange range;
  range.start = fields.OptionalBytes("start_row").value_or("");
  range.end = fields.OptionalBytes("end_row").value_or("");
  range.shard = fields.OptionalString("partition").value_or("");
  const uint32_t limit = ReadCount(fields, "limit", 100);
  ScanOptions options;
  options.columns = fields.OptionalBytesList("columns");
  options.versions = ReadCount(fields, "versions", options.versions);
  options.time_range = ReadTimeRange(fields);
  options.marker = ReadMarker(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto cursor = store.ScanRows(dataset, range, options);
  if (!cursor.ok()) return cursor.status();
  return ScanPage(**cursor, limit, options.marker);
}

JsonForm ScanRowsForm() {
  return {.summary =
              "Returns one page of the rows of a range; as long as the marker is not null, more may follow",
          .get = "/v1/datasets/{dataset}/rows",
          .request = {RequiredField("dataset", "Text"), OptionalField("start_row", "Bytes"),
                      OptionalField("end_row", "Bytes"), OptionalField("partition", "Text"),
                      OptionalField("limit", "Uint"), OptionalField("columns", "BytesList"),
                      OptionalField("versions", "Uint"), OptionalField("start_timestamp", "Timestamp"),
                      OptionalField("end_timestamp", "Timestamp"), OptionalField("marker", "Marker")},
          .answer = {RequiredField("rows", "ScannedRows"), RequiredField("marker", "Marker")}};
}

}  // namespace kvstore::json_api
