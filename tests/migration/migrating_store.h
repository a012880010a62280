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

#include "bench/history.h"
#include "kvstore_api/file_catalog.h"
#include "kvstore_api/router.h"
#include "migration/migrator.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/migration/wrapped.h"

namespace kvstore::testing {

using bench::History;

/// How a catalog fails, each time UNAVAILABLE: it cannot be asked, or does what it is asked and its answer
/// gets lost.
enum class CatalogTrouble { kNone, kDown, kAnswersLost };

class LossyCatalog : public FileCatalog {
 public:
  LossyCatalog(std::filesystem::path path, const std::atomic<CatalogTrouble>& trouble)
      : FileCatalog(std::move(path)), trouble_(trouble) {}
  absl::StatusOr<CatalogContents> Load() override;
  using FileCatalog::Put;
  absl::StatusOr<int64_t> Put(const CatalogEntry& entry, int64_t version,
                              const std::optional<RecordFence>& fence) override;
  absl::StatusOr<CatalogRecord> GetRecord(std::string_view name) override;
  absl::StatusOr<int64_t> PutRecord(std::string_view name, std::string_view text, int64_t version) override;
  absl::Status RemoveRecord(std::string_view name, int64_t version) override;

 private:
  const std::atomic<CatalogTrouble>& trouble_;
};

/// A store with the embedded backend "rocksdb" and, on the shared fleet, "mysql"; with what migrates between
/// them.
class World {
 public:
  /// Opens what is stored for `dir`. Throws std::runtime_error if it cannot be.
  ///
  /// wrap   Around the endpoints of both backends; null: nothing.
  /// fleet  Of "mysql"; null: the shared one.
  explicit World(const std::filesystem::path& dir, Wrap wrap = nullptr, TestFleet* fleet = nullptr);

  Router& router() { return *router_; }
  Migrator& migrator() { return *migrator_; }
  void SetCatalogTrouble(CatalogTrouble trouble) { trouble_ = trouble; }

  /// Gives a command; fails the test if it is refused.
  Json Do(const std::string& command, const std::string& dataset, Json options = Json::object());
  absl::StatusOr<Json> Try(const std::string& command, const std::string& dataset,
                           Json options = Json::object());
  /// The phase of a dataset's migration; "none" if there is none.
  std::string PhaseOf(const std::string& dataset);
  /// Waits for a phase; fails the test if it does not come.
  void Await(const std::string& dataset, const std::string& phase);
  /// A dataset's rows in the embedded backend, whatever the catalog says: the route of a client that has
  /// slept.
  std::shared_ptr<RowStore> StaleRows(const std::string& dataset);
  /// The backend that the catalog names.
  std::string BackendOf(const std::string& dataset);

 private:
  std::atomic<CatalogTrouble> trouble_{CatalogTrouble::kNone};
  Backend* rocksdb_ = nullptr;  // of router_
  std::unique_ptr<Router> router_;
  std::unique_ptr<Migrator> migrator_;
};

/// A client whose route never changes: it reads and writes in the embedded backend as long as that lets it,
/// and writes down what it was told.
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
/// write down what they were told.
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
  /// Waits until each has done so many more.
  void Work(uint64_t operations);
  /// Calls that failed although nobody had said that they may.
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
