#include "client/endpoint.h"

#include <algorithm>
#include <utility>

#include "wire/endpoint.h"

namespace kvstore::client {
namespace {

using Request = v1::EndpointRequest;
using Response = v1::EndpointResponse;

absl::Status QueryEndpoint(Caller& caller, const Request& request, Response& response) {
  return caller.Repeat([&](Caller::Try& attempt) {
    response.Clear();
    return caller.Endpoints().Ask(&attempt.Context(), request, &response);
  });
}

/// A scan whose pages are calls of their own: the server keeps nothing between them.
class RemoteUnitScan : public UnitScan {
 public:
  RemoteUnitScan(std::shared_ptr<Caller> caller, Request request)
      : caller_(std::move(caller)), request_(std::move(request)) {}

  absl::StatusOr<std::vector<Unit>> Next() override {
    Response response;
    if (auto status = QueryEndpoint(*caller_, request_, response); !status.ok()) return status;
    // They must be in the order of their keys, or the next page could have them again.
    const std::string* last = &request_.scan().after();
    for (const v1::Unit& unit : response.units()) {
      if (unit.key() <= *last)
        return caller_->InvalidAnswerError("answered with units that are out of order");
      last = &unit.key();
    }
    std::vector<Unit> units = wire::FromWire(response.units());
    if (!units.empty()) request_.mutable_scan()->set_after(units.back().key);
    return units;
  }

 private:
  const std::shared_ptr<Caller> caller_;
  Request request_;
};

}  // namespace

RemoteEndpoint::RemoteEndpoint(std::shared_ptr<Caller> caller, const DatasetSpec& spec)
    : caller_(std::move(caller)), spec_(spec) {}

absl::Status RemoteEndpoint::Query(const Request& request, Response& response) {
  return QueryEndpoint(*caller_, request, response);
}

absl::Status RemoteEndpoint::Change(const Request& request) {
  Response response;
  return caller_->Once(
      [&](Caller::Try& attempt) { return caller_->Endpoints().Ask(&attempt.Context(), request, &response); });
}

Request RemoteEndpoint::NewRequest(uint64_t epoch) const {
  Request request;
  request.set_dataset(spec_.name);
  request.set_incarnation(spec_.incarnation);
  request.set_backend(spec_.backend);
  request.set_engine(spec_.engine);
  request.set_epoch(epoch);
  request.set_limit(extent_);
  return request;
}

// ---- states ----

absl::StatusOr<std::string> RemoteEndpoint::Extent() {
  Request request = NewRequest();
  request.mutable_extent();
  Response response;
  if (auto status = Query(request, response); !status.ok()) return status;
  return std::move(*response.mutable_extent());
}

absl::Status RemoteEndpoint::Limit(const std::string& extent) {
  extent_ = extent;
  return absl::OkStatus();
}

absl::StatusOr<EndpointStatus> RemoteEndpoint::Status() {
  Request request = NewRequest();
  request.mutable_status();
  Response response;
  if (auto status = Query(request, response); !status.ok()) return status;
  return wire::FromWire(response);
}

absl::StatusOr<std::string> RemoteEndpoint::BootId() {
  Request request = NewRequest();
  request.mutable_boot();
  Response response;
  if (auto status = Query(request, response); !status.ok()) return status;
  return std::move(*response.mutable_boot());
}

absl::Status RemoteEndpoint::RaiseEpoch(uint64_t epoch) {
  Request request = NewRequest(epoch);
  request.mutable_raise_epoch();
  return Change(request);
}

absl::Status RemoteEndpoint::TransitionTo(uint64_t epoch, EndpointState state, bool capture) {
  Request request = NewRequest(epoch);
  request.mutable_enter()->set_state(static_cast<uint32_t>(state));
  request.mutable_enter()->set_capture(capture);
  return Change(request);
}

absl::Status RemoteEndpoint::Reassert(uint64_t epoch, EndpointState state, bool capture) {
  Request request = NewRequest(epoch);
  request.mutable_reassert()->set_state(static_cast<uint32_t>(state));
  request.mutable_reassert()->set_capture(capture);
  return Change(request);
}

// ---- the dirty log ----

absl::StatusOr<std::vector<DirtyEntry>> RemoteEndpoint::ReadDirty(size_t limit) {
  Request request = NewRequest();
  request.set_read_dirty(limit);
  Response response;
  if (auto status = Query(request, response); !status.ok()) return status;
  return wire::FromWire(response.entries());
}

absl::Status RemoteEndpoint::RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) {
  Request request = NewRequest(epoch);
  wire::ToWire(entries, *request.mutable_remove_dirty()->mutable_entries());
  return Change(request);
}

