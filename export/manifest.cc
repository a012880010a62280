#include "export/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "blobstore/blob_name.h"
#include "json/json.h"
#include "json/json_fields.h"
#include "json/json_text.h"

namespace kvstore::exports {
namespace {

using pipe::ColumnType;

constexpr uint64_t kFormat = 1;
/// The format of exports of changes, which a program that knows only whole ones must not take for one.
constexpr uint64_t kChangesFormat = 2;
constexpr uint64_t kMaxMs = uint64_t{1} << 62;
constexpr size_t kMaxIdBytes = 100;

/// The names of the types of columns in the manifest.
constexpr std::array<std::pair<std::string_view, ColumnType>, 7> kColumnTypes = {
    {{"binary", ColumnType::kBytes},
     {"string", ColumnType::kText},
     {"int64", ColumnType::kInt64},
     {"int32", ColumnType::kInt32},
     {"double", ColumnType::kDouble},
     {"bool", ColumnType::kBool},
     {"timestamp", ColumnType::kTime}}};

std::string_view NameOf(ColumnType type) {
  return std::find_if(kColumnTypes.begin(), kColumnTypes.end(),
                      [&](const auto& known) { return known.second == type; })
      ->first;
}

std::optional<ColumnType> ColumnTypeNamed(std::string_view name) {
  const auto* const found = std::find_if(kColumnTypes.begin(), kColumnTypes.end(),
                                         [&](const auto& known) { return known.first == name; });
  if (found == kColumnTypes.end()) return std::nullopt;
  return found->second;
}

Json RequestToJson(const ExportRequest& request) {
  Json columns = Json::array();
  for (const TableColumn& column : request.options.columns) columns.push_back(ToText(column));
  Json json = {{"dataset", request.dataset},    {"shape", Name(request.shape)},
               {"columns", std::move(columns)}, {"text", request.options.text},
               {"from", request.from},          {"at_ms", request.at_ms}};
  if (!request.since.empty()) json["since"] = request.since;
  return json;
}

/// The required object of that name; an empty one after a mistake.
const Json& ObjectIn(JsonFields& fields, std::string_view name) {
  static const Json kNone = Json::object();
  const Json* const object = fields.Require(name);
  return object == nullptr ? kNone : *object;
}

ExportRequest ReadRequest(JsonFields& fields) {
  ExportRequest request{.dataset = fields.String("dataset")};
  const auto shape = ParseShape(fields.String("shape"));
  if (!shape) fields.Fail("shape", "is none of rows, objects, mappings");
  request.shape = shape.value_or(Shape::kRows);
  for (const Json& column : fields.Array("columns")) {
    if (!column.is_string()) {
      fields.Fail("columns", "must be strings");
      continue;
    }
    request.options.columns.push_back(ParseTableColumn(column.get_ref<const std::string&>(), request.shape));
  }
  request.options.text = fields.OptionalBool("text").value_or(false);
  request.from = fields.String("from");
  request.at_ms = fields.Uint("at_ms", 0, kMaxMs);
  request.since = fields.OptionalString("since").value_or("");
  if (!request.since.empty() && !CheckExportId(request.since).ok()) {
    fields.Fail("since", "is no name of an export");
  }
  return request;
}

pipe::Column ReadColumn(JsonFields& fields) {
  pipe::Column column{.name = fields.String("name")};
  const auto type = ColumnTypeNamed(fields.String("type"));
  if (!type) fields.Fail("type", "is not known");
  column.type = type.value_or(ColumnType::kBytes);
  column.nullable = fields.OptionalBool("nullable").value_or(false);
  return column;
}

ExportedFile ReadExportedFile(JsonFields& fields) {
  ExportedFile file{.path = fields.String("path"),
                    .rows = fields.Uint("rows", 0, UINT64_MAX),
                    .row_groups = fields.Uint("row_groups", 0, UINT64_MAX),
                    .size = fields.Uint("size", 0, kMaxBlobBytes),
                    .checksum = fields.String("checksum")};
  if (!CheckBlobName(file.path).ok()) fields.Fail("path", "is not a path below the export's folder");
  if (file.checksum.empty()) fields.Fail("checksum", "must not be empty");
  return file;
}

/// Reads the objects of an array, each by `read`.
template <typename Read>
auto ReadEach(JsonFields& fields, std::string_view name, const Read& read) {
  std::vector<decltype(read(fields))> all;
  size_t i = 0;
  for (const Json& one : fields.Array(name)) {
    JsonFields inner(one, fmt::format("{}[{}].", fields.Path(name), i++));
    all.push_back(read(inner));
    fields.Fail(inner.FirstMistake());
  }
  return all;
}

absl::Status DamagedManifest(std::string_view id, std::string_view problem) {
  return absl::DataLossError(fmt::format("{}: {}", ManifestBlob(id), problem));
}

}  // namespace

uint64_t Manifest::TotalRows() const {
  uint64_t rows = 0;
  for (const ExportedFile& file : files) rows += file.rows;
  return rows;
}

uint64_t Manifest::TotalBytes() const {
  uint64_t bytes = 0;
  for (const ExportedFile& file : files) bytes += file.size;
  return bytes;
}

std::string ManifestBlob(std::string_view id) { return fmt::format("{}/manifest.json", id); }

absl::Status CheckExportId(std::string_view id) {
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  };
  if (!id.empty() && id.size() <= kMaxIdBytes && std::all_of(id.begin(), id.end(), is_allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format(
      "must be 1 to {} letters, digits, '-' and '_', as it is the name of the export's folder", kMaxIdBytes));
}

std::string EncodeManifest(const Manifest& manifest) {
  Json columns = Json::array();
  for (const pipe::Column& column : manifest.columns) {
    columns.push_back({{"name", column.name}, {"type", NameOf(column.type)}, {"nullable", column.nullable}});
  }
  Json files = Json::array();
  for (const ExportedFile& file : manifest.files) {
    files.push_back({{"path", file.path},
                     {"rows", file.rows},
                     {"row_groups", file.row_groups},
                     {"size", file.size},
                     {"checksum", file.checksum}});
  }
  Json json = {{"format", manifest.request.since.empty() ? kFormat : kChangesFormat},
               {"id", manifest.id},
               {"token", manifest.token},
               {"request", RequestToJson(manifest.request)},
               {"form", manifest.form},
               {"snapshot", manifest.snapshot},
               {"as_of_ms", manifest.as_of_ms},
               {"began_ms", manifest.began_ms},
               {"finished_ms", manifest.finished_ms},
               {"host", manifest.host},
               {"version", manifest.version},
               {"data", manifest.data},
               {"rows", manifest.TotalRows()},
               {"bytes", manifest.TotalBytes()},
               {"columns", std::move(columns)},
               {"files", std::move(files)}};
  if (!manifest.changes.empty()) {
    json["changes"] = manifest.changes;
    if (manifest.max_versions) json["max_versions"] = *manifest.max_versions;
    if (manifest.ttl_ms) json["ttl_ms"] = *manifest.ttl_ms;
  }
  return TextOf(json, 1) + "\n";
}

absl::StatusOr<Manifest> DecodeManifest(std::string_view text, std::string_view id) {
  const auto json = ParseJson(text);
  if (!json.ok()) return DamagedManifest(id, std::string(json.status().message()));
  JsonFields fields(*json, "");
  const uint64_t format = fields.Uint("format", 1, UINT64_MAX);
  if (fields.FirstMistake().ok() && format > kChangesFormat) {
    return absl::FailedPreconditionError(
        fmt::format("{}: a newer version of KVStore wrote it, in format {}", ManifestBlob(id), format));
  }
  Manifest manifest{.id = fields.String("id"), .token = fields.String("token"), .request = {}};
  JsonFields request(ObjectIn(fields, "request"), "request.");
  manifest.request = ReadRequest(request);
  fields.Fail(request.FirstMistake());
  manifest.form = fields.String("form");
  manifest.snapshot = fields.OptionalBool("snapshot").value_or(false);
  manifest.as_of_ms = fields.Uint("as_of_ms", 0, kMaxMs);
  manifest.began_ms = fields.Uint("began_ms", 0, kMaxMs);
  manifest.finished_ms = fields.Uint("finished_ms", 0, kMaxMs);
  manifest.host = fields.String("host");
  manifest.version = fields.String("version");
  manifest.data = fields.String("data");
  manifest.changes = fields.OptionalString("changes").value_or("");
  if (const auto versions = fields.OptionalUint("max_versions", 0, UINT32_MAX)) {
    manifest.max_versions = static_cast<uint32_t>(*versions);
  }
  manifest.ttl_ms = fields.OptionalUint("ttl_ms", 0, UINT64_MAX);
  manifest.columns = ReadEach(fields, "columns", ReadColumn);
  manifest.files = ReadEach(fields, "files", ReadExportedFile);
  std::set<std::string_view> paths;
  for (const ExportedFile& file : manifest.files) {
    if (!paths.insert(file.path).second) fields.Fail("files", fmt::format("{} is there twice", file.path));
  }
  if ((format == kChangesFormat) == manifest.request.since.empty()) {
    fields.Fail("format", fmt::format("{} is not that of an export {} since", format,
                                      manifest.request.since.empty() ? "without" : "with"));
  }
  if (manifest.id != id) fields.Fail("id", fmt::format("it is of another export, '{}'", manifest.id));
  // Fields that are not known are of a later version, which adds none that must be known under this format.
  if (auto status = fields.FirstMistake(); !status.ok()) {
    return DamagedManifest(id, std::string(status.message()));
  }
  return manifest;
}

absl::StatusOr<Manifest> ReadManifest(BlobStore& blobs, std::string_view id) {
  const auto text = blobs.Get(ManifestBlob(id), kBlobPieceBytes);
  if (!text.ok()) return text.status();
  return DecodeManifest(*text, id);
}

}  // namespace kvstore::exports
