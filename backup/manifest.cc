#include "backup/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "backup/checked_line.h"
#include "backup/layout.h"
#include "blobstore/blob_name.h"
#include "blobstore/blob_store.h"
#include "idgen/object_id.h"
#include "json/dataset_json.h"
#include "json/json.h"
#include "json/json_fields.h"
#include "json/json_text.h"

namespace kvstore::backup {
namespace {

constexpr uint64_t kFormat = 1;
/// The kinds of backups: all files of an embedded store's folder, one dataset in units, and a MySQL server.
constexpr std::string_view kEmbedded = "embedded";
constexpr std::string_view kDataset = "dataset";
constexpr std::string_view kServer = "server";
constexpr std::string_view kKinds[] = {kEmbedded, kDataset, kServer};
/// The last shard that there can be in either space.
constexpr uint64_t kLastShard = 65'535;
constexpr uint64_t kMaxMs = uint64_t{1} << 62;
/// Files without which no embedded store can be opened.
constexpr std::string_view kRequired[] = {"KVSTORE", "rocksdb/CURRENT"};

bool IsChecksum(std::string_view text) {
  const std::string_view digest = text.substr(0, text.find('-'));
  const std::string_view pieces = text.substr(digest.size());
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (digest.size() != 64 || !std::all_of(digest.begin(), digest.end(), is_hex)) return false;
  return pieces.empty() ||
         (pieces.size() > 1 && pieces.size() < 8 && std::all_of(pieces.begin() + 1, pieces.end(), is_digit));
}

Json ToJson(const BackedUpFile& file) {
  return {{"path", file.path}, {"blob", file.blob}, {"size", file.size}, {"checksum", file.checksum}};
}

BackedUpFile ReadFile(JsonFields& fields) {
  BackedUpFile file{.path = fields.String("path"),
                    .blob = fields.String("blob"),
                    .size = fields.Uint("size", 0, kMaxBlobBytes),
                    .checksum = fields.String("checksum")};
  // The rules of blobs' names are those of paths that stay below a folder on any system.
  if (auto status = CheckBlobName(file.path); !status.ok()) {
    fields.Fail("path",
                "is not a path below a folder: only letters, digits, '-', '_', '.' and '/' are allowed, and "
                "no part may begin with '.'");
  }
  if (!CheckBlobName(file.blob).ok() || !file.blob.starts_with(kObjectPrefix)) {
    fields.Fail("blob", fmt::format("is not the name of an object, which begins with {}", kObjectPrefix));
  }
  if (!IsChecksum(file.checksum)) fields.Fail("checksum", "is not a checksum");
  return file;
}

/// Fails if the files cannot all be in one folder.
void CheckPaths(JsonFields& fields, const std::vector<BackedUpFile>& files) {
  std::set<std::string_view> paths;
  for (const BackedUpFile& file : files) {
    if (!paths.insert(file.path).second) fields.Fail("files", fmt::format("{} is there twice", file.path));
  }
  for (const std::string_view path : paths) {
    for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
      if (!paths.contains(path.substr(0, slash))) continue;
      fields.Fail("files", fmt::format("{} is a file and a folder", path.substr(0, slash)));
    }
  }
}

Json ToJson(const DatasetPart& dataset) {
  Json next = Json::object();
  for (const auto& [shard, local_id] : dataset.next_local_ids.shards) next[std::to_string(shard)] = local_id;
  Json json{{"settings", DatasetToJson(dataset.spec)},
            {"incarnation", std::to_string(dataset.spec.incarnation)},
            {"as_of_ms", dataset.as_of_ms},
            {"units", dataset.units},
            {"timestamp", dataset.timestamp},
            {"next_local_ids", std::move(next)}};
  if (dataset.next_local_ids.others > 1) json["next_local_id_of_others"] = dataset.next_local_ids.others;
  return json;
}

/// The required object of that name; an empty one after a mistake.
const Json& ReadObject(JsonFields& fields, std::string_view name) {
  static const Json kEmpty = Json::object();
  const Json* const object = fields.Require(name);
  return object == nullptr ? kEmpty : *object;
}

DatasetPart ReadDataset(JsonFields& fields) {
  DatasetPart dataset;
  JsonFields settings(ReadObject(fields, "settings"), fields.Path("settings") + ".");
  dataset.spec = DatasetFromFields(settings, /*stored_fields=*/true);
  dataset.spec.table = settings.OptionalString("table").value_or("");
  const absl::Status readable = settings.Finish();
  fields.Fail(readable);
  dataset.spec.incarnation = fields.Uint("incarnation", 0, UINT64_MAX);
  dataset.as_of_ms = fields.Uint("as_of_ms", 0, kMaxMs);
  dataset.units = fields.Uint("units", 0, UINT64_MAX);
  dataset.timestamp = fields.Uint("timestamp", 0, UINT64_MAX);
  JsonFields next(ReadObject(fields, "next_local_ids"), fields.Path("next_local_ids") + ".");
  for (const auto& [shard, local_id] : ReadObject(fields, "next_local_ids").items()) {
    const auto number = UintFromJson(Json(shard));
    if (!number || *number > ObjectId::kMaxShard) continue;  // next.Finish tells
    dataset.next_local_ids.shards[static_cast<uint32_t>(*number)] =
        next.Uint(shard, 0, ObjectId::kMaxLocal + 1);
  }
  fields.Fail(next.Finish());
  dataset.next_local_ids.others =
      fields.OptionalUint("next_local_id_of_others", 1, ObjectId::kMaxLocal + 1).value_or(1);
  if (readable.ok()) {
    if (auto status = Validate(dataset.spec); !status.ok())
      fields.Fail("settings", std::string(status.message()));
  }
  return dataset;
}

Json SpansToJson(const std::vector<ShardSpan>& spans, ShardSpace space) {
  Json list = Json::array();
  for (const ShardSpan& span : spans) {
    if (span.space == space) list.push_back({span.first, span.last});
  }
  return list;
}

Json ToJson(const ServerPart& server) {
  return {{"host", server.host},
          {"master", server.master},
          {"slave", server.slave},
          {"domain", server.domain},
          {"gtid", server.gtid},
          {"shards",
           {{"db", SpansToJson(server.shards, ShardSpace::kId)},
            {"mod", SpansToJson(server.shards, ShardSpace::kMod)}}},
          {"bytes", server.bytes}};
}

void ReadSpans(JsonFields& fields, ShardSpace space, std::vector<ShardSpan>& spans) {
  const std::string_view name = ShardSpaceName(space);
  for (const Json& pair : fields.Array(name)) {
    const bool is_pair =
        pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() && pair[1].is_number_unsigned();
    const uint64_t first = is_pair ? pair[0].get<uint64_t>() : 1;
    const uint64_t last = is_pair ? pair[1].get<uint64_t>() : 0;
    if (first > last || last > kLastShard)
      return fields.Fail(name, "must be ranges of shards, [first, last]");
    spans.push_back(
        {.space = space, .first = static_cast<uint32_t>(first), .last = static_cast<uint32_t>(last)});
  }
}

ServerPart ReadServer(JsonFields& fields) {
  ServerPart server{.host = fields.String("host"),
                    .master = fields.String("master"),
                    .slave = fields.String("slave"),
                    .domain = fields.Uint("domain", 0, UINT32_MAX),
                    .gtid = fields.String("gtid"),
                    .shards = {},
                    .bytes = fields.Uint("bytes", 0, UINT64_MAX)};
  JsonFields shards(ReadObject(fields, "shards"), fields.Path("shards") + ".");
  ReadSpans(shards, ShardSpace::kId, server.shards);
  ReadSpans(shards, ShardSpace::kMod, server.shards);
  fields.Fail(shards.Finish());
  return server;
}

std::string_view KindOf(const Manifest& manifest) {
  if (manifest.server) return kServer;
  return manifest.dataset ? kDataset : kEmbedded;
}

absl::Status Damaged(std::string_view id, std::string_view problem) {
  return absl::DataLossError(fmt::format("{}: {}", ManifestBlob(id), problem));
}

}  // namespace

