#include "backends/mysql/backend.h"

#include <fmt/format.h>

#include <utility>

#include "backends/mysql/driver/schema.h"
#include "backends/mysql/fleet/shard_tables.h"
#include "backends/mysql/objects/mapping_store.h"
#include "backends/mysql/objects/object_store.h"
#include "backends/mysql/rows/purge.h"
#include "backends/mysql/rows/row_store.h"
#include "backends/mysql/units/endpoint.h"
#include "backends/mysql/units/migration_tables.h"
#include "backends/mysql/units/unit_reader.h"

namespace kvstore {

using mysql::Connection;
using mysql::Repeat;

absl::StatusOr<std::unique_ptr<MySqlBackend>> MySqlBackend::Open(mysql::MapSources sources,
                                                                 const mysql::MySqlOptions& options,
                                                                 std::unique_ptr<ConsumerPlaces> consumers,
                                                                 std::unique_ptr<TableRecords> tables) {
  auto fleet = mysql::Fleet::Start(std::move(sources), options, std::move(tables));
  if (!fleet.ok()) return fleet.status();
  return std::unique_ptr<MySqlBackend>(new MySqlBackend(*std::move(fleet), std::move(consumers)));
}

// ---- datasets ----

namespace {

absl::Status CheckDurability(const Connection& connection, const DatasetSpec& spec) {
  if (spec.durability != Durability::kMachine || connection.traits().flushes_each) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "durability: machine needs servers with innodb_flush_log_at_trx_commit = 1; set that, or choose "
      "process");
}

}  // namespace

absl::Status MySqlBackend::CreateDataset(const DatasetSpec& spec) {
  if (auto status = mysql::ValidateEngine(spec); !status.ok()) return status;
  if (spec.keep_changes_ms != 0) {
    if (auto status = changes_.CheckServers(mysql::SpaceOf(spec.shape)); !status.ok()) return status;
  }
  const ShardSpace space = mysql::SpaceOf(spec.shape);
  const auto records = RecordsForCreate(spec);
  if (!records.ok()) return records.status();
  if (*records != nullptr) return CreateForFirstUse(spec, **records);
  return fleet_->OnAllShards(space, [&](const Host& host, uint32_t shard) {
    return fleet_->RunOn(host, {space, shard}, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
      if (auto status = CheckDurability(connection, spec); !status.ok()) return status;
      return mysql::CreateTables(connection, spec, shard);
    });
  });
}

absl::StatusOr<TableRecords*> MySqlBackend::RecordsForCreate(const DatasetSpec& spec) {
  auto* const maker = fleet_->table_maker();
  if (maker == nullptr) return nullptr;
  TableRecords& records = maker->records();
  const bool wanted = fleet_->options().tables_on_first_use;
  const ShardSpace space = mysql::SpaceOf(spec.shape);
  const auto record = records.Find(spec, /*shard=*/0);
  // Without the record, all tables are made and none is noted; that only costs what the record is for.
  if (!record.ok()) return wanted ? absl::StatusOr<TableRecords*>(record.status()) : nullptr;
  // Another process creates the dataset at the same time, or this one has begun to before.
  if (record->has_value()) return &records;
  if (!wanted) return nullptr;
  // The same create may have been done long ago, with all tables.
  for (const ShardRange& range : fleet_->map(space).ranges()) {
    const auto has = fleet_->RunOn(range.master, {space, range.first}, Repeat::kAlways,
                                   [&](Connection& connection) -> absl::StatusOr<bool> {
                                     return mysql::HasTables(connection, spec, range.first);
                                   });
    if (!has.ok()) return has.status();
    if (*has) return nullptr;
  }
  if (auto status = records.Begin(spec); !status.ok()) return status;
  return &records;
}

absl::Status MySqlBackend::CreateForFirstUse(const DatasetSpec& spec, TableRecords& records) {
  const ShardSpace space = mysql::SpaceOf(spec.shape);
  for (const ShardRange& range : fleet_->map(space).ranges()) {
    const uint32_t shard = range.first;
    absl::Status status = fleet_->RunOn(
        range.master, {space, shard}, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
          if (auto durable = CheckDurability(connection, spec); !durable.ok()) return durable;
          // Statements would use a table of another dataset that has the name.
          if (auto free = mysql::CheckNameIsFree(connection, spec, shard, range.last); !free.ok())
            return free;
          if (const auto noted = records.Add(spec, shard); !noted.ok()) return noted.status();
          return mysql::CreateTables(connection, spec, shard);
        });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status MySqlBackend::AlterDataset(const DatasetSpec& spec) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  if (spec.keep_changes_ms != 0) {
    if (auto status = changes_.CheckServers(mysql::SpaceOf(spec.shape)); !status.ok()) return status;
  } else {
    // Also of one that kept none already: somebody may have noted one who did not know that yet, or an alter
    // before this one may have been cut short.
    if (auto status = consumers_.DropAll(spec); !status.ok()) return status;
  }
  const MutexLock lock(datasets_mutex_);
  Apply(spec);
  return absl::OkStatus();
}

