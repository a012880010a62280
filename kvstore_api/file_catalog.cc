#include "kvstore_api/file_catalog.h"

#include <utility>

#include "base/files.h"
#include "kvstore_api/catalog_json.h"

namespace kvstore {

absl::StatusOr<CatalogContents> FileCatalog::Load() {
  entries_.clear();
  std::error_code error;
  if (!std::filesystem::exists(path_, error) && !error) return CatalogContents{{}, version_};
  auto entries = ReadCatalogFile(path_.string());
  if (!entries.ok()) return entries.status();
  for (const CatalogEntry& entry : *entries) entries_.insert_or_assign(entry.spec.name, entry);
  return CatalogContents{*std::move(entries), version_};
}

absl::StatusOr<CatalogContents> FileCatalog::LoadCopy() const {
  return absl::NotFoundError("the file is the catalog itself");
}

absl::StatusOr<int64_t> FileCatalog::Put(const CatalogEntry& entry, int64_t version) {
  Entries entries = entries_;
  entries.insert_or_assign(entry.spec.name, entry);
  return Replace(std::move(entries), version);
}

absl::StatusOr<int64_t> FileCatalog::Remove(std::string_view name, int64_t version) {
  Entries entries = entries_;
  if (const auto found = entries.find(name); found != entries.end()) entries.erase(found);
  return Replace(std::move(entries), version);
}

absl::StatusOr<int64_t> FileCatalog::Replace(Entries entries, int64_t version) {
  if (version != version_) return absl::AbortedError("the catalog has changed meanwhile");
  std::vector<CatalogEntry> list;
  for (const auto& [name, entry] : entries) list.push_back(entry);
  if (auto status = ReplaceFile(path_, EncodeCatalog(list)); !status.ok()) return status;
  entries_ = std::move(entries);
  return ++version_;
}

}  // namespace kvstore
