#include "catalog/catalog_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "json/dataset_json.h"
#include "json/json_text.h"

namespace kvstore {
namespace {

constexpr int kFormat = 1;

std::string_view Name(DatasetState state) {
  switch (state) {
    case DatasetState::kCreating:
      return "creating";
    case DatasetState::kActive:
      return "active";
    case DatasetState::kDropping:
      return "dropping";
  }
  return "unknown";
}

std::optional<DatasetState> ParseState(std::string_view name) {
  for (auto state : {DatasetState::kCreating, DatasetState::kActive, DatasetState::kDropping}) {
    if (Name(state) == name) return state;
  }
  return std::nullopt;
}

Json EntryToJson(const CatalogEntry& entry) {
  Json json = DatasetToJson(entry.spec);
  json["incarnation"] = std::to_string(entry.spec.incarnation);
  json["state"] = Name(entry.state);
  if (!entry.owner.empty()) json["owner"] = entry.owner;
  if (!entry.other_backend.empty()) {
    json["other_backend"] = entry.other_backend;
    if (!entry.other_engine.empty()) json["other_engine"] = entry.other_engine;
  }
  return json;
}

absl::StatusOr<CatalogEntry> EntryFromJson(const Json& json, std::string path) {
  JsonFields fields(json, std::move(path));
  CatalogEntry entry;
  entry.spec = DatasetFromFields(fields, /*stored_fields=*/true);
  entry.spec.incarnation = fields.Uint("incarnation", 0, UINT64_MAX);
  entry.spec.table = fields.OptionalString("table").value_or("");
  const auto state = ParseState(fields.String("state"));
  if (!state) fields.Fail("state", "must be \"creating\", \"active\" or \"dropping\"");
  entry.owner = fields.OptionalString("owner").value_or("");
  entry.other_backend = fields.OptionalString("other_backend").value_or("");
  entry.other_engine = fields.OptionalString("other_engine").value_or("");
  if (auto status = fields.Finish(); !status.ok()) return status;
  entry.state = *state;
  if (auto status = Validate(entry.spec); !status.ok()) return status;
  return entry;
}

}  // namespace

std::string EncodeCatalogEntry(const CatalogEntry& entry) { return TextOf(EntryToJson(entry), 2) + "\n"; }

absl::StatusOr<CatalogEntry> DecodeCatalogEntry(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return json.status();
  return EntryFromJson(*json, "");
}

std::string EncodeCatalog(const std::vector<CatalogEntry>& entries) {
  std::vector<std::string> parts;
  for (const CatalogEntry& entry : entries) parts.push_back(EncodeCatalogPart(entry));
  return JoinCatalogParts({parts.begin(), parts.end()});
}

std::string EncodeCatalogPart(const CatalogEntry& entry) {
  constexpr std::string_view kIndent = "    ";
  std::string part(kIndent);
  for (const char c : TextOf(EntryToJson(entry), 2)) {
    part += c;
    // Strings contain no line breaks: JSON escapes them.
    if (c == '\n') part += kIndent;
  }
  return part;
}

std::string JoinCatalogParts(const std::vector<std::string_view>& parts) {
  return fmt::format("{{\n  \"datasets\": [{}{}{}],\n  \"format\": {}\n}}\n", parts.empty() ? "" : "\n",
                     fmt::join(parts, ",\n"), parts.empty() ? "" : "\n  ", kFormat);
}

absl::StatusOr<std::vector<CatalogEntry>> DecodeCatalog(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return json.status();
  JsonFields top(*json, "");
  const uint64_t format = top.Uint("format", 1, UINT32_MAX);
  const auto& datasets = top.Array("datasets");
  if (auto status = top.Finish(); !status.ok()) return status;
  if (format != kFormat) {
    return absl::FailedPreconditionError(
        fmt::format("format {} was written by a newer version; this one reads format {}", format, kFormat));
  }
  std::vector<CatalogEntry> entries;
  for (size_t i = 0; i < datasets.size(); ++i) {
    auto entry = EntryFromJson(datasets[i], fmt::format("datasets[{}].", i));
    if (!entry.ok()) return entry.status();
    entries.push_back(*std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<CatalogEntry>> ReadCatalogFile(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  auto entries = DecodeCatalog(*text);
  if (entries.ok()) return entries;
  const std::string message = fmt::format("{}: {}", path, std::string(entries.status().message()));
  return absl::IsFailedPrecondition(entries.status()) ? absl::FailedPreconditionError(message)
                                                      : absl::DataLossError(message);
}

}  // namespace kvstore
