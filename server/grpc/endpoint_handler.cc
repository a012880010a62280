#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backend_api/unit_key.h"
#include "server/grpc/special_handlers.h"
#include "wire/endpoint.h"

/// Endpoints.Ask: what the worker of a migration in another process asks of this server (endpoint.proto).
namespace kvstore::server {
namespace {

using Ask = v1::EndpointRequest::AskCase;

/// Returns the dataset as this server's catalog has it, but in the backend that is asked for.
absl::StatusOr<DatasetSpec> FindSide(Router& router, const v1::EndpointRequest& request) {
  if (!router.keeper().SharesCatalog()) {
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

/// Checks that the catalog has a migration of the dataset.
absl::Status CheckRecord(Router& router, const std::string& dataset) {
  return router.keeper().WithCatalog([&](Catalog& catalog) {
    const auto record = catalog.GetRecord(dataset);
    if (!absl::IsNotFound(record.status())) return record.status();
    return absl::FailedPreconditionError(
        fmt::format("dataset: the catalog of this server has no migration of '{}'", dataset));
  });
}

absl::Status CheckKey(Shape shape, std::string_view key) {
  if (IsUnitKey(shape, key)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("key: of {} bytes is not the key of a unit of {}", key.size(), Name(shape)));
}

absl::Status Read(UnitReader& reader, Shape shape, const v1::EndpointRequest::Read& asked,
                  v1::EndpointResponse& response) {
  for (const std::string& key : asked.keys()) {
    if (auto status = CheckKey(shape, key); !status.ok()) return status;
  }
  // Only a few are read at a time, because units may be large.
  constexpr int kStep = 64;
  size_t bytes = 0;
  for (int at = 0; at < asked.keys_size() && bytes < wire::kMaxUnitsBytes; at += kStep) {
    const int end = std::min(at + kStep, asked.keys_size());
    const std::vector<std::string> keys(asked.keys().begin() + at, asked.keys().begin() + end);
    auto units = reader.Read(keys, asked.as_of());
    if (!units.ok()) return units.status();
    for (const Unit& unit : *units) {
      bytes += wire::BytesOf(unit);
      if (bytes > wire::kMaxUnitsBytes && response.units_size() > 0) return absl::OkStatus();
      wire::ToWire(unit, *response.add_units());
    }
  }
  return absl::OkStatus();
}

absl::Status Scan(UnitReader& reader, const v1::EndpointRequest::Scan& asked,
                  v1::EndpointResponse& response) {
  UnitRange range = wire::FromWire(asked.range());
  if (asked.has_after()) range.start = asked.after();
  auto scan = reader.Scan(range, asked.as_of());
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

absl::Status ReadStatus(MigrationControl& control, v1::EndpointResponse& response) {
  const auto status = control.Status();
  if (status.ok()) wire::ToWire(*status, response);
  return status.status();
}

absl::Status ReadBootId(MigrationControl& control, v1::EndpointResponse& response) {
  const auto boot = control.BootId();
  if (boot.ok()) response.set_boot(*boot);
  return boot.status();
}

absl::Status TransitionTo(MigrationControl& control, uint64_t epoch,
                          const v1::EndpointRequest::Enter& asked) {
  const auto state = wire::StateFromWire(asked.state());
  return state.ok() ? control.TransitionTo(epoch, *state, asked.capture()) : state.status();
}

absl::Status Reassert(MigrationControl& control, uint64_t epoch, const v1::EndpointRequest::Enter& asked) {
  const auto state = wire::StateFromWire(asked.state());
  return state.ok() ? control.Reassert(epoch, *state, asked.capture()) : state.status();
}

absl::Status ReadExtent(MigrationControl& control, v1::EndpointResponse& response) {
  auto extent = control.Extent();
  if (extent.ok()) response.set_extent(*std::move(extent));
  return extent.status();
}

absl::Status ReadDirty(ChangeCapture& changes, size_t limit, v1::EndpointResponse& response) {
  const auto entries = changes.ReadDirty(limit);
  if (entries.ok()) wire::ToWire(*entries, *response.mutable_entries());
  return entries.status();
}

absl::Status ReadLag(ChangeCapture& changes, v1::EndpointResponse& response) {
  const auto lag = changes.Lag();
  if (!lag.ok()) return lag.status();
  response.set_lag_entries(lag->entries);
  response.set_oldest_ms(lag->oldest_ms);
  return absl::OkStatus();
}

absl::Status ListPartitions(UnitReader& reader, size_t wanted, v1::EndpointResponse& response) {
  const auto ranges = reader.Partitions(wanted);
  if (!ranges.ok()) return ranges.status();
  for (const UnitRange& range : *ranges) wire::ToWire(range, *response.add_ranges());
  return absl::OkStatus();
}

absl::Status Replace(UnitWriter& writer, Shape shape, uint64_t epoch,
                     const v1::EndpointRequest::Replace& asked) {
  const std::vector<Unit> units = wire::FromWire(asked.units());
  for (const Unit& unit : units) {
    if (auto status = CheckKey(shape, unit.key); !status.ok()) return status;
  }
  return writer.Replace(epoch, units, asked.fresh());
}

absl::Status ReadLastTimestamp(UnitReader& reader, v1::EndpointResponse& response) {
  const auto timestamp = reader.LastTimestamp();
  if (timestamp.ok()) response.set_timestamp(*timestamp);
  return timestamp.status();
}

absl::Status ReadNextLocalIds(UnitReader& reader, v1::EndpointResponse& response) {
  const auto next = reader.NextLocalIds();
  if (!next.ok()) return next.status();
  response.mutable_next_local_ids()->insert(next->shards.begin(), next->shards.end());
  if (next->others > 1) response.set_next_local_id_of_others(next->others);
  return absl::OkStatus();
}

}  // namespace

absl::Status HandleAny(Core& core, const Principal*, const v1::EndpointRequest& request,
                       v1::EndpointResponse& response, Unfinished&) {
  const auto spec = FindSide(core.router, request);
  if (!spec.ok()) return spec.status();
  const auto backend = core.router.keeper().FindBackend(spec->backend);
  if (!backend.ok()) return backend.status();
  const auto opened = (*backend)->OpenForMigration(*spec);
  if (!opened.ok()) return opened.status();
  MigrationEndpoint& endpoint = **opened;
  const uint64_t epoch = request.epoch();
  if (auto status = endpoint.Limit(request.limit()); !status.ok()) return status;
  switch (request.ask_case()) {
    case Ask::kStatus:
      return ReadStatus(endpoint, response);
    case Ask::kBoot:
      return ReadBootId(endpoint, response);
    case Ask::kRaiseEpoch: {
      auto status = CheckRecord(core.router, request.dataset());
      return status.ok() ? endpoint.RaiseEpoch(epoch) : status;
    }
    case Ask::kEnter:
      return TransitionTo(endpoint, epoch, request.enter());
    case Ask::kReassert:
      return Reassert(endpoint, epoch, request.reassert());
    case Ask::kExtent:
      return ReadExtent(endpoint, response);
    case Ask::kReadDirty:
      return ReadDirty(endpoint, request.read_dirty(), response);
    case Ask::kRemoveDirty:
      return endpoint.RemoveDirty(epoch, wire::FromWire(request.remove_dirty().entries()));
    case Ask::kLag:
      return ReadLag(endpoint, response);
    case Ask::kPartitions:
      return ListPartitions(endpoint, request.partitions(), response);
    case Ask::kRead:
      return Read(endpoint, spec->shape, request.read(), response);
    case Ask::kScan:
      return Scan(endpoint, request.scan(), response);
    case Ask::kReplace:
      return Replace(endpoint, spec->shape, epoch, request.replace());
    case Ask::kLastTimestamp:
      return ReadLastTimestamp(endpoint, response);
    case Ask::kRaiseTimestamp:
      return endpoint.RaiseTimestamp(epoch, request.raise_timestamp());
    case Ask::kNextLocalIds:
      return ReadNextLocalIds(endpoint, response);
    case Ask::kRaiseLocalIds: {
      const auto& next = request.raise_local_ids();
      return endpoint.RaiseLocalIds(epoch, {.shards = {next.next().begin(), next.next().end()},
                                            .others = std::max<uint64_t>(next.others(), 1)});
    }
    case Ask::ASK_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("ask: is missing, or of a later version");
}

}  // namespace kvstore::server
