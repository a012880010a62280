#include "wire/endpoint.h"

#include "wire/unknown_number.h"

namespace kvstore::wire {

absl::StatusOr<EndpointState> StateFromWire(uint32_t state) {
  if (state <= static_cast<uint32_t>(EndpointState::kMoved)) return static_cast<EndpointState>(state);
  return UnknownNumberError("state", static_cast<int>(state));
}

void ToWire(const EndpointStatus& status, v1::EndpointResponse& message) {
  for (const auto& [state, count] : status.partitions) {
    (*message.mutable_partitions())[static_cast<uint32_t>(state)] = count;
  }
  message.set_capture(status.capture);
  message.set_epoch(status.epoch);
}

absl::StatusOr<EndpointStatus> FromWire(const v1::EndpointResponse& message) {
  EndpointStatus status{.capture = message.capture(), .epoch = message.epoch()};
  for (const auto& [number, count] : message.partitions()) {
    const auto state = StateFromWire(number);
    if (!state.ok()) return state.status();
    status.partitions[*state] = count;
  }
  return status;
}

void ToWire(const UnitRange& range, v1::UnitRange& message) {
  message.set_start(range.start);
  message.set_end(range.end);
  message.set_shard(range.shard);
}

UnitRange FromWire(const v1::UnitRange& message) { return {message.start(), message.end(), message.shard()}; }

void ToWire(const Unit& unit, v1::Unit& message) {
  message.set_key(unit.key);
  message.mutable_cells()->Reserve(static_cast<int>(unit.cells.size()));
  for (const Cell& cell : unit.cells) {
    v1::Unit::Cell& to = *message.add_cells();
    to.set_timestamp(cell.timestamp);
    to.set_value(cell.value);
  }
}

std::vector<Unit> FromWire(const List<v1::Unit>& list) {
  std::vector<Unit> units;
  units.reserve(static_cast<size_t>(list.size()));
  for (const v1::Unit& message : list) {
    Unit& unit = units.emplace_back();
    unit.key = message.key();
    unit.cells.reserve(static_cast<size_t>(message.cells_size()));
    for (const v1::Unit::Cell& cell : message.cells()) unit.cells.push_back({cell.timestamp(), cell.value()});
  }
  return units;
}

size_t BytesOf(const Unit& unit) {
  constexpr size_t kCellOverheadBytes = 24;
  size_t bytes = unit.key.size() + kCellOverheadBytes;
  for (const Cell& cell : unit.cells) bytes += cell.value.size() + kCellOverheadBytes;
  return bytes;
}

void ToWire(std::span<const DirtyEntry> entries, List<v1::DirtyEntry>& list) {
  list.Reserve(static_cast<int>(entries.size()));
  for (const DirtyEntry& entry : entries) {
    v1::DirtyEntry& to = *list.Add();
    to.set_log(entry.log);
    to.set_id(entry.id);
    to.set_key(entry.key);
  }
}

std::vector<DirtyEntry> FromWire(const List<v1::DirtyEntry>& list) {
  std::vector<DirtyEntry> entries;
  entries.reserve(static_cast<size_t>(list.size()));
  for (const v1::DirtyEntry& message : list) entries.push_back({message.log(), message.id(), message.key()});
  return entries;
}

}  // namespace kvstore::wire
