#include "catalog/file_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/files.h"
#include "catalog/catalog_json.h"

namespace kvstore {
namespace {

absl::Status RecordChanged() { return absl::AbortedError("the migration's record has changed meanwhile"); }

absl::Status VanishedError(const std::filesystem::path& path) {
  return absl::DataLossError(
      fmt::format("{} is missing, though this process has read or written it before. Put the file back, as "
                  "the newest backup of the store has it; until then no dataset can be created, altered or "
                  "dropped. Nothing was changed",
                  path.string()));
}

}  // namespace

absl::StatusOr<CatalogContents> FileCatalog::Load() {
  std::error_code error;
  if (!std::filesystem::exists(path_, error) && !error) {
    // An empty catalog would say that there are no datasets, and the next change would write that.
    if (!text_.empty()) return VanishedError(path_);
    entries_.clear();
    return CatalogContents{{}, version_};
  }
  auto text = ReadFile(path_);
  if (!text.ok()) return text.status();
  if (*text != text_ || text_.empty()) {
    const auto entries = ReadCatalogFile(path_.string());
    if (!entries.ok()) return entries.status();
    entries_.clear();
    coded_ += entries->size();
    for (const CatalogEntry& entry : *entries) entries_.insert_or_assign(entry.spec.name, EncodeEntry(entry));
    text_ = *std::move(text);
  }
  CatalogContents contents{{}, version_};
  contents.entries.reserve(entries_.size());
  for (const auto& [name, kept] : entries_) contents.entries.push_back(kept.entry);
  return contents;
}

FileCatalog::EncodedEntry FileCatalog::EncodeEntry(const CatalogEntry& entry) {
  ++coded_;
  return {entry, EncodeCatalogPart(entry)};
}

absl::StatusOr<CatalogContents> FileCatalog::LoadCopy() const {
  return absl::NotFoundError("the file is the catalog itself");
}

absl::StatusOr<int64_t> FileCatalog::Put(const CatalogEntry& entry, int64_t version,
                                         const std::optional<RecordFence>& fence) {
  if (fence && !IsRecordAt(fence->name, fence->version)) return RecordChanged();
  return Replace(entry.spec.name, &entry, version, entry.state == DatasetState::kDropping);
}

absl::StatusOr<int64_t> FileCatalog::Remove(std::string_view name, int64_t version) {
  return Replace(name, nullptr, version, /*drops=*/true);
}

absl::StatusOr<int64_t> FileCatalog::Replace(std::string_view name, const CatalogEntry* entry,
                                             int64_t version, bool drops) {
  if (version != version_) return absl::AbortedError("the catalog has changed meanwhile");
  Entries::node_type before;
  if (const auto found = entries_.find(name); found != entries_.end()) before = entries_.extract(found);
  if (entry != nullptr) entries_.emplace(name, EncodeEntry(*entry));
  std::vector<std::string_view> parts;
  parts.reserve(entries_.size());
  for (const auto& [other, kept] : entries_) parts.push_back(kept.text);
  std::string text = JoinCatalogParts(parts);
  absl::Status status = ReplaceFile(path_, text);
  if (absl::IsResourceExhausted(status) && drops && make_room_) {
    make_room_();
    status = ReplaceFile(path_, text);
  }
  if (!status.ok()) {
    if (const auto found = entries_.find(name); found != entries_.end()) entries_.erase(found);
    if (!before.empty()) entries_.insert(std::move(before));
    return status;
  }
  text_ = std::move(text);
  return ++version_;
}

// ---- records ----

std::filesystem::path FileCatalog::RecordPath(std::string_view name) const {
  return path_.parent_path() / "migrations" / (std::string(name) + ".json");
}

bool FileCatalog::IsRecordAt(std::string_view name, int64_t version) const {
  std::error_code error;
  if (!std::filesystem::exists(RecordPath(name), error)) return false;
  const auto current = record_versions_.find(name);
  return version == (current == record_versions_.end() ? 0 : current->second);
}

absl::StatusOr<CatalogRecord> FileCatalog::GetRecord(std::string_view name) {
  auto text = ReadFile(RecordPath(name));
  if (!text.ok()) return text.status();
  return CatalogRecord{*std::move(text), record_versions_[std::string(name)]};
}

absl::StatusOr<int64_t> FileCatalog::PutRecord(std::string_view name, std::string_view text,
                                               int64_t version) {
  const std::filesystem::path path = RecordPath(name);
  std::error_code error;
  const bool unchanged = version == -1 ? !std::filesystem::exists(path, error) : IsRecordAt(name, version);
  if (!unchanged) return RecordChanged();
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return FileError(path.parent_path(), "create", error.value());
  if (auto status = ReplaceFile(path, text); !status.ok()) return status;
  return ++record_versions_[std::string(name)];
}

absl::Status FileCatalog::RemoveRecord(std::string_view name, int64_t version) {
  const std::filesystem::path path = RecordPath(name);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return absl::OkStatus();
  if (!IsRecordAt(name, version)) return RecordChanged();
  std::filesystem::remove(path, error);
  if (error) return FileError(path, "remove", error.value());
  // The next record of that name continues with higher versions.
  ++record_versions_[std::string(name)];
  std::filesystem::remove(path.parent_path(), error);  // Only succeeds if this was the last record.
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FileCatalog::ListRecords() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(path_.parent_path() / "migrations", error)) {
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kvstore
