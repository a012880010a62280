#include "kvstore_api/file_catalog.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "kvstore_api/dataset_json.h"

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

}  // namespace

std::string EncodeCatalog(const std::vector<CatalogEntry>& entries) {
  Json datasets = Json::array();
  for (const CatalogEntry& entry : entries) {
    Json json = DatasetToJson(entry.spec);
    json["incarnation"] = std::to_string(entry.spec.incarnation);
    json["state"] = Name(entry.state);
    datasets.push_back(std::move(json));
  }
  return Json{{"format", kFormat}, {"datasets", std::move(datasets)}}.dump(2) + "\n";
}

absl::StatusOr<std::vector<CatalogEntry>> DecodeCatalog(std::string_view text) {
  auto json = ParseJson(text);
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
    JsonFields fields(datasets[i], fmt::format("datasets[{}].", i));
    CatalogEntry entry;
    entry.spec = DatasetFromFields(fields, /*stored_fields=*/true);
    entry.spec.incarnation = fields.Uint("incarnation", 0, UINT64_MAX);
    const auto state = ParseState(fields.String("state"));
    if (!state) fields.Fail("state", "must be \"creating\", \"active\" or \"dropping\"");
    if (auto status = fields.Finish(); !status.ok()) return status;
    entry.state = *state;
    if (auto status = Validate(entry.spec); !status.ok()) return status;
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<CatalogEntry>> FileCatalog::Load() {
  entries_.clear();
  std::error_code error;
  if (!std::filesystem::exists(path_, error) && !error) return std::vector<CatalogEntry>{};
  std::ifstream file(path_, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return FileError(path_, "read", errno);
  auto entries = DecodeCatalog(text.str());
  if (!entries.ok()) {
    const std::string message =
        fmt::format("{}: {}", path_.string(), std::string(entries.status().message()));
    return absl::IsFailedPrecondition(entries.status()) ? absl::FailedPreconditionError(message)
                                                        : absl::DataLossError(message);
  }
  for (const CatalogEntry& entry : *entries) entries_.insert_or_assign(entry.spec.name, entry);
  return entries;
}

absl::Status FileCatalog::Put(const CatalogEntry& entry) {
  Entries entries = entries_;
  entries.insert_or_assign(entry.spec.name, entry);
  return Replace(std::move(entries));
}

absl::Status FileCatalog::Remove(std::string_view name) {
  Entries entries = entries_;
  if (const auto found = entries.find(name); found != entries.end()) entries.erase(found);
  return Replace(std::move(entries));
}

absl::Status FileCatalog::Replace(Entries entries) {
  std::vector<CatalogEntry> list;
  for (const auto& [name, entry] : entries) list.push_back(entry);
  if (auto status = ReplaceFile(path_, EncodeCatalog(list)); !status.ok()) return status;
  entries_ = std::move(entries);
  return absl::OkStatus();
}

}  // namespace kvstore
