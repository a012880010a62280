#include "cli/exec_protocol.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/answers.h"
#include "kvstore_api/bytes_json.h"
#include "kvstore_api/dataset_json.h"
#include "kvstore_api/limits.h"

namespace kvstore::cli {
namespace {

using Answer = absl::StatusOr<Json>;  // the fields beside "ok"
using Operation = Answer (*)(JsonFields& fields, KVStore& store);

constexpr uint64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr size_t kMaxScanPageBytes = kDefaultScanBytes;

Answer Done(const absl::Status& status) {
  if (!status.ok()) return status;
  return Json::object();
}

Json WithOk(Json answer) {
  answer["ok"] = true;
  return answer;
}

/// The answers of a batch, each with its own ok.
template <typename Results, typename ToJson>
Json ResultsToJson(const Results& results, ToJson to_json) {
  Json list = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    const Answer answer = to_json(i);
    list.push_back(answer.ok() ? WithOk(*answer) : ErrorToJson(answer.status()));
  }
  return {{"results", std::move(list)}};
}

// ---- datasets
// ---------------------------------------------------------------------------------------------------

Answer CreateDataset(JsonFields& fields, KVStore& store) {
  const DatasetSpec spec = DatasetFromFields(fields, /*stored_fields=*/false);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.CreateDataset(spec));
}

Answer AlterDataset(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const DatasetChange change = DatasetChangeFromFields(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.AlterDataset(dataset, change));
}

Answer DropDataset(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.DropDataset(dataset));
}

Answer ListDatasets(JsonFields& fields, KVStore& store) {
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto specs = store.ListDatasets();
  if (!specs.ok()) return specs.status();
  Json list = Json::array();
  for (const DatasetSpec& spec : *specs) list.push_back(DatasetToJson(spec));
  return Json{{"datasets", std::move(list)}};
}

Answer Compact(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.Compact(dataset, nullptr).status());
}

// ---- rows
// -------------------------------------------------------------------------------------------------------

TimeRange ReadTimeRange(JsonFields& fields) {
  TimeRange range;
  range.start = fields.OptionalUint("start_timestamp", 0, kMaxTimestamp).value_or(range.start);
  range.end = fields.OptionalUint("end_timestamp", 0, kMaxTimestamp + 1).value_or(range.end);
  return range;
}

/// A marker is a string, or null as the last page has it.
std::string ReadMarker(JsonFields& fields) {
  const Json* marker = fields.Find("marker");
  return marker == nullptr || marker->is_null() ? "" : fields.OptionalBytes("marker").value_or("");
}

