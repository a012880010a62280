#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "catalog/catalog.h"

namespace kvstore {

/// A catalog in one JSON file (catalog_json.h), of one process, for stores without ZooKeeper. A change writes
/// a new file, syncs it, and renames it over the old one, so that a crash leaves the old or the new catalog.
/// Meant for up to some thousands of datasets, because a change copies the text of all other entries. Records
/// are files in the folder "migrations" beside it.
class FileCatalog : public Catalog {
 public:
  /// make_room  called when the disk is too full for a change that is a step of a drop; the change is then
  ///            retried once. May be null.
  explicit FileCatalog(std::filesystem::path path, std::function<void()> make_room = nullptr)
      : path_(std::move(path)), make_room_(std::move(make_room)) {}

  /// A file that was never there is an empty catalog. DATA_LOSS if it was there and is gone.
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
  /// There are no other processes, so nobody finishes what this one did not finish.
  bool IsAlive(const std::string&) override { return false; }
  void OnChange(std::function<void()>) override {}
  std::chrono::milliseconds poll_interval() const override { return std::chrono::hours(24); }
  void Describe(MetricsSink&) const override {}

  /// How many entries were encoded or decoded so far, which is the expensive part of a change. For tests.
  uint64_t coded() const { return coded_; }

 private:
  /// An entry and its text (EncodeCatalogPart).
  struct EncodedEntry {
    CatalogEntry entry;
    std::string text;
  };
  using Entries = std::map<std::string, EncodedEntry, std::less<>>;

  /// Replaces the entry of that name by `entry`; null: removes it.
  ///
  /// drops  The change is a step of a drop, for which room may be made on a full disk.
  absl::StatusOr<int64_t> Replace(std::string_view name, const CatalogEntry* entry, int64_t version,
                                  bool drops);
  EncodedEntry EncodeEntry(const CatalogEntry& entry);

  std::filesystem::path RecordPath(std::string_view name) const;
  /// Whether there is a record at this version.
  bool IsRecordAt(std::string_view name, int64_t version) const;

  const std::filesystem::path path_;
  const std::function<void()> make_room_;
  MemoryLedger ledger_;
  Entries entries_;
  std::string text_;  // the file's text, of which entries_ was made
  uint64_t coded_ = 0;
  int64_t version_ = 0;
  // Versions of records as this process counts them; a record that is not here is at version 0.
  std::map<std::string, int64_t, std::less<>> record_versions_;
};

}  // namespace kvstore
