#include "tests/migration/migrating_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "backend_api/outcome.h"
#include "backends/rocksdb/backend.h"
#include "backends/rocksdb/engine/data_dir.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"

namespace kvstore::testing {
namespace {

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

std::string RowOf(uint32_t key) { return fmt::format("row{:02}", key / Clients::kColumns); }
std::string ColumnOf(uint32_t key) { return fmt::format("c{}", key % Clients::kColumns); }

}  // namespace

// ---- LossyCatalog ----

namespace {

/// Calls `ask`, unless the catalog is down, and returns what the caller gets.
///
/// stores  Whether `ask` changes what is stored.
template <typename Ask>
auto WithTrouble(CatalogFaults& faults, bool stores, const Ask& ask) -> decltype(ask()) {
  if (faults.trouble == CatalogTrouble::kHangs) {
    ++faults.hanging;
    faults.trouble.wait(CatalogTrouble::kHangs);
    --faults.hanging;
  }
  const CatalogTrouble trouble = faults.trouble;
  if (trouble == CatalogTrouble::kDown) return absl::UnavailableError("the catalog is down");
  if (stores && trouble == CatalogTrouble::kStoresNothing) return absl::UnavailableError("nothing is stored");
  auto answer = ask();
  if (trouble == CatalogTrouble::kAnswersLost) return absl::UnavailableError("the answer was lost");
  return answer;
}

}  // namespace

absl::StatusOr<CatalogContents> LossyCatalog::Load() {
  auto contents = WithTrouble(faults_, /*stores=*/false, [&] { return FileCatalog::Load(); });
  if (contents.ok() && faults_.trouble == CatalogTrouble::kDamaged) {
    for (const CatalogEntry& entry : contents->entries) {
      contents->damaged.push_back({entry.spec.name, "the entry cannot be read"});
    }
    contents->entries.clear();
  }
  return contents;
}

absl::StatusOr<int64_t> LossyCatalog::Put(const CatalogEntry& entry, int64_t version,
                                          const std::optional<RecordFence>& fence) {
  return WithTrouble(faults_, /*stores=*/true, [&] { return FileCatalog::Put(entry, version, fence); });
}

absl::StatusOr<CatalogRecord> LossyCatalog::GetRecord(std::string_view name) {
  return WithTrouble(faults_, /*stores=*/false, [&] { return FileCatalog::GetRecord(name); });
}

absl::StatusOr<int64_t> LossyCatalog::PutRecord(std::string_view name, std::string_view text,
                                                int64_t version) {
  return WithTrouble(faults_, /*stores=*/true, [&] { return FileCatalog::PutRecord(name, text, version); });
}

absl::Status LossyCatalog::RemoveRecord(std::string_view name, int64_t version) {
  return WithTrouble(faults_, /*stores=*/true, [&] { return FileCatalog::RemoveRecord(name, version); });
}

// ---- the store ----

MigratingStore::MigratingStore(const std::filesystem::path& dir, Wrap wrap, TestFleet* fleet) {
  auto data = Must(rocks::DataDir::Open(dir, /*create=*/true));
  auto catalog = std::make_unique<LossyCatalog>(data.catalog(), catalog_faults_);
  const CatalogContents contents = Must(catalog->Load());
  std::vector<DatasetSpec> here;
  std::vector<DatasetSpec> moving;
  for (const CatalogEntry& entry : contents.entries) {
    if (entry.spec.backend == "rocksdb") here.push_back(entry.spec);
    if (entry.other_backend == "rocksdb") moving.push_back(OtherSide(entry));
  }
  Router::Backends backends;
  const auto add = [&](const char* name, std::unique_ptr<Backend> backend) {
    if (wrap) backend = std::make_unique<WrappedBackend>(std::move(backend), wrap);
    backends.emplace(name, std::move(backend));
  };
  auto rocksdb = Must(RocksDbBackend::Open(std::move(data), here, moving,
                                           {.cache_bytes = 8 << 20, .write_buffer_bytes = 8 << 20}));
  rocksdb_ = rocksdb.get();
  add("rocksdb", std::move(rocksdb));
  add("mysql", Must((fleet != nullptr ? *fleet : SharedFleet()).Open()));
  router_ = Must(Router::Open(std::move(catalog), contents, std::move(backends), "rocksdb"));
  migrator_ = std::make_unique<Migrator>(router_->keeper(), dir / "migrations.log");
}

void MigratingStore::AwaitHangingCatalog() {
  EXPECT_TRUE(Eventually([&] { return catalog_faults_.hanging > 0; }));
}

absl::StatusOr<Json> MigratingStore::Try(const std::string& command, const std::string& dataset,
                                         Json options) {
  options["command"] = command;
  options["dataset"] = dataset;
  options["who"] = "test";
  // On a busy machine writes may be held for longer than by default before a cutover is given up.
  if (command == "create" && !options.contains("freeze_ms")) options["freeze_ms"] = 10'000;
  // Parsed from text, as over the network, because numbers in C++ literals are signed.
  return migrator_->Command(*ParseJson(options.dump()));
}

Json MigratingStore::Do(const std::string& command, const std::string& dataset, Json options) {
  auto result = Try(command, dataset, std::move(options));
  EXPECT_OK(result) << command;
  return result.ok() ? *std::move(result) : Json::object();
}

std::string MigratingStore::PhaseOf(const std::string& dataset) {
  const auto status = Try("status", dataset);
  if (absl::IsNotFound(status.status())) return "none";
  EXPECT_OK(status);
  return status.ok() ? status->value("phase", "") : "";
}

void MigratingStore::Await(const std::string& dataset, const std::string& phase) {
  const bool came = Eventually([&] { return PhaseOf(dataset) == phase; });
  EXPECT_TRUE(came) << "waiting for " << phase << ": " << Try("status", dataset).value_or(Json()).dump(1);
}

std::string MigratingStore::BackendOf(const std::string& dataset) {
  const auto spec = router_->GetDataset(dataset);
  return spec.ok() ? spec->backend : spec.status().ToString();
}

std::shared_ptr<RowStore> MigratingStore::StaleRows(const std::string& dataset) {
  return Must(rocksdb_->OpenRows(Must(router_->GetDataset(dataset))));
}

// ---- clients ----

StaleClient::StaleClient(std::shared_ptr<RowStore> rows, History& history, uint64_t seed)
    : thread_([this, rows = std::move(rows), &history, seed] {
        Random random(seed);
        while (!stop_ && !history.full()) {
          const auto key = static_cast<uint32_t>(random.Below(Clients::kKeys));
          std::this_thread::sleep_for(std::chrono::microseconds(random.Below(1000)));
          if (random.OneIn(4)) {
            const uint64_t value = history.NewValue();
            const std::string text = std::to_string(value);
            const std::string column = ColumnOf(key);
            const size_t operation = history.Begin(key, History::Kind::kWrite, value);
            const CellWrite cell{column, text, std::nullopt};
            rows->Put(RowOf(key), {&cell, 1}, {}).ok() ? history.End(operation) : history.Fail(operation);
            continue;
          }
          ReadOptions options;
          options.columns.emplace().push_back(ColumnOf(key));
          const size_t operation = history.Begin(key, History::Kind::kRead);
          const auto page = rows->Get(RowOf(key), options, std::nullopt);
          if (!page.ok()) {
            history.Fail(operation);
            continue;
          }
          uint64_t value = History::kNone;
          if (!page->items.empty()) {
            const std::string& text = page->items[0].cells[0].value;
            std::from_chars(text.data(), text.data() + text.size(), value);
          }
          history.End(operation, value);
        }
      }) {}

StaleClient::~StaleClient() {
  stop_ = true;
  thread_.join();
}

Clients::Clients(KVStore& store, std::string dataset, History& history, int threads, uint64_t seed)
    : store_(store), dataset_(std::move(dataset)), history_(history) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, seed, i] { Run(seed + static_cast<uint64_t>(i)); });
  }
}

