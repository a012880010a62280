#include <fmt/format.h>

#include <algorithm>

#include "kvstore_api/unit_key.h"
#include "server/special_handlers.h"
#include "wire/endpoint.h"

/// What the worker of a migration in another process asks (endpoint.proto).
namespace kvstore::server {
namespace {

using Ask = v1::EndpointRequest::AskCase;

/// The dataset as this server's catalog has it, in the backend that is asked for.
absl::StatusOr<DatasetSpec> FindSide(Router& router, const v1::EndpointRequest& request) {
  if (!router.SharesCatalog()) {
    return absl::FailedPreconditionError(
        "this server has a catalog of its own: both sides of a migration must share one, in ZooKeeper");
  }
  auto spec = router.GetDataset(request.dataset());
  if (!spec.ok()) return spec;
  if (spec->incarnation != request.incarnation()) {
    return absl::FailedPreconditionError(
        fmt::format("dataset: this server knows another '{}'", request.dataset()));
  }
  spec->backend = request.backend();
  spec->engine = request.engine();
  return spec;
}

/// Whether the migration is one of this catalog.
absl::Status CheckRecord(Router& router, const std::string& dataset) {
  return router.WithCatalog([&](Catalog& catalog) {
    const auto record = catalog.GetRecord(dataset);
    if (!absl::IsNotFound(record.status())) return record.status();
    return absl::FailedPreconditionError(
        fmt::format("dataset: the catalog of this server has no migration of '{}'", dataset));
  });
}

absl::Status CheckKey(Shape shape, std::string_view key) {
  if (IsUnitKey(shape, key)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("key: of {} bytes is that of no unit of {}", key.size(), Name(shape)));
}

absl::Status Read(MigrationEndpoint& endpoint, const v1::EndpointRequest::Read& asked,
                  v1::EndpointResponse& response) {
  // A few at a time: units may be large.
  constexpr int kStep = 64;
  size_t bytes = 0;
  for (int at = 0; at < asked.keys_size() && bytes < wire::kMaxUnitsBytes; at += kStep) {
    const int end = std::min(at + kStep, asked.keys_size());
    const std::vector<std::string> keys(asked.keys().begin() + at, asked.keys().begin() + end);
    auto units = endpoint.Read(keys, asked.as_of());
    if (!units.ok()) return units.status();
    for (const Unit& unit : *units) {
      bytes += wire::BytesOf(unit);
      if (bytes > wire::kMaxUnitsBytes && response.units_size() > 0) return absl::OkStatus();
      wire::ToWire(unit, *response.add_units());
    }
  }
  return absl::OkStatus();
}

absl::Status Scan(MigrationEndpoint& endpoint, const v1::EndpointRequest::Scan& asked,
                  v1::EndpointResponse& response) {
  UnitRange range = wire::FromWire(asked.range());
  if (asked.has_after()) range.start = asked.after();
  auto scan = endpoint.Scan(range, asked.as_of());
  if (!scan.ok()) return scan.status();
  for (;;) {
    auto units = (*scan)->Next();
    if (!units.ok()) return units.status();
    if (units->empty()) return absl::OkStatus();
    size_t bytes = 0;
    for (const Unit& unit : *units) {
      if (asked.has_after() && unit.key <= asked.after()) continue;
      bytes += wire::BytesOf(unit);
      if (bytes > wire::kMaxUnitsBytes && response.units_size() > 0) return absl::OkStatus();
      wire::ToWire(unit, *response.add_units());
    }
    if (response.units_size() > 0) return absl::OkStatus();
  }
}

}  // namespace

absl::Status HandleAny(Core& core, const Principal*, const v1::EndpointRequest& request,
                       v1::EndpointResponse& response, Unfinished&) {
  const auto spec = FindSide(core.router, request);
  if (!spec.ok()) return spec.status();
  const auto backend = core.router.FindBackend(spec->backend);
  if (!backend.ok()) return backend.status();
  const auto endpoint = (*backend)->OpenForMigration(*spec);
  if (!endpoint.ok()) return endpoint.status();
  MigrationEndpoint& side = **endpoint;
  const uint64_t epoch = request.epoch();
  if (auto status = side.Limit(request.limit()); !status.ok()) return status;
  switch (request.ask_case()) {
    case Ask::kStatus: {
      const auto status = side.Status();
      if (status.ok()) wire::ToWire(*status, response);
      return status.status();
    }
    case Ask::kBoot: {
      const auto boot = side.Boot();
      if (boot.ok()) response.set_boot(*boot);
      return boot.status();
    }
    case Ask::kRaiseEpoch: {
      auto status = CheckRecord(core.router, request.dataset());
      return status.ok() ? side.RaiseEpoch(epoch) : status;
    }
    case Ask::kEnter: {
      const auto state = wire::StateFromWire(request.enter().state());
      return state.ok() ? side.Enter(epoch, *state, request.enter().capture()) : state.status();
    }
    case Ask::kReassert: {
      const auto state = wire::StateFromWire(request.reassert().state());
      return state.ok() ? side.Reassert(epoch, *state, request.reassert().capture()) : state.status();
    }
    case Ask::kExtent: {
      auto extent = side.Extent();
      if (extent.ok()) response.set_extent(*std::move(extent));
      return extent.status();
    }
    case Ask::kReadDirty: {
      const auto entries = side.ReadDirty(request.read_dirty());
      if (entries.ok()) wire::ToWire(*entries, *response.mutable_entries());
      return entries.status();
    }
    case Ask::kRemoveDirty:
      return side.RemoveDirty(epoch, wire::FromWire(request.remove_dirty().entries()));
    case Ask::kLag: {
      const auto lag = side.Lag();
      if (!lag.ok()) return lag.status();
      response.set_lag_entries(lag->entries);
      response.set_oldest_ms(lag->oldest_ms);
      return absl::OkStatus();
    }
    case Ask::kPartitions: {
      const auto ranges = side.Partitions(request.partitions());
      if (!ranges.ok()) return ranges.status();
      for (const UnitRange& range : *ranges) wire::ToWire(range, *response.add_ranges());
      return absl::OkStatus();
    }
    case Ask::kRead:
      for (const std::string& key : request.read().keys()) {
        if (auto status = CheckKey(spec->shape, key); !status.ok()) return status;
      }
      return Read(side, request.read(), response);
    case Ask::kScan:
      return Scan(side, request.scan(), response);
    case Ask::kReplace: {
      const std::vector<Unit> units = wire::FromWire(request.replace().units());
      for (const Unit& unit : units) {
        if (auto status = CheckKey(spec->shape, unit.key); !status.ok()) return status;
      }
      return side.Replace(epoch, units, request.replace().fresh());
    }
    case Ask::kLastTimestamp: {
      const auto timestamp = side.LastTimestamp();
      if (timestamp.ok()) response.set_timestamp(*timestamp);
      return timestamp.status();
    }
    case Ask::kRaiseTimestamp:
      return side.RaiseTimestamp(epoch, request.raise_timestamp());
    case Ask::kNextLocalIds: {
      const auto next = side.NextLocalIds();
      if (next.ok()) response.mutable_next_local_ids()->insert(next->begin(), next->end());
      return next.status();
    }
    case Ask::kRaiseLocalIds: {
      const auto& next = request.raise_local_ids().next();
      return side.RaiseLocalIds(epoch, {next.begin(), next.end()});
    }
    case Ask::ASK_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("ask: is missing, or of a later version");
}

}  // namespace kvstore::server