absl::Status MySqlBackend::NoteSettings(const DatasetSpec& spec) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  // Consumers may have been noted since by those who know newer settings.
  const MutexLock lock(datasets_mutex_);
  Apply(spec);
  return absl::OkStatus();
}

void MySqlBackend::Apply(const DatasetSpec& spec) {
  if (const auto found = datasets_.find(spec.incarnation); found != datasets_.end())
    found->second->Apply(spec);
  NoteFollowed(spec);
}

void MySqlBackend::NoteFollowed(const DatasetSpec& spec) {
  // One of the same name that another server has dropped.
  std::erase_if(followed_, [&](const auto& other) {
    return other.second.name == spec.name && other.first != spec.incarnation;
  });
  if (spec.keep_changes_ms != 0) {
    followed_[spec.incarnation] = spec;
  } else {
    followed_.erase(spec.incarnation);
  }
}

absl::Status MySqlBackend::DropDataset(const DatasetSpec& spec) {
  {
    const MutexLock lock(datasets_mutex_);
    datasets_.erase(spec.incarnation);
    followed_.erase(spec.incarnation);
  }
  if (auto* const maker = fleet_->table_maker()) {
    maker->Forget(spec.incarnation);
    // From here on no call makes another table.
    if (auto status = maker->records().End(spec); !status.ok()) return status;
  }
  // A dataset that keeps no changes has none, unless somebody noted one who did not know that yet.
  if (auto status = consumers_.DropAll(spec); !status.ok() && spec.keep_changes_ms != 0) return status;
  const ShardSpace space = mysql::SpaceOf(spec.shape);
  absl::Status dropped = fleet_->OnAllShards(space, [&](const Host& host, uint32_t shard) {
    return fleet_->RunOn(host, {space, shard}, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
      return mysql::DropTables(connection, spec, shard);
    });
  });
  if (!dropped.ok() || spec.keep_changes_ms == 0) return dropped;
  // Those that followers at other servers have noted meanwhile.
  return consumers_.DropAll(spec);
}

absl::Status MySqlBackend::DropLeftover(const DatasetSpec& spec) {
  const ShardSpace space = mysql::SpaceOf(spec.shape);
  const auto on_all = [&](const auto& work) {
    return fleet_->OnAllShards(space, [&](const Host& host, uint32_t shard) {
      return fleet_->RunOn(host, {space, shard}, Repeat::kAlways,
                           [&](Connection& connection) { return work(connection, shard); });
    });
  };
  // All shards are checked before any table is removed, since most shards of a dataset with few rows are
  // empty.
  auto status = on_all(
      [&](Connection& connection, uint32_t shard) { return mysql::CheckEmpty(connection, spec, shard); });
  if (!status.ok()) return status;
  if (auto* const maker = fleet_->table_maker()) {
    if (auto ended = maker->records().End(spec); !ended.ok()) return ended;
  }
  return on_all([&](Connection& connection, uint32_t shard) {
    return mysql::DropTables(connection, spec, shard, mysql::Removed::kIfEmpty);
  });
}

