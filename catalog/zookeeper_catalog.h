#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "coordination/zookeeper.h"
#include "kvstore_api/catalog.h"
#include "kvstore_api/zookeeper_ledger.h"

namespace kvstore {

/// A catalog in ZooKeeper, shared by many processes. Below a root:
///
///   /datasets          counts the changes: each sets it, in one transaction with what it changes
///   /datasets/NAME     one entry (catalog_json.h)
///   /dropped/NAME      how many datasets of that name were dropped
///   /migrations/NAME   the record of a dataset's migration; empty when there is none any more: versions
///   never
///                      repeat, so that a worker of an earlier one cannot pass for one of the next
///   /operations/ID     what is being done (zookeeper_ledger.h)
///   /clients/ID        ephemeral: a process that has the catalog open; {"host", "pid", "version"}
///
/// So one watch sees every change, two changes at once cannot both be made, and what an operator edits by
/// hand in an entry is seen by the next poll.
class ZooKeeperCatalog : public Catalog {
 public:
  /// Returns at once, whether or not ZooKeeper can be reached.
  ///
  /// copy     file that keeps what was loaded last, for a start without ZooKeeper; empty: none.
  /// version  of this program.
  ZooKeeperCatalog(const ZooKeeperOptions& options, const std::string& root, std::filesystem::path copy,
                   std::string version);

  absl::StatusOr<CatalogContents> Load() override;
  absl::StatusOr<CatalogContents> LoadCopy() const override;
  using Catalog::Put;
  absl::StatusOr<int64_t> Put(const CatalogEntry& entry, int64_t version,
                              const std::optional<RecordFence>& fence) override;
  absl::StatusOr<int64_t> Remove(std::string_view name, int64_t version) override;
  absl::StatusOr<uint64_t> CountDropped(std::string_view name) override;
  absl::StatusOr<CatalogRecord> GetRecord(std::string_view name) override;
  absl::StatusOr<int64_t> PutRecord(std::string_view name, std::string_view text, int64_t version) override;
  absl::Status RemoveRecord(std::string_view name, int64_t version) override;
  absl::StatusOr<std::vector<std::string>> ListRecords() override;
  Ledger& ledger() override { return ledger_; }
  bool shared() const override { return true; }
  std::string self() const override { return self_; }
  bool IsAlive(const std::string& owner) override;
  void OnChange(std::function<void()> on_change) override;
  std::chrono::milliseconds poll_interval() const override { return std::chrono::seconds(30); }
  void Describe(MetricsSink& sink) const override;

 private:
  absl::StatusOr<CatalogContents> Read();
  /// Makes /datasets, /dropped and the node of this process, where they are missing.
  absl::Status Register();
  void Changed();
  /// Makes the steps and counts the change. dropped: the dataset of that name that this drops; empty: none.
  absl::StatusOr<int64_t> Change(std::vector<ZooKeeperStep> steps, std::string_view dropped, int64_t version);
  /// The step that counts a dataset of that name as dropped.
  absl::StatusOr<ZooKeeperStep> Count(std::string_view name);
  std::string PathOf(std::string_view name) const;
  std::string RecordPath(std::string_view name) const;

  const std::string servers_;
  const std::string datasets_;
  const std::string dropped_;
  const std::string clients_;
  const std::string migrations_;
  const std::filesystem::path copy_;
  const std::string program_version_;
  const std::string self_;
  std::string copied_;  // what the copy holds
  std::atomic<int64_t> loaded_version_{-1};
  std::atomic<bool> reached_{false};
  std::mutex mutex_;
  std::function<void()> on_change_;  // guarded by mutex_
  ZooKeeperLedger ledger_;
  mutable ZooKeeper zookeeper_;  // last: its events use what is above
};

}  // namespace kvstore
