#include "assembly/rocksdb_type.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "assembly/backend_opener.h"
#include "assembly/backend_reader.h"
#include "assembly/config_fields.h"
#include "assembly/datasets.h"
#include "backends/rocksdb/backend.h"
#include "backends/rocksdb/engine/data_dir.h"
#include "backends/rocksdb/engine/write_log.h"
#include "catalog/file_catalog.h"

namespace kvstore {
namespace {

/// The datasets that migrate and have the backend as their other side.
std::vector<DatasetSpec> MigratingDatasetsOf(const std::vector<CatalogEntry>& entries,
                                             std::string_view backend) {
  std::vector<DatasetSpec> specs;
  for (const CatalogEntry& entry : entries) {
    if (!entry.other_backend.empty() && entry.other_backend == backend) specs.push_back(OtherSide(entry));
  }
  return specs;
}

/// OpenOptions::keep_logs
constexpr uint64_t kKeptLogsSeconds = 600;

class RocksDbDirectory : public EmbeddedDirectory {
 public:
  /// name  the name that datasets have for the backend.
  RocksDbDirectory(rocks::DataDir dir, std::string name, const RocksDbOptions& options, bool keep_logs)
      : dir_(std::move(dir)), name_(std::move(name)), options_(options), keep_logs_(keep_logs) {}

  absl::StatusOr<std::unique_ptr<Catalog>> OpenCatalog() override {
    std::error_code error;
    catalog_shared_ = false;
    catalog_missing_ = !std::filesystem::exists(dir_.catalog(), error) && !error;
    return std::make_unique<FileCatalog>(dir_.catalog(),
                                         [reserve = dir_.shared_reserve()] { reserve->Release(); });
  }

  absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const CatalogContents& contents) override {
    return RocksDbBackend::Open(std::move(dir_), DatasetsOf(contents.entries, name_),
                                MigratingDatasetsOf(contents.entries, name_),
                                {.cache_bytes = options_.cache_bytes,
                                 .cache_answers = options_.cache_answers,
                                 .wal_bytes = options_.wal_bytes,
                                 .keep_logs_s = keep_logs_ ? kKeptLogsSeconds : 0,
                                 .catalog_missing = catalog_missing_,
                                 .catalog_shared = catalog_shared_});
  }

 private:
  rocks::DataDir dir_;
  const std::string name_;
  const RocksDbOptions options_;
  const bool keep_logs_;
  bool catalog_missing_ = false;
  bool catalog_shared_ = true;  // until OpenCatalog is called
};

std::any ReadRocksDb(BackendReader& reader) {
  RocksDbOptions options = reader.context().rocksdb;
  ReadRocksDbOptions(reader.fields(), options);
  return options;
}

absl::StatusOr<std::unique_ptr<EmbeddedDirectory>> OpenRocksDbDirectory(const PlacedBackend& backend,
                                                                        const OpenOptions& options) {
  const auto rocksdb = OptionsOf<RocksDbOptions>(backend);
  if (!rocksdb.ok()) return rocksdb.status();
  auto dir = rocks::DataDir::Open(options.data, options.create_if_missing);
  if (!dir.ok()) return dir.status();
  return std::make_unique<RocksDbDirectory>(*std::move(dir), backend.name, *rocksdb, options.keep_logs);
}

absl::StatusOr<std::unique_ptr<Backend>> OpenRocksDb(BackendOpener& opener) {
  return opener.context().directory->OpenBackend(opener.context().contents);
}

}  // namespace

BackendType RocksDbType() {
  return {.name = kRocksDb,
          .only_one = true,
          .read = ReadRocksDb,
          .open = OpenRocksDb,
          .open_directory = OpenRocksDbDirectory,
          .open_log = [](Backend& backend) { return static_cast<RocksDbBackend&>(backend).OpenWriteLog(); },
          .open_replay = rocks::OpenReplay};
}

}  // namespace kvstore