uint32_t ReadCount(JsonFields& fields, std::string_view name, uint32_t otherwise) {
  return static_cast<uint32_t>(fields.OptionalUint(name, 1, kMaxUint32).value_or(otherwise));
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

/// Reads `rows: [...]`, each element by `read`. Mistakes are left in `fields`.
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

Answer PutRow(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const RowWriteRequest request = ReadRowWrite(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const RowWrite write = request.ToWrite();
  const auto result = store.PutRow(dataset, write.row, write.cells, write.options);
  if (!result.ok()) return result.status();
  return PutToJson(*result);
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

Answer GetRow(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const RowReadRequest read = ReadRowRead(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto row = store.GetRow(dataset, read.row, read.options);
  if (!row.ok()) return row.status();
  return RowToJson(read.row, *row);
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

Answer DeleteRow(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const RowDeleteRequest request = ReadRowDelete(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.DeleteRow(dataset, request.row, request.options));
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

size_t BytesOf(const ScannedRow& row) {
  size_t bytes = row.key.size();
  for (const Item& item : row.items) {
    bytes += item.column.size();
    for (const Cell& cell : item.cells) bytes += cell.value.size();
  }
  return bytes;
}

/// One page of a scan: up to `limit` rows or 1 MiB.
Answer ScanPage(RowCursor& cursor, uint32_t limit) {
  Json rows = Json::array();
  size_t bytes = 0;
  std::string marker;
  while (true) {
    std::string before = cursor.marker();
    ScannedRow row;
    const auto more = cursor.Next(row);
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
    rows.push_back({{"row", BytesToJson(row.key)}, {"items", ItemsToJson(row.items)}});
    if (row.continues) {
      marker = cursor.marker();
      break;
    }
  }
  return Json{{"rows", std::move(rows)}, {"marker", MarkerToJson(marker)}};
}

Answer ScanRows(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  RowRange range;
  range.start = fields.OptionalBytes("start_row").value_or("");
  range.end = fields.OptionalBytes("end_row").value_or("");
  const uint32_t limit = ReadCount(fields, "limit", 100);
  ScanOptions options;
  options.columns = fields.OptionalBytesList("columns");
  options.versions = ReadCount(fields, "versions", options.versions);
  options.marker = ReadMarker(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto cursor = store.ScanRows(dataset, range, options);
  if (!cursor.ok()) return cursor.status();
  return ScanPage(**cursor, limit);
}

// ---- objects
// ----------------------------------------------------------------------------------------------------

constexpr uint64_t kMaxUint64 = std::numeric_limits<uint64_t>::max();

Answer CreateObject(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const Json* data = fields.Require("data");
  CreateOptions options;
  options.near = fields.OptionalUint("near", 0, kMaxUint64);
  if (auto shard = fields.OptionalUint("shard", 0, 65535)) options.shard = static_cast<uint32_t>(*shard);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto id = store.CreateObject(dataset, data->dump(), options);
  if (!id.ok()) return id.status();
  return Json{{"object_id", std::to_string(*id)}};
}

Answer GetObject(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t id = fields.Uint("object_id", 0, kMaxUint64);
  const ObjectReadOptions options{.include_inactive =
                                      fields.OptionalBool("include_inactive").value_or(false)};
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto object = store.GetObject(dataset, id, options);
  if (!object.ok()) return object.status();
  return ObjectToJson(*object);
}

Answer GetObjects(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  std::vector<uint64_t> ids;
  const auto& list = fields.Array("object_ids");
  for (size_t i = 0; i < list.size(); ++i) {
    const auto id = UintFromJson(list[i]);
    if (!id) fields.Fail(fmt::format("object_ids[{}]", i), "must be an ID: a number or its decimal string");
    ids.push_back(id.value_or(0));
  }
  const ObjectReadOptions options{.include_inactive =
                                      fields.OptionalBool("include_inactive").value_or(false)};
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto objects = store.GetObjects(dataset, ids, options);
  if (!objects.ok()) return objects.status();
  return ResultsToJson(*objects, [&](size_t i) -> Answer {
    const auto& object = (*objects)[i];
    if (!object.ok()) return object.status();
    return ObjectToJson(*object);
  });
}

Answer UpdateObject(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t id = fields.Uint("object_id", 0, kMaxUint64);
  const Json* patch = fields.Require("merge_patch");
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto object = store.PatchObject(dataset, id, patch->dump(), {});
  if (!object.ok()) return object.status();
  const auto json = ObjectToJson(*object);
  if (!json.ok()) return json.status();
  return Json{{"data", (*json)["data"]}};
}

Answer DeleteObject(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t id = fields.Uint("object_id", 0, kMaxUint64);
  const bool hard = fields.OptionalBool("hard").value_or(false);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.DeleteObject(dataset, id, hard));
}

// ---- mappings
// ---------------------------------------------------------------------------------------------------

Answer AddMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  const uint64_t to = fields.Uint("to", 0, kMaxId);
  const auto sequence = fields.OptionalUint("sequence", 0, kMaxTimestamp);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.AddMapping(dataset, from, to, sequence));
}

Answer RemoveMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  const uint64_t to = fields.Uint("to", 0, kMaxId);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto removed = store.RemoveMapping(dataset, from, to);
  if (!removed.ok()) return removed.status();
  return Json{{"removed", *removed}};
}

Answer ListMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  MappingListOptions options;
  const std::string order = fields.OptionalString("order").value_or("asc");
  if (order == "desc") {
    options.order = MappingListOptions::Order::kDescending;
  } else if (order != "asc") {
    fields.Fail("order", "must be \"asc\" or \"desc\"");
  }
  options.limit =
      static_cast<uint32_t>(fields.OptionalUint("limit", 1, kMaxListEntries).value_or(options.limit));
  options.offset = fields.OptionalUint("offset", 0, kMaxUint64).value_or(0);
  options.marker = ReadMarker(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto page = store.ListMapping(dataset, from, options);
  if (!page.ok()) return page.status();
  return MappingToJson(*page);
}

Answer CountMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto count = store.CountMapping(dataset, from);
  if (!count.ok()) return count.status();
  return Json{{"count", *count}};
}

const std::map<std::string, Operation, std::less<>>& Operations() {
  static const std::map<std::string, Operation, std::less<>> kOperations = {
      {"create_dataset", &CreateDataset},
      {"alter_dataset", &AlterDataset},
      {"drop_dataset", &DropDataset},
      {"list_datasets", &ListDatasets},
      {"compact", &Compact},
      {"put_row", &PutRow},
      {"put_rows", &PutRows},
      {"get_row", &GetRow},
      {"get_rows", &GetRows},
      {"delete_row", &DeleteRow},
      {"delete_rows", &DeleteRows},
      {"scan_rows", &ScanRows},
      {"create_object", &CreateObject},
      {"get_object", &GetObject},
      {"get_objects", &GetObjects},
      {"update_object", &UpdateObject},
      {"delete_object", &DeleteObject},
      {"add_mapping", &AddMapping},
      {"remove_mapping", &RemoveMapping},
      {"list_mapping", &ListMapping},
      {"count_mapping", &CountMapping},
  };
  return kOperations;
}

Answer Dispatch(const Json& request, KVStore& store) {
  JsonFields fields(request, "");
  fields.Find("id");
  const std::string name = fields.String("op");
  const auto operation = Operations().find(name);
  if (operation != Operations().end()) return operation->second(fields, store);
  // A request that is no object, or has no op, is the first mistake; the fields of an unknown op cannot be
  // judged.
  fields.Fail("op", fmt::format("there is no operation '{}'", name));
  return fields.Finish();
}

}  // namespace

PutItems ReadItems(JsonFields& fields) {
  PutItems items;
  const auto& list = fields.Array("items");
  items.bytes.reserve(list.size() * 2);  // the cells point into it
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields inner(list[i], fields.Path(fmt::format("items[{}].", i)));
    const std::string& column = items.bytes.emplace_back(inner.Bytes("column"));
    const std::string& value = items.bytes.emplace_back(inner.Bytes("value"));
    const auto timestamp = inner.OptionalUint("timestamp", 0, kMaxTimestamp);
    items.cells.push_back({column, value, timestamp});
    fields.Fail(inner.Finish());
  }
  return items;
}

std::string Execute(KVStore& store, std::string_view line) {
  const auto request = ParseJson(line);
  if (!request.ok()) return ToLine(ErrorToJson(request.status()));
  const Answer answer = Dispatch(*request, store);
  Json envelope = answer.ok() ? WithOk(*answer) : ErrorToJson(answer.status());
  if (request->is_object() && request->contains("id")) envelope["id"] = (*request)["id"];
  return ToLine(envelope);
}

}  // namespace kvstore::cli
