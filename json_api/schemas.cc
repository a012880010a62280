#include "json_api/schemas.h"

#include <nlohmann/json.hpp>

namespace kvstore::json_api {
namespace {

/// A placeholder for "{"$ref": "#/components/schemas/NAME"}" is written as "@NAME" here, and one for an array
/// of it as
/// "@NAME*". An object without "additionalProperties" has no fields but those that are named.
constexpr char kValues[] = R"({
"Text": {"type": "string"},
"Texts": "@Text*",
"Flag": {"type": "boolean"},
"Uint": {"description": "A whole number, or its decimal string. Numbers beyond 2^53 should be strings: many readers of JSON round them. IDs in answers are strings.",
  "anyOf": [{"type": "integer", "minimum": 0, "maximum": 18446744073709551615}, {"type": "string", "pattern": "^[0-9]{1,20}$"}]},
"Uints": "@Uint*",
"Timestamp": {"description": "Milliseconds, below 2^63; or their decimal string",
  "anyOf": [{"type": "integer", "minimum": 0, "maximum": 9223372036854775808}, {"type": "string", "pattern": "^[0-9]{1,19}$"}]},
"Bytes": {"description": "Any bytes: as a string, which stands for its UTF-8 bytes, or in base64",
  "anyOf": [{"type": "string"}, "@Base64"]},
"Base64": {"type": "object", "properties": {"b64": {"type": "string", "contentEncoding": "base64"}}, "required": ["b64"]},
"BytesList": {"type": "array", "items": "@Bytes", "minItems": 1},
"Marker": {"description": "null: nothing follows. Else give it to the next request", "anyOf": [{"type": ["string", "null"]}, "@Base64"]},
"Document": {"type": "object", "additionalProperties": true},
"Shape": {"enum": ["rows", "objects", "mappings"]},
"Durability": {"enum": ["process", "machine"]},
"Order": {"enum": ["asc", "desc"]},
"Error": {"type": "object", "properties": {"ok": {"const": false}, "error": "@ErrorDetail"}, "required": ["ok", "error"]},
"ErrorDetail": {"type": "object", "required": ["code", "message"], "properties": {
  "code": {"enum": ["CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"]},
  "message": {"type": "string"},
  "in_doubt": {"description": "The write may or may not have happened. Without this field it has changed nothing", "const": true}}}
})";

constexpr char kData[] = R"({
"Datasets": {"type": "array", "items": {"type": "object", "required": ["dataset", "shape", "backend"], "properties": {
  "dataset": "@Text", "shape": "@Shape", "backend": "@Text", "max_versions": "@Uint", "ttl_ms": "@Uint", "durability": "@Durability",
  "compression": "@Text", "blob_threshold": "@Uint", "type": "@Uint", "engine": "@Text", "table": "@Text", "keep_changes_ms": "@Uint"}}},
"Changes": {"type": "array", "items": {"type": "object", "required": ["token", "at"], "properties": {
  "token": "@Text", "at": "@Timestamp", "row": "@Bytes", "column": "@Bytes", "cells": "@Cell*", "more": "@Flag", "object_id": "@Uint",
  "data": {"description": "null: it is gone", "anyOf": ["@Document", {"type": "null"}]}, "timestamp": "@Timestamp", "from": "@Uint", "to": "@Uint",
  "sequence": {"description": "null: it is gone", "anyOf": ["@Uint", {"type": "null"}]}}}},
"Consumers": {"type": "array", "items": {"type": "object", "required": ["name", "token", "set_at", "lag_ms"], "properties": {
  "name": "@Text", "token": {"description": "null: some of what is after it is not kept any more", "anyOf": ["@Text", {"type": "null"}]},
  "set_at": "@Timestamp", "lag_ms": {"description": "How old the oldest change after the token is; 0: there is none", "anyOf": ["@Uint"]}}}},
"Partitions": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
  "name": "@Text", "start_row": "@Bytes", "end_row": "@Bytes", "partition": "@Text", "start_id": "@Uint", "end_id": "@Uint"}}},
"PutItems": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["column", "value"], "properties": {
  "column": "@Bytes", "value": "@Bytes", "timestamp": "@Timestamp"}}},
