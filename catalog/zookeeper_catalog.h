#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "catalog/catalog.h"
#include "catalog/zookeeper_ledger.h"
#include "coordination/zookeeper.h"

namespace kvstore {

/// A catalog in ZooKeeper, shared by many processes. Below a root:
///
///   /datasets          its version counts the changes: each sets it, in one transaction with what it changes
///   /datasets/NAME     one entry (catalog_json.h)
///   /dropped/NAME      how many datasets of that name were dropped
///   /migrations/NAME   the record of a dataset's migration; empty when the migration has ended. The node
///                      stays, so that versions never repeat, and a worker of an earlier migration cannot
///                      pass for one of the next
///   /operations/ID     an operation (zookeeper_ledger.h)
///   /clients/ID        ephemeral: a process that has the catalog open; {"host", "pid", "version"}
///
/// So one watch sees every change, and of two concurrent changes only one is made. An operator's edit of an
/// entry, which does not touch /datasets, is seen by the next poll.
class ZooKeeperCatalog : public Catalog {
 public:
  /// Returns at once, whether or not ZooKeeper can be reached.
  ///
  /// copy     the file to which the catalog is saved when it was loaded, for a start without ZooKeeper;
  ///          empty: none.
  /// version  the version of this program, for /clients.
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
  /// Reads all entries. ABORTED if the catalog changes meanwhile.
  absl::StatusOr<CatalogContents> Read();
  /// Creates /datasets, /dropped, /clients and the node of this process, where they are missing.
  absl::Status Register();
  void NotifyChanged();
  /// Makes all steps in one transaction that also counts the change. Returns the catalog's new version.
  ///
  /// dropped  the name of the dataset that the change drops; empty: none.
  absl::StatusOr<int64_t> Change(std::vector<ZooKeeperStep> steps, std::string_view dropped, int64_t version);
  /// Returns the step that counts one more dropped dataset of that name.
  absl::StatusOr<ZooKeeperStep> CountDropStep(std::string_view name);
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
  std::string copied_;  // the content of the file `copy_`
  std::atomic<int64_t> loaded_version_{-1};
  std::atomic<bool> reached_{false};
  Mutex mutex_;
  std::function<void()> on_change_ ABSL_GUARDED_BY(mutex_);
  ZooKeeperLedger ledger_;
  mutable ZooKeeper zookeeper_;  // the last member, because its events use those above
};

}  // namespace kvstore
