#include "backends/rocksdb/backend.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "backends/rocksdb/describe.h"
#include "backends/rocksdb/engine/change_log.h"
#include "backends/rocksdb/engine/damage.h"
#include "backends/rocksdb/objects/mapping_store.h"
#include "backends/rocksdb/objects/object_store.h"
#include "backends/rocksdb/rows/expired_filter.h"
#include "backends/rocksdb/rows/reclaim.h"
#include "backends/rocksdb/rows/row_store.h"
#include "backends/rocksdb/units/changes.h"
#include "backends/rocksdb/units/endpoint.h"
#include "backends/rocksdb/units/gate_store.h"
#include "backends/rocksdb/units/unit_reader.h"

namespace kvstore {
namespace {

rocks::FamilyHooks Hooks() {
  using rocks::Engine;
  using rocks::Family;
  return {.filters =
              [](std::shared_ptr<rocks::FamilySettings> settings, std::shared_ptr<rocks::Trimmer> trimmer) {
                return std::make_shared<rocks::ExpiredFilterFactory>(std::move(settings), std::move(trimmer));
              },
          .opened = [](Engine& engine, Family& family) -> absl::Status {
            if (auto status = rocks::RestoreGate(engine, family); !status.ok()) return status;
            const absl::Status applied = rocks::ApplyChangeLog(engine, family);
            // A store must open on a full disk. A log that is there opens without a write; one that could not
            // be made has nothing that could be missed.
            return absl::IsResourceExhausted(applied) ? absl::OkStatus() : applied;
          },
          .trim =
              [](Engine& engine, const Family& family, const std::string& column) {
                // The next compaction suggests again what fails here, on a full disk for example.
                rocks::TrimColumn(engine, family, column).status().IgnoreError();
              },
          .trim_changes = rocks::TrimChanges,
          .raise_ids =
              [](Engine& engine, const Family& family, uint64_t left_out) {
                return rocks::LocalIds::RaiseFloor(engine, family.settings->incarnation, left_out);
              }};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RocksDbBackend>> RocksDbBackend::Open(rocks::DataDir dir,
                                                                     std::span<const DatasetSpec> datasets,
                                                                     std::span<const DatasetSpec> moving,
                                                                     const Options& options) {
  auto engine = rocks::Engine::Open(std::move(dir), datasets, moving, options, Hooks());
  if (!engine.ok()) return engine.status();
  return std::unique_ptr<RocksDbBackend>(new RocksDbBackend(*std::move(engine)));
}

absl::StatusOr<std::shared_ptr<rocks::Family>> RocksDbBackend::Find(const DatasetSpec& spec) const {
  auto family = engine_->FindFamily(spec.name);
  if (!family && engine_->HasUnknownFamily(spec.name)) {
    return absl::UnavailableError(fmt::format(
        "dataset: the data of '{}' is here, but the catalog did not say what it is when this process "
        "opened the store: restart the process",
        spec.name));
  }
  if (!family) {
    // If the catalog were in this directory, the engine would not have opened.
    return rocks::MissingDataError(fmt::format("dataset: the data of '{}' is not here", spec.name),
                                   /*shared=*/true);
  }
  return family;
}

absl::Status RocksDbBackend::CreateDataset(const DatasetSpec& spec) {
  if (!spec.engine.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "engine: this backend has one storage engine only, so the field must be left out; it was '{}'",
        spec.engine));
  }
  return engine_->CreateFamily(spec);
}

absl::Status RocksDbBackend::AlterDataset(const DatasetSpec& spec) {
  const auto family = Find(spec);
  if (!family.ok()) return family.status();
  (*family)->settings->Set(spec);
  return rocks::ApplyChangeLog(*engine_, **family);
}

namespace {

class EngineLog : public WriteLog {
 public:
  explicit EngineLog(std::shared_ptr<rocks::Engine> engine) : engine_(std::move(engine)) {}
  uint64_t Last() const override { return engine_->db().GetLatestSequenceNumber(); }
  absl::StatusOr<std::vector<LoggedWrite>> Read(uint64_t after, size_t max_bytes) override {
    return engine_->ReadWrites(after, max_bytes);
  }
  absl::StatusOr<LogSchema> Schema() override { return engine_->Schema(); }

