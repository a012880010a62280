#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "backend_api/outcome.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "migration/command_options.h"
#include "migration/migrator.h"

/// How a migration is created: `kv migrate create`.
namespace kvstore {

using migration::Record;

namespace {

/// Checks that a migration can begin with a side in this state.
///
/// serves  It is the side that the catalog names.
absl::Status CheckState(const DatasetSpec& side, const EndpointStatus& status, bool serves) {
  if (serves) {
    if (status.All(EndpointState::kServing)) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format(
        "backend: '{}' does not have '{}' serving everywhere; see docs/runbook.md", side.backend, side.name));
  }
  // Partitions that are importing or moved were left by a migration that ended without this side; the new one
  // removes them first.
  if (!status.Any(EndpointState::kServing) && !status.Any(EndpointState::kFrozen)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("backend: '{}' serves '{}' already, beside the one that the catalog names; see "
                  "docs/runbook.md on hosts that came "
                  "back after they were given up",
                  side.backend, side.name));
}

/// Removes the record of a migration of an earlier dataset of that name, which nobody can continue. Returns
/// whether there was one.
absl::StatusOr<bool> ForgetOrphan(Catalog& catalog, const DatasetSpec& spec) {
  const auto stored = catalog.GetRecord(spec.name);
  if (absl::IsNotFound(stored.status())) return false;
  if (!stored.ok()) return stored.status();
  const auto record = migration::Decode(stored->text);
  if (!record.ok() || record->incarnation == spec.incarnation) return false;
  if (auto status = catalog.RemoveRecord(spec.name, stored->version); !status.ok()) return status;
  return true;
}

absl::Status MigratesAlready(const std::string& dataset) {
  return absl::AlreadyExistsError(fmt::format("dataset: '{}' migrates already", dataset));
}

}  // namespace

absl::Status Migrator::CheckNewSide(const DatasetSpec& side, bool serves) const {
  const auto backend = keeper_.FindBackend(side.backend);
  if (!backend.ok()) return backend.status();
  const Capabilities can = (*backend)->capabilities();
  const bool stores = side.shape == Shape::kRows      ? can.rows
                      : side.shape == Shape::kObjects ? can.objects
                                                      : can.mappings;
  if (!can.migration || !stores) {
    return absl::FailedPreconditionError(fmt::format("backend: '{}' takes no part in migrations of {}",
                                                     side.backend, kvstore::Name(side.shape)));
  }
  if (side.keep_changes_ms != 0) {
    return absl::FailedPreconditionError(fmt::format(
        "dataset: '{0}' keeps its changes, and they do not migrate with it: those who follow it must begin "
        "again afterwards. kv dataset alter {0} --keep-changes-ms 0 ends that first",
        side.name));
  }
  const auto endpoint = (*backend)->OpenForMigration(side);
  if (!endpoint.ok()) return endpoint.status();
  const auto status = (*endpoint)->Status();
  if (!status.ok()) return status.status();
  return CheckState(side, *status, serves);
}