void Clients::Stop() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Clients::Work(uint64_t operations) {
  const uint64_t wanted = done_ + operations * threads_.size();
  EXPECT_TRUE(Eventually([&] { return done_ >= wanted || history_.full(); }));
}

std::string Clients::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void Clients::Run(uint64_t seed) {
  Random random(seed);
  while (!stop_ && !history_.full()) {
    const auto key = static_cast<uint32_t>(random.Below(kKeys));
    const std::string row = RowOf(key);
    const std::string column = ColumnOf(key);
    std::vector<size_t> operations;
    absl::Status status;
    const uint64_t choice = random.Below(20);
    if (choice < 8) {
      ReadOptions options;
      options.columns.emplace().push_back(column);
      operations.push_back(history_.Begin(key, History::Kind::kRead));
      const auto found = store_.GetRow(dataset_, row, options);
      status = found.status();
      if (found.ok()) {
        uint64_t value = History::kNone;
        if (!found->items.empty()) {
          const std::string& text = found->items[0].cells[0].value;
          std::from_chars(text.data(), text.data() + text.size(), value);
        }
        history_.End(operations[0], value);
      }
    } else if (choice < 16) {
      const uint64_t value = history_.NewValue();
      // Values have different sizes; large ones are read on their own.
      std::string text = std::to_string(value);
      if (random.OneIn(50)) text += std::string(20'000, 'x');
      operations.push_back(history_.Begin(key, History::Kind::kWrite, value));
      const CellWrite cell{column, text, std::nullopt};
      status = store_.PutRow(dataset_, row, {&cell, 1}, {}).status();
      if (status.ok()) history_.End(operations[0]);
    } else if (choice < 19) {
      DeleteOptions options;
      options.columns.emplace().push_back(column);
      operations.push_back(history_.Begin(key, History::Kind::kDelete));
      status = store_.DeleteRow(dataset_, row, options);
      if (status.ok()) history_.End(operations[0]);
    } else {
      const uint32_t first = key - key % kColumns;
      for (uint32_t i = 0; i < kColumns; ++i)
        operations.push_back(history_.Begin(first + i, History::Kind::kDelete));
      status = store_.DeleteRow(dataset_, row, {});
      if (status.ok()) {
        for (const size_t operation : operations) history_.End(operation);
      }
    }
    ++done_;
    // Throttled, because checking the history takes time for each operation.
    std::this_thread::sleep_for(std::chrono::microseconds(random.Below(1000)));
    if (status.ok()) continue;
    ++errors_;
    {
      const std::lock_guard lock(mutex_);
      last_error_ = status.ToString();
    }
    if (!IsInDoubt(status)) {
      for (const size_t operation : operations) history_.Fail(operation);
    }
  }
}

}  // namespace kvstore::testing