 private:
  const std::shared_ptr<rocks::Engine> engine_;
};

}  // namespace

std::unique_ptr<WriteLog> RocksDbBackend::OpenWriteLog() { return std::make_unique<EngineLog>(engine_); }

absl::Status RocksDbBackend::DropDataset(const DatasetSpec& spec) {
  std::shared_ptr<rocks::ChangeLog> changes;
  const auto family = engine_->FindFamily(spec.name);
  std::unique_lock<std::shared_mutex> lock;
  if (family) {
    lock = std::unique_lock(family->gate.mutex);
    changes = family->gate.open_change_log();
  }
  if (auto status = engine_->DropFamily(spec.name); !status.ok()) return status;
  if (auto status = engine_->DropAuxiliaryFamily(rocks::ChangeLog::FamilyName(spec.name),
                                                 changes ? changes->handle() : nullptr);
      !status.ok()) {
    return status;
  }
  // A restore or a migration that was cut short leaves the state of the dataset. A dataset without one is not
  // written to: a drop must be possible on a full disk.
  if (rocks::HasGate(*engine_, spec.incarnation)) {
    if (auto status = rocks::RemoveGate(*engine_, spec.incarnation); !status.ok()) return status;
  }
  if (spec.shape != Shape::kObjects) return absl::OkStatus();
  return rocks::RocksObjectStore::DropState(*engine_, spec.incarnation);
}

absl::StatusOr<std::string> RocksDbBackend::StartChanges(const DatasetSpec& spec, ChangesFrom from) {
  const auto family = Find(spec);
  if (!family.ok()) return family.status();
  return rocks::StartChanges(**family, from);
}

absl::StatusOr<UnitChanges> RocksDbBackend::ReadChanges(const DatasetSpec& spec, std::string_view position,
                                                        const ChangeLimits& limits) {
  const auto family = Find(spec);
  if (!family.ok()) return family.status();
  return rocks::ReadChanges(*engine_, **family, spec.shape, position, limits);
}

absl::Status RocksDbBackend::SetConsumer(const DatasetSpec& spec, std::string_view name,
                                         std::string_view position) {
  const auto family = Find(spec);
  if (!family.ok()) return family.status();
  return rocks::SetConsumer(**family, name, position);
}

absl::StatusOr<std::vector<UnitConsumer>> RocksDbBackend::ListConsumers(const DatasetSpec& spec) {
  const auto family = Find(spec);
  if (!family.ok()) return family.status();
  return rocks::ListConsumers(**family);
}

absl::Status RocksDbBackend::DropConsumer(const DatasetSpec& spec, std::string_view name) {
  const auto family = Find(spec);
  if (!family.ok()) return family.status();
  return rocks::DropConsumer(**family, name);
}

absl::StatusOr<std::shared_ptr<RowStore>> RocksDbBackend::OpenRows(const DatasetSpec& spec) {
  auto family = Find(spec);
  if (!family.ok()) return family.status();
  (*family)->settings->Set(spec);
  return std::make_shared<rocks::RocksRowStore>(engine_, *std::move(family));
}

absl::StatusOr<std::shared_ptr<ObjectStore>> RocksDbBackend::OpenObjects(const DatasetSpec& spec) {
  auto family = Find(spec);
  if (!family.ok()) return family.status();
  (*family)->settings->Set(spec);
  auto ids = ids_->ForDataset(engine_, *family, spec.type);
  return std::make_shared<rocks::RocksObjectStore>(engine_, *std::move(family), spec.type, std::move(ids));
}

absl::StatusOr<std::shared_ptr<MappingStore>> RocksDbBackend::OpenMappings(const DatasetSpec& spec) {
  auto family = Find(spec);
  if (!family.ok()) return family.status();
  (*family)->settings->Set(spec);
  return std::make_shared<rocks::RocksMappingStore>(engine_, *std::move(family));
}

absl::StatusOr<ReclaimResult> RocksDbBackend::Reclaim(const DatasetSpec& spec, const Progress& progress) {
  const auto family = Find(spec);
  if (!family.ok()) return family.status();
  return rocks::Reclaim(*engine_, **family, spec.shape == Shape::kRows, progress);
}

absl::StatusOr<std::unique_ptr<UnitReader>> RocksDbBackend::OpenUnits(const DatasetSpec& spec) {
  const auto family = Find(spec);
  if (!family.ok()) return family.status();
  return std::make_unique<rocks::RocksUnitReader>(engine_, spec, rocks::RocksUnitReader::Callers::kClients);
}

absl::StatusOr<std::unique_ptr<MigrationEndpoint>> RocksDbBackend::OpenForMigration(const DatasetSpec& spec) {
  return std::make_unique<rocks::RocksEndpoint>(engine_, spec, ids_);
}

void RocksDbBackend::Describe(MetricsSink& sink) const { rocks::Describe(*engine_, sink); }

absl::StatusOr<DatasetStats> RocksDbBackend::Stats(const DatasetSpec& spec) {
  const auto family = Find(spec);
  if (!family.ok()) return family.status();
  using Properties = rocksdb::DB::Properties;
  DatasetStats stats{.approximate_bytes = rocks::DiskBytes(*engine_, **family)};
  uint64_t in_memory = 0;
  engine_->db().GetIntProperty((*family)->handle, Properties::kCurSizeActiveMemTable, &in_memory);
  stats.approximate_bytes += in_memory;
  engine_->db().GetIntProperty((*family)->handle, Properties::kEstimateNumKeys, &stats.approximate_entries);
  // Each mapping has a key for the pair and one for the order.
  if (spec.shape == Shape::kMappings) stats.approximate_entries /= 2;
  return stats;
}

}  // namespace kvstore
