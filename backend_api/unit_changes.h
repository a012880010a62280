#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend_api/unit.h"

/// The changes of a dataset, as a backend tells them (Backend::ReadChanges).
namespace kvstore {

/// A unit that a client's write has touched.
struct UnitChange {
  std::string position;  ///< Where to go on after this change.
  uint64_t at_ms = 0;    ///< When the write was made, by the backend's clock. Never decreases in a partition.
  /// The unit as it is now: a later change of it may be in it already. For rows the key may also be enc(row)
  /// alone, without cells: all of the row was deleted, and columns that it has now were written since; their
  /// changes follow.
  Unit unit;
  bool more = false;  ///< It has more cells than these newest ones; for columns of a megabyte and more.
  friend bool operator==(const UnitChange&, const UnitChange&) = default;
};

/// Some changes, in an order in which those of each unit have the order of its writes.
struct UnitChanges {
  std::vector<UnitChange> changes;
  std::string position;  ///< Where to go on.
  /// Every write that was made until then (ms) is before `position`; 0 if that is not known, because there is
  /// more to read.
  uint64_t complete_until_ms = 0;
  friend bool operator==(const UnitChanges&, const UnitChanges&) = default;
};

/// How much a call returns.
struct ChangeLimits {
  size_t changes = 1000;
  size_t bytes = size_t{4} << 20;  ///< The size of the units, about; at least one change is returned.
};

/// A follower of changes that has a name; as ChangeConsumer.
struct UnitConsumer {
  std::string name;
  std::string position;  ///< Empty: some of what is after it is not kept any more.
  uint64_t set_ms = 0;
  uint64_t lag_ms = 0;
};

/// Where a follower begins that has no position yet.
enum class ChangesFrom : uint8_t {
  kBegin,  ///< With the oldest change that is still kept.
  kNow,    ///< Behind all writes that are acknowledged by now, or a little before.
};

}  // namespace kvstore