uint64_t Manifest::TotalBytes() const {
  uint64_t bytes = 0;
  for (const BackedUpFile& file : files) bytes += file.size;
  return bytes;
}

const BackedUpFile* Manifest::Find(std::string_view path) const {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const BackedUpFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

std::string EncodeManifest(const Manifest& manifest) {
  Json files = Json::array();
  for (const BackedUpFile& file : manifest.files) files.push_back(ToJson(file));
  Json json = {{"format", kFormat},
               {"kind", KindOf(manifest)},
               {"id", manifest.id},
               {"began_ms", manifest.began_ms},
               {"finished_ms", manifest.finished_ms},
               {"host", manifest.host},
               {"version", manifest.version},
               {"engine", manifest.engine},
               {"sequence", manifest.sequence},
               {"sent_objects", manifest.sent_objects},
               {"sent_bytes", manifest.sent_bytes},
               {"files", std::move(files)}};
  if (manifest.dataset) json["dataset"] = ToJson(*manifest.dataset);
  if (manifest.server) json["server"] = ToJson(*manifest.server);
  return WithChecksumLine(TextOf(json));
}

absl::StatusOr<Manifest> DecodeManifest(std::string_view text, std::string_view id) {
  const auto line = CheckedLine(text);
  if (!line.ok()) return Damaged(id, std::string(line.status().message()));
  const auto json = ParseJson(*line);
  if (!json.ok()) return Damaged(id, std::string(json.status().message()));
  JsonFields fields(*json, "");
  const uint64_t format = fields.Uint("format", 1, kMaxMs);
  const std::string kind = fields.String("kind");
  const bool is_known = std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
  if (format > kFormat || (format == kFormat && !kind.empty() && !is_known)) {
    return absl::FailedPreconditionError(
        fmt::format("{}: a newer version of KVStore wrote it: format {} of the kind '{}', and this one knows "
                    "{}, of the kinds '{}'; use that version",
                    ManifestBlob(id), format, kind, kFormat, fmt::join(kKinds, "', '")));
  }
  Manifest manifest{.id = fields.String("id"),
                    .began_ms = fields.Uint("began_ms", 0, kMaxMs),
                    .finished_ms = fields.Uint("finished_ms", 0, kMaxMs),
                    .host = fields.String("host"),
                    .version = fields.String("version"),
                    .engine = fields.String("engine"),
                    .sequence = fields.Uint("sequence", 0, UINT64_MAX),
                    .sent_objects = fields.Uint("sent_objects", 0, UINT64_MAX),
                    .sent_bytes = fields.Uint("sent_bytes", 0, UINT64_MAX)};
  if (manifest.id != id) fields.Fail("id", "is that of another backup");
  const std::vector<Json>& files = fields.Array("files");
  manifest.files.reserve(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    JsonFields file(files[i], fmt::format("files[{}].", i));
    manifest.files.push_back(ReadFile(file));
    fields.Fail(file.Finish());
  }
  CheckPaths(fields, manifest.files);
  if (kind == kDataset) {
    JsonFields dataset(ReadObject(fields, "dataset"), "dataset.");
    manifest.dataset = ReadDataset(dataset);
    fields.Fail(dataset.Finish());
  } else if (kind == kServer) {
    JsonFields server(ReadObject(fields, "server"), "server.");
    manifest.server = ReadServer(server);
    fields.Fail(server.Finish());
  } else {
    for (const std::string_view required : kRequired) {
      if (manifest.Find(required) == nullptr) fields.Fail("files", fmt::format("{} is missing", required));
    }
  }
  // A later version may add fields that this one need not know; what it must know has another format.
  if (json->is_object()) {
    for (const auto& field : json->items()) fields.Find(field.key());
  }
  if (auto status = fields.Finish(); !status.ok()) return Damaged(id, std::string(status.message()));
  return manifest;
}

}  // namespace kvstore::backup