"Items": {"type": "array", "items": {"type": "object", "required": ["column", "cells"], "properties": {"column": "@Bytes", "cells": "@Cell*"}}},
"Cell": {"type": "object", "required": ["timestamp", "value"], "properties": {"timestamp": "@Timestamp", "value": "@Bytes"}},
"CellNames": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["column", "timestamp"], "properties": {
  "column": "@Bytes", "timestamp": "@Timestamp"}}},
"Condition": {"description": "Put only if the column is absent, or its newest value equals this one", "anyOf": [
  {"type": "object", "required": ["column", "absent"], "properties": {"column": "@Bytes", "absent": {"const": true}}},
  {"type": "object", "required": ["column", "equals"], "properties": {"column": "@Bytes", "equals": "@Bytes"}}]},
"RowReads": {"type": "array", "minItems": 1, "maxItems": 10000, "items": {"type": "object", "required": ["row"], "properties": {
  "row": "@Bytes", "columns": "@BytesList", "versions": "@Uint", "start_timestamp": "@Timestamp", "end_timestamp": "@Timestamp", "limit": "@Uint",
  "marker": "@Marker", "after_column": "@Bytes"}}},
"RowWrites": {"type": "array", "minItems": 1, "maxItems": 10000, "items": {"type": "object", "required": ["row", "items"], "properties": {
  "row": "@Bytes", "items": "@PutItems", "condition": "@Condition"}}},
"RowDeletes": {"type": "array", "minItems": 1, "maxItems": 10000, "items": {"type": "object", "required": ["row"], "properties": {
  "row": "@Bytes", "columns": "@BytesList", "cells": "@CellNames"}}},
"RowResults": {"type": "array", "items": {"anyOf": ["@Error", {"type": "object", "required": ["ok", "row", "items", "marker"], "properties": {
  "ok": {"const": true}, "row": "@Bytes", "items": "@Items", "marker": "@Marker"}}]}},
"PutResults": {"type": "array", "items": {"anyOf": ["@Error", {"type": "object", "required": ["ok"], "properties": {
  "ok": {"const": true}, "timestamp": "@Timestamp"}}]}},
"DoneResults": {"type": "array", "items": {"anyOf": ["@Error", {"type": "object", "required": ["ok"], "properties": {"ok": {"const": true}}}]}},
"ObjectResults": {"type": "array", "items": {"anyOf": ["@Error", {"type": "object", "required": ["ok", "data", "timestamp"], "properties": {
  "ok": {"const": true}, "data": "@Document", "timestamp": "@Timestamp"}}]}},
"ScannedRows": {"type": "array", "items": {"type": "object", "required": ["row", "items"], "properties": {"row": "@Bytes", "items": "@Items"}}},
"Objects": {"type": "array", "items": {"type": "object", "required": ["object_id", "data", "timestamp"], "properties": {
  "object_id": "@Uint", "data": "@Document", "timestamp": "@Timestamp"}}},
"JoinedObjects": {"type": "array", "items": {"anyOf": [
  {"type": "object", "required": ["ok", "to", "sequence", "data", "timestamp"], "properties": {
    "ok": {"const": true}, "to": "@Uint", "sequence": "@Uint", "data": "@Document", "timestamp": "@Timestamp"}},
  {"type": "object", "required": ["ok", "to", "sequence", "error"], "properties": {
    "ok": {"const": false}, "to": "@Uint", "sequence": "@Uint", "error": "@ErrorDetail"}}]}},
"MappingEntries": {"type": "array", "items": {"type": "object", "required": ["to", "sequence"], "properties": {"to": "@Uint", "sequence": "@Uint"}}},
"ScannedMappings": {"type": "array", "items": {"type": "object", "required": ["from", "to", "sequence"], "properties": {
  "from": "@Uint", "to": "@Uint", "sequence": "@Uint"}}},
"ShardMaps": {"type": "array", "items": {"type": "object", "required": ["name", "at_ms", "who", "map"], "properties": {
  "name": "@Text", "at_ms": "@Uint", "who": "@Text", "map": {"type": ["string", "null"]}}}},
"Rights": {"description": "By dataset, by DATASET/REPORT, and for all others by *", "type": "object",
  "additionalProperties": {"enum": ["none", "read", "write", "admin"]}},
"Backups": {"type": "array", "items": {"type": "object",
  "required": ["backup", "url", "began_ms", "finished_ms", "bytes", "files", "units", "sent_bytes", "sent_objects"], "properties": {
  "backup": "@Text", "url": "@Text", "began_ms": "@Uint", "finished_ms": "@Uint", "bytes": "@Uint", "files": "@Uint", "units": "@Uint",
  "sent_bytes": "@Uint", "sent_objects": "@Uint"}}},