absl::Status Migrator::StoreNew(const Record& record, const DatasetSpec& source, const DatasetSpec& target,
                                const std::string& who) {
  ForgetEnded(source.name);
  bool orphan = false;
  absl::Status free = keeper_.WithCatalog([&](Catalog& catalog) {
    const auto forgotten = ForgetOrphan(catalog, source);
    if (!forgotten.ok()) return forgotten.status();
    orphan = *forgotten;
    const absl::Status found = catalog.GetRecord(source.name).status();
    if (!found.ok()) return absl::IsNotFound(found) ? absl::OkStatus() : found;
    return MigratesAlready(source.name);
  });
  if (!free.ok()) return free;
  Operation operation = keeper_.MigrationOf(source, target);
  operation.who = who;
  // Another process may create a migration of the dataset at this moment. Its claims may be others than those
  // of this one, and must not be replaced by them: its migration lasts if its record is stored first.
  operation.is_new = true;
  if (orphan) {
    if (auto status = keeper_.ledger().EndLasting(operation.what); !status.ok()) return status;
  }
  Reached("create.free");
  // From here on nobody can alter or drop the dataset, or open shards of its space. Whether somebody did just
  // before is checked next.
  auto held = keeper_.ledger().Begin(std::move(operation));
  if (absl::IsAlreadyExists(held.status())) {
    return absl::AlreadyExistsError(fmt::format(
        "dataset: another migration of '{0}' is being created, or its create was cut short: {1}. kv migrate "
        "status {0} says whether it migrates; if not, and nobody is at it, kv migrate cancel {0} frees what "
        "was claimed",
        source.name, std::string(held.status().message())));
  }
  if (!held.ok()) return held.status();
  Reached("create.claimed");
  const auto now = keeper_.LoadEntry(source.name);
  if (!now.ok() || now->spec != source) {
    held->End().IgnoreError();
    if (!now.ok() && !absl::IsNotFound(now.status())) return now.status();
    return absl::FailedPreconditionError(
        fmt::format("dataset: '{}' was altered or dropped just now; run the command again", source.name));
  }
  absl::Status status = keeper_.WithCatalog([&](Catalog& catalog) {
    if (const auto forgotten = ForgetOrphan(catalog, source); !forgotten.ok()) return forgotten.status();
    return catalog.PutRecord(source.name, Encode(record), -1).status();
  });
  // After an outcome in doubt the record may be there, and needs the claims. Otherwise a create that failed
  // must leave none behind.
  if (!status.ok() && !IsInDoubt(status)) held->End().IgnoreError();
  return absl::IsAborted(status) ? MigratesAlready(source.name) : status;
}

absl::StatusOr<Json> Migrator::Create(const Options& options) {
  const auto entry = keeper_.LoadEntry(options.dataset);
  if (!entry.ok()) return entry.status();
  const DatasetSpec& source = entry->spec;
  if (options.target.empty()) return absl::InvalidArgumentError("target: is missing");
  if (options.target == source.backend && options.engine == source.engine) {
    return absl::InvalidArgumentError(fmt::format("target: the dataset is on '{}' already", options.target));
  }
  if (!entry->other_backend.empty()) {
    return absl::AlreadyExistsError(
        fmt::format("dataset: '{}' migrates already; see kv migrate status", source.name));
  }
  if (options.automatic && options.shadow_share.value_or(0) > 0) {
    return absl::InvalidArgumentError(
        "shadow_share: with --auto the cutover begins as soon as the migration is ready, before a read could "
        "be made "
        "on both sides; leave out one of --shadow-reads and --auto");
  }
  DatasetSpec target = source;
  target.backend = options.target;
  target.engine = options.engine;
  if (auto status = CheckNewSide(source, /*serves=*/true); !status.ok()) return status;
  if (auto status = CheckNewSide(target, /*serves=*/false); !status.ok()) return status;
  Record record{.dataset = source.name,
                .incarnation = source.incarnation,
                .source = source.backend,
                .source_engine = source.engine,
                .target = target.backend,
                .target_engine = target.engine,
                .automatic = options.automatic,
                .limits = options.Apply({})};
  if (options.threads) record.threads = static_cast<uint32_t>(*options.threads);
  if (options.shadow_share) record.shadow.share = static_cast<uint32_t>(*options.shadow_share);
  if (options.freeze_ms) record.freeze_ms = *options.freeze_ms;
  if (const auto stats = keeper_.GetStats(source.name); stats.ok()) {
    record.estimated_units = stats->approximate_entries;
  }
  record.AddEvent(options.who, "created", WallClockMs());
  if (!options.dry_run) {
    if (auto status = StoreNew(record, source, target, options.who); !status.ok()) return status;
  }
  return migration::StatusJson(record, std::nullopt);
}

}  // namespace kvstore