absl::Status MySqlBackend::CheckThere(const DatasetSpec& spec) {
  const ShardSpace space = mysql::SpaceOf(spec.shape);
  for (const ShardRange& range : fleet_->map(space).ranges()) {
    const uint32_t shard = range.first;
    const uint32_t mod_shards = fleet_->mod_shards();
    absl::Status unknown;  // whether the table was ever made
    absl::Status status = fleet_->RunOn(
        range.master, {space, shard}, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
          const mysql::ShardMigration migration = mysql::ReadShardMigration(connection, spec, shard);
          // While the dataset migrates, its table may have another name.
          if (!migration.base && !migration.state) {
            bool lost = true;
            if (auto* const maker = fleet_->table_maker()) {
              const auto never = maker->WasNeverMade(connection, spec, shard);
              if (!never.ok()) {
                unknown = never.status();
                return absl::OkStatus();
              }
              lost = !*never;
            }
            if (lost)
              return absl::DataLossError(
                  fmt::format("dataset: the data of '{}' is not here: shard {} at {} has no table of it. If "
                              "the shard map is right, restore the host from a backup",
                              spec.name, mysql::DatabaseName(space, shard), range.master.ToString()));
          }
          if (space == ShardSpace::kId) return absl::OkStatus();
          if (const uint32_t made = mysql::ReadModShards(connection, shard); made != mod_shards) {
            return absl::FailedPreconditionError(
                fmt::format("shard {}: the mod map has {} shards, but this shard was made with {}, so rows "
                            "would be looked up on the wrong shards; kv shards history --mod shows earlier "
                            "maps, kv shards undo --mod puts the one before in force again",
                            mysql::DatabaseName(space, shard), mod_shards, made));
          }
          return absl::OkStatus();
        });
    if (!unknown.ok()) return unknown;
    // A host that is down says nothing about the dataset.
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<mysql::Dataset>> MySqlBackend::OpenDataset(const DatasetSpec& spec) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  bool may_lack_tables = false;
  if (auto* const maker = fleet_->table_maker()) {
    bool is_open = false;
    {
      const MutexLock lock(datasets_mutex_);
      is_open = datasets_.contains(spec.incarnation);
    }
    // A dataset that is open gets no record any more.
    may_lack_tables = !is_open && maker->MayLackTables(spec);
  }
  const MutexLock lock(datasets_mutex_);
  NoteFollowed(spec);
  std::shared_ptr<mysql::Dataset>& dataset = datasets_[spec.incarnation];
  // The dataset may have migrated away and back since it was opened: with other settings, or to another
  // engine.
  if (dataset && dataset->family.newest_last == !mysql::HasDescendingKeys(spec)) {
    dataset->Apply(spec);
  } else {
    dataset = std::make_shared<mysql::Dataset>(spec, ++datasets_opened_);
    if (may_lack_tables) fleet_->table_maker()->Add(datasets_opened_, spec);
  }
  return dataset;
}

absl::StatusOr<std::shared_ptr<RowStore>> MySqlBackend::OpenRows(const DatasetSpec& spec) {
  auto dataset = OpenDataset(spec);
  if (!dataset.ok()) return dataset.status();
  return std::make_shared<mysql::MySqlRowStore>(fleet_, *std::move(dataset));
}

absl::StatusOr<std::shared_ptr<ObjectStore>> MySqlBackend::OpenObjects(const DatasetSpec& spec) {
  auto dataset = OpenDataset(spec);
  if (!dataset.ok()) return dataset.status();
  return std::make_shared<mysql::MySqlObjectStore>(fleet_, *std::move(dataset));
}

absl::StatusOr<std::shared_ptr<MappingStore>> MySqlBackend::OpenMappings(const DatasetSpec& spec) {
  auto dataset = OpenDataset(spec);
  if (!dataset.ok()) return dataset.status();
  return std::make_shared<mysql::MySqlMappingStore>(fleet_, *std::move(dataset));
}

absl::StatusOr<ReclaimResult> MySqlBackend::Reclaim(const DatasetSpec& spec, const Progress& progress) {
  auto dataset = OpenDataset(spec);
  if (!dataset.ok()) return dataset.status();
  if (spec.shape != Shape::kRows) {
    const auto stats = Stats(spec);
    if (!stats.ok()) return stats.status();
    return ReclaimResult{.bytes_before = stats->approximate_bytes, .bytes_after = stats->approximate_bytes};
  }
  return mysql::Purge(*fleet_, **dataset, spec, progress);
}

absl::StatusOr<DatasetStats> MySqlBackend::Stats(const DatasetSpec& spec) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  return mysql::MeasureDataset(*fleet_, spec);
}

absl::StatusOr<std::unique_ptr<UnitReader>> MySqlBackend::OpenUnits(const DatasetSpec& spec) {
  auto dataset = OpenDataset(spec);
  if (!dataset.ok()) return dataset.status();
  return std::make_unique<mysql::MySqlUnitReader>(fleet_, spec, *std::move(dataset));
}

absl::StatusOr<std::unique_ptr<MigrationEndpoint>> MySqlBackend::OpenForMigration(const DatasetSpec& spec) {
  if (auto status = mysql::ValidateEngine(spec); !status.ok()) return status;
  const MutexLock lock(datasets_mutex_);
  datasets_opened_ += 2;
  return std::make_unique<mysql::MySqlEndpoint>(fleet_, spec, datasets_opened_ - 1);
}