"CallSeries": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "array", "minItems": 5, "maxItems": 5, "items": "@Uint"}}},
"ShardSpace": {"enum": ["id", "mod"]}
})";

constexpr char kReports[] = R"({
"Duration": {"description": "A whole number and a unit: ms, s, m, h, d, w, and in queries mo and y; a retention may be 0", "type": "string"},
"Time": {"description": "RFC 3339, a date, or milliseconds since 1970", "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]},
"Number": {"description": "Integers beyond 2^53 are strings", "type": ["number", "string", "null"]},
"SegmentKey": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["name"], "properties": {"name": "@Text", "default": "@Text"}}]},
"SegmentKeys": "@SegmentKey*",
"SegmentValues": {"type": "object", "additionalProperties": "@Texts"},
"Metrics": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["name"], "properties": {
  "name": "@Text", "kind": {"enum": ["value", "distinct", "distribution"]}}}]}},
"Rollups": {"type": "array", "items": {"type": "object", "required": ["step"], "properties": {"keys": {"type": "array", "items": "@Text"}, "step": "@Duration"}}},
"Points": {"type": "array", "items": {"type": "object", "required": ["metric", "time"], "properties": {
  "metric": "@Text", "time": "@Time", "segments": {"type": "object", "additionalProperties": "@Text"}, "value": {"type": ["number", "string"]},
  "values": {"type": "array", "items": {"type": ["number", "string"]}}}}},
"QueryMetrics": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["name"], "properties": {
  "name": "@Text", "expression": "@Text"}}]}},
"Filters": {"type": "array", "items": {"type": "object", "properties": {"name": "@Text", "where": {"type": "object", "additionalProperties": {
  "anyOf": [{"const": "*"}, "@BytesList"]}}}}},
"Top": {"type": "object", "required": ["n"], "properties": {"n": "@Uint", "by": "@Text"}},
"Fill": {"enum": ["none", "zero", "previous"]},
"SeriesList": {"type": "array", "items": {"type": "object", "required": ["metric", "segments", "points"], "properties": {
  "metric": "@Text", "filter": "@Text", "segments": {"type": "object", "additionalProperties": "@Text"}, "points": "@TimeValue*", "compared": "@TimeValue*"}}},
"TimeValue": {"description": "The beginning of a step in milliseconds since 1970, and its value", "type": "array", "minItems": 2, "maxItems": 2, "items": "@Number"},
"Cost": {"type": "object", "required": ["rows", "chunks", "chunks_skipped", "bytes", "from_rollups", "ms"], "properties": {
  "rows": "@Uint", "chunks": "@Uint", "chunks_skipped": "@Uint", "bytes": "@Uint", "from_rollups": "@Uint", "ms": "@Number"}},
"PartCosts": {"type": "array", "items": {"type": "object", "required": ["metric", "salt"], "properties": {
  "metric": "@Text", "salt": "@Uint", "rows": "@Uint", "chunks": "@Uint", "chunks_skipped": "@Uint", "bytes": "@Uint", "from_rollups": "@Uint",
  "ms": "@Number"}}}
})";

/// Returns the schema with its placeholders filled in.
Json Filled(const Json& schema) {
  if (schema.is_string() && schema.get_ref<const std::string&>().starts_with('@')) {
    const auto& text = schema.get_ref<const std::string&>();
    const bool list = text.ends_with('*');
    Json reference = {{"$ref", "#/components/schemas/" + text.substr(1, text.size() - (list ? 2 : 1))}};
    return list ? Json{{"type", "array"}, {"items", std::move(reference)}} : reference;
  }
  if (!schema.is_structured()) return schema;
  Json filled = schema;
  for (Json& part : filled) part = Filled(part);
  if (filled.is_object() && filled.contains("properties") && !filled.contains("additionalProperties"))
    filled["additionalProperties"] = false;
  return filled;
}

}  // namespace

const Json& Schemas() {
  static const Json kSchemas = [] {
    Json all = Json::object();
    for (const char* part : {kValues, kData, kReports}) all.update(Json::parse(part));
    return Filled(all);
  }();
  return kSchemas;
}

}  // namespace kvstore::json_api
