#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "kvstore_api/catalog.h"

namespace kvstore {

/// A catalog in one JSON file (catalog_json.h), of one process, for stores without ZooKeeper. A change writes
/// a new file, syncs it, and renames it over the old one, so that a crash leaves either. Made for tens or
/// hundreds of datasets. Records are files beside it, in the folder "migrations".
class FileCatalog : public Catalog {
 public:
  /// make_room  called when the disk is too full for a change that is a step of a drop, which is then tried
  /// once
  ///            more. May be null.
  explicit FileCatalog(std::filesystem::path path, std::function<void()> make_room = nullptr)
      : path_(std::move(path)), make_room_(std::move(make_room)) {}

  absl::StatusOr<CatalogContents> Load() override;
  absl::StatusOr<CatalogContents> LoadCopy() const override;
  using Catalog::Put;
  absl::StatusOr<int64_t> Put(const CatalogEntry& entry, int64_t version,
                              const std::optional<RecordFence>& fence) override;
  absl::StatusOr<int64_t> Remove(std::string_view name, int64_t version) override;
  absl::StatusOr<CatalogRecord> GetRecord(std::string_view name) override;
  absl::StatusOr<int64_t> PutRecord(std::string_view name, std::string_view text, int64_t version) override;
  absl::Status RemoveRecord(std::string_view name, int64_t version) override;
  absl::StatusOr<std::vector<std::string>> ListRecords() override;
  Ledger& ledger() override { return ledger_; }
  bool shared() const override { return false; }
  std::string self() const override { return ""; }
  /// What this process did not finish itself, nobody will.
  bool IsAlive(const std::string&) override { return false; }
  void OnChange(std::function<void()>) override {}
  std::chrono::milliseconds poll_interval() const override { return std::chrono::hours(24); }
  void Describe(MetricsSink&) const override {}

 private:
  using Entries = std::map<std::string, CatalogEntry, std::less<>>;
  absl::StatusOr<int64_t> Replace(Entries entries, int64_t version, bool drops);

  std::filesystem::path RecordPath(std::string_view name) const;
  /// Whether there is a record, and it is at this version.
  bool IsRecordAt(std::string_view name, int64_t version) const;

  const std::filesystem::path path_;
  const std::function<void()> make_room_;
  MemoryLedger ledger_;
  Entries entries_;
  int64_t version_ = 0;
  std::map<std::string, int64_t, std::less<>> record_versions_;  // of this process
};

}  // namespace kvstore
