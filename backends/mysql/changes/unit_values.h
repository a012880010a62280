#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit_changes.h"
#include "backends/mysql/changes/page_builder.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"
#include "backends/mysql/units/units.h"

namespace kvstore::mysql {

/// Reads what units that a log names are now, for one page of changes. Externally synchronised.
class UnitValues {
 public:
  /// max_bytes  How many bytes of units the page has, about.
  UnitValues(std::shared_ptr<Fleet> fleet, const DatasetSpec& spec, std::shared_ptr<const Dataset> dataset,
             size_t max_bytes)
      : fleet_(std::move(fleet)),
        dataset_(std::move(dataset)),
        kind_{.shape = spec.shape, .type = spec.type},
        left_(max_bytes) {}

  /// Appends the units to `changes`. Returns false if the page is full before the last one.
  ///
  /// position  Returns the follower's position at a place.
  absl::StatusOr<bool> Append(std::span<const LoggedUnit> units,
                              const std::function<std::string(const LogPlace& after)>& position,
                              std::vector<UnitChange>& changes);

 private:
  /// Reads units as they are now, hosts in parallel. A unit that is written meanwhile may be read in part as
  /// it was and in part as it is: that write is another change, which comes later.
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys);

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
  const UnitKind kind_;
  size_t left_;
};

}  // namespace kvstore::mysql