absl::StatusOr<DirtyLag> RemoteEndpoint::Lag() {
  Request request = NewRequest();
  request.mutable_lag();
  Response response;
  if (auto status = Query(request, response); !status.ok()) return status;
  return DirtyLag{response.lag_entries(), response.oldest_ms()};
}

// ---- units ----

absl::StatusOr<std::vector<UnitRange>> RemoteEndpoint::Partitions(size_t wanted) {
  Request request = NewRequest();
  request.set_partitions(static_cast<uint32_t>(wanted));
  Response response;
  if (auto status = Query(request, response); !status.ok()) return status;
  std::vector<UnitRange> ranges;
  for (const v1::UnitRange& range : response.ranges()) ranges.push_back(wire::FromWire(range));
  return ranges;
}

absl::StatusOr<std::vector<Unit>> RemoteEndpoint::Read(std::span<const std::string> keys, uint64_t as_of) {
  std::vector<Unit> units;
  units.reserve(keys.size());
  while (units.size() < keys.size()) {
    Request request = NewRequest();
    request.mutable_read()->set_as_of(as_of);
    for (const std::string& key : keys.subspan(units.size())) request.mutable_read()->add_keys(key);
    Response response;
    if (auto status = Query(request, response); !status.ok()) return status;
    std::vector<Unit> some = wire::FromWire(response.units());
    if (some.empty() || some.size() > keys.size() - units.size()) {
      return caller_->InvalidAnswerError("answered another number of units than asked for");
    }
    for (Unit& unit : some) {
      if (unit.key != keys[units.size()]) return caller_->InvalidAnswerError("answered with another unit");
      units.push_back(std::move(unit));
    }
  }
  return units;
}

absl::StatusOr<std::unique_ptr<UnitScan>> RemoteEndpoint::Scan(const UnitRange& range, uint64_t as_of) {
  Request request = NewRequest();
  wire::ToWire(range, *request.mutable_scan()->mutable_range());
  request.mutable_scan()->set_as_of(as_of);
  return std::make_unique<RemoteUnitScan>(caller_, std::move(request));
}

absl::Status RemoteEndpoint::Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) {
  for (size_t at = 0; at < units.size();) {
    Request request = NewRequest(epoch);
    request.mutable_replace()->set_fresh(fresh);
    for (size_t bytes = 0; at < units.size(); ++at) {
      bytes += wire::BytesOf(units[at]);
      if (bytes > wire::kMaxUnitsBytes && request.replace().units_size() > 0) break;
      wire::ToWire(units[at], *request.mutable_replace()->add_units());
    }
    if (auto status = Change(request); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// ---- counters ----

absl::StatusOr<uint64_t> RemoteEndpoint::LastTimestamp() {
  Request request = NewRequest();
  request.mutable_last_timestamp();
  Response response;
  if (auto status = Query(request, response); !status.ok()) return status;
  return response.timestamp();
}

absl::Status RemoteEndpoint::RaiseTimestamp(uint64_t epoch, uint64_t timestamp) {
  Request request = NewRequest(epoch);
  request.set_raise_timestamp(timestamp);
  return Change(request);
}

absl::StatusOr<LocalIdFloors> RemoteEndpoint::NextLocalIds() {
  Request request = NewRequest();
  request.mutable_next_local_ids();
  Response response;
  if (auto status = Query(request, response); !status.ok()) return status;
  return LocalIdFloors{.shards = {response.next_local_ids().begin(), response.next_local_ids().end()},
                       .others = std::max<uint64_t>(response.next_local_id_of_others(), 1)};
}

absl::Status RemoteEndpoint::RaiseLocalIds(uint64_t epoch, const LocalIdFloors& next) {
  Request request = NewRequest(epoch);
  request.mutable_raise_local_ids()->mutable_next()->insert(next.shards.begin(), next.shards.end());
  if (next.others > 1) request.mutable_raise_local_ids()->set_others(next.others);
  return Change(request);
}

}  // namespace kvstore::client