// ---- schema ----

absl::Status MySqlBackend::CheckNowhereElse(std::span<const Host> others, mysql::EmptyElsewhere empty) {
  return mysql::CheckNowhereElse(*fleet_, others, empty);
}

// ---- changes ----

absl::StatusOr<std::string> MySqlBackend::StartChanges(const DatasetSpec& spec, ChangesFrom from) {
  return changes_.Start(spec, from);
}

absl::StatusOr<UnitChanges> MySqlBackend::ReadChanges(const DatasetSpec& spec, std::string_view position,
                                                      const ChangeLimits& limits) {
  std::shared_ptr<mysql::Dataset> dataset;
  {
    const MutexLock lock(datasets_mutex_);
    if (const auto found = datasets_.find(spec.incarnation); found != datasets_.end())
      dataset = found->second;
  }
  if (!dataset) {
    auto opened = OpenDataset(spec);
    if (!opened.ok()) return opened.status();
    dataset = *std::move(opened);
  }
  return changes_.Read(spec, std::move(dataset), position, limits);
}

absl::Status MySqlBackend::SetConsumer(const DatasetSpec& spec, std::string_view name,
                                       std::string_view position) {
  return consumers_.Set(spec, name, position);
}

absl::StatusOr<std::vector<UnitConsumer>> MySqlBackend::ListConsumers(const DatasetSpec& spec) {
  return consumers_.List(spec);
}

absl::Status MySqlBackend::DropConsumer(const DatasetSpec& spec, std::string_view name) {
  return consumers_.Drop(spec, name);
}

void MySqlBackend::Describe(MetricsSink& sink) const {
  fleet_->Describe(sink);
  std::vector<DatasetSpec> followed;
  {
    const MutexLock lock(datasets_mutex_);
    for (const auto& [incarnation, spec] : followed_) followed.push_back(spec);
  }
  consumer_watch_.Describe(sink, followed);
  const mysql::Changes::Pages pages = changes_.pages();
  if (pages.shared + pages.own == 0) return;
  const auto tell = [&](const char* read, uint64_t count) {
    sink.Counter("kvstore_mysql_change_pages_total",
                 "Pages of binary logs for followers: read once for all of them, or by a connection of the "
                 "follower's own",
                 {{"read", read}}, static_cast<double>(count));
  };
  tell("shared", pages.shared);
  tell("own", pages.own);
}

absl::Status MySqlBackend::Init(const mysql::ReadSpecs& datasets, const Progress& progress,
                                mysql::LeftAlone* left_alone) {
  Mutex mutex;  // guards done and left, and makes calls of `datasets` one at a time
  uint64_t done = 0;
  mysql::LeftAlone left;
  const mysql::ReadSpecs read = [&]() -> absl::StatusOr<std::vector<DatasetSpec>> {
    const MutexLock lock(mutex);
    return datasets ? datasets() : std::vector<DatasetSpec>();
  };
  const auto specs = read();
  if (!specs.ok()) return specs.status();
  auto* const maker = fleet_->table_maker();
  TableRecords* const records = maker == nullptr ? nullptr : &maker->records();
  const uint64_t total =
      fleet_->map(ShardSpace::kId).open_shards() + fleet_->map(ShardSpace::kMod).open_shards();
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    absl::Status status = fleet_->OnAllShards(space, [&](const Host& host, uint32_t shard) {
      mysql::LeftAlone here;
      auto made =
          fleet_->RunOn(host, {space, shard}, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
            here.clear();
            return mysql::MakeShard(connection, space, shard, fleet_->mod_shards(), *specs, read, records,
                                    here);
          });
      const MutexLock lock(mutex);
      for (const auto& [why, count] : here) left[why] += count;
      if (made.ok() && progress && !progress(++done, total)) {
        return absl::CancelledError(
            "the initialisation of the shards was stopped; kv shards init makes the rest");
      }
      return made;
    });
    if (!status.ok()) return status;
  }
  // Every dataset has all its tables now, and no shard can be opened meanwhile (InitShards).
  if (records != nullptr && left.empty()) {
    for (const DatasetSpec& spec : *specs) {
      if (auto status = records->End(spec); !status.ok()) return status;
    }
  }
  if (left_alone != nullptr) *left_alone = std::move(left);
  return absl::OkStatus();
}

}  // namespace kvstore
