#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "catalog/file_catalog.h"
#include "migration/migrator.h"
#include "router/router.h"
#include "testing/history.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/migration/wrapped.h"

namespace kvstore::testing {

/// How calls of a catalog fail. With UNAVAILABLE: the catalog cannot be reached, or it does what it is asked
/// and the answer is lost, or it can be read but stores nothing. Or calls hang until there is another
/// trouble, or none. Or no entry can be read.
enum class CatalogTrouble { kNone, kDown, kAnswersLost, kStoresNothing, kHangs, kDamaged };

/// The trouble that a test makes for a LossyCatalog, and what it sees of it.
struct CatalogFaults {
  std::atomic<CatalogTrouble> trouble{CatalogTrouble::kNone};
  std::atomic<int> hanging{0};  ///< How many calls hang now.
};

class LossyCatalog : public FileCatalog {
 public:
  /// faults  must outlive this.
  LossyCatalog(std::filesystem::path path, CatalogFaults& faults)
      : FileCatalog(std::move(path)), faults_(faults) {}
  absl::StatusOr<CatalogContents> Load() override;
  using FileCatalog::Put;
  absl::StatusOr<int64_t> Put(const CatalogEntry& entry, int64_t version,
                              const std::optional<RecordFence>& fence) override;
  absl::StatusOr<CatalogRecord> GetRecord(std::string_view name) override;
  absl::StatusOr<int64_t> PutRecord(std::string_view name, std::string_view text, int64_t version) override;
  absl::Status RemoveRecord(std::string_view name, int64_t version) override;

 private:
  CatalogFaults& faults_;
};

/// A store with the embedded backend "rocksdb", the backend "mysql" on the shared fleet, and a Migrator.
class MigratingStore {
 public:
  /// Opens the store in `dir`. Throws std::runtime_error if that fails.
  ///
  /// wrap   wraps the endpoints of both backends; null: they are not wrapped.
  /// fleet  the servers of "mysql"; null: the shared fleet.
  explicit MigratingStore(const std::filesystem::path& dir, Wrap wrap = nullptr, TestFleet* fleet = nullptr);
  /// Ends the catalog's trouble first.
  ~MigratingStore() { SetCatalogTrouble(CatalogTrouble::kNone); }

  Router& router() { return *router_; }
  Migrator& migrator() { return *migrator_; }
  void SetCatalogTrouble(CatalogTrouble trouble) {
    catalog_faults_.trouble = trouble;
    catalog_faults_.trouble.notify_all();
  }
  /// Waits until a call of the catalog hangs; fails the test if none does.
  void AwaitHangingCatalog();

  /// Gives a command; fails the test if it is refused.
  Json Do(const std::string& command, const std::string& dataset, Json options = Json::object());
  absl::StatusOr<Json> Try(const std::string& command, const std::string& dataset,
                           Json options = Json::object());
  /// The phase of a dataset's migration; "none" if there is none.
  std::string PhaseOf(const std::string& dataset);
  /// Waits for a phase; fails the test if it is not reached.
  void Await(const std::string& dataset, const std::string& phase);
  /// A dataset's rows in the embedded backend, whatever the catalog says, as a client with a stale catalog
  /// sees them.
  std::shared_ptr<RowStore> StaleRows(const std::string& dataset);
  /// The backend that the catalog names.
  std::string BackendOf(const std::string& dataset);

 private:
  CatalogFaults catalog_faults_;
  Backend* rocksdb_ = nullptr;  // router_ owns it
  std::unique_ptr<Router> router_;
  std::unique_ptr<Migrator> migrator_;
};

/// A client that never reads the catalog again: it reads and writes in the embedded backend as long as that
/// lets it, and records the answers in the history.
class StaleClient {
 public:
  StaleClient(std::shared_ptr<RowStore> rows, History& history, uint64_t seed);
  ~StaleClient();
  StaleClient(const StaleClient&) = delete;
  StaleClient& operator=(const StaleClient&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Clients of a dataset of rows, each a thread: they put, delete and read single columns and whole rows, and
/// record the answers in the history.
class Clients {
 public:
  static constexpr uint32_t kRows = 40;
  static constexpr uint32_t kColumns = 3;
  static constexpr uint32_t kKeys = kRows * kColumns;

  /// The store must outlive them.
  Clients(KVStore& store, std::string dataset, History& history, int threads, uint64_t seed);
  ~Clients() { Stop(); }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  void Stop();
  /// Waits until the clients have done this many more operations each.
  void Work(uint64_t operations);
  /// How many calls failed with an error that a migration must not cause.
  uint64_t errors() const { return errors_; }
  std::string last_error() const;

 private:
  void Run(uint64_t seed);

  KVStore& store_;
  const std::string dataset_;
  History& history_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> done_{0};
  std::atomic<uint64_t> errors_{0};
  mutable std::mutex mutex_;
  std::string last_error_;
  std::vector<std::thread> threads_;
};

}  // namespace kvstore::testing
