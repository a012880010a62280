#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend_api/change_capture.h"
#include "backend_api/migration_control.h"
#include "backend_api/unit.h"
#include "kvstore/v1/endpoint.pb.h"
#include "wire/convert.h"

/// Conversion between the types of migrations and the messages of endpoint.proto, for both sides.
namespace kvstore::wire {

/// Bytes of units that a message has at most, unless it has a single unit.
inline constexpr size_t kMaxUnitsBytes = size_t{4} << 20;

void ToWire(const EndpointStatus& status, v1::EndpointResponse& message);
/// INVALID_ARGUMENT for a number that names no state.
absl::StatusOr<EndpointStatus> FromWire(const v1::EndpointResponse& message);
/// INVALID_ARGUMENT for a number that names no state.
absl::StatusOr<EndpointState> StateFromWire(uint32_t state);

void ToWire(const UnitRange& range, v1::UnitRange& message);
UnitRange FromWire(const v1::UnitRange& message);
void ToWire(const Unit& unit, v1::Unit& message);
std::vector<Unit> FromWire(const List<v1::Unit>& list);
/// The bytes of a unit in a message, about.
size_t BytesOf(const Unit& unit);
void ToWire(std::span<const DirtyEntry> entries, List<v1::DirtyEntry>& list);
std::vector<DirtyEntry> FromWire(const List<v1::DirtyEntry>& list);

}  // namespace kvstore::wire
