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
#include "backends/mysql/units/unit_reader.h"

namespace kvstore::mysql {

/// Reads what units that a log names are now, for one page of changes. Externally synchronised.
class UnitValues {
 public:
  /// max_bytes  How many bytes of units the page has, about.
  UnitValues(std::shared_ptr<Fleet> fleet, const DatasetSpec& spec, std::shared_ptr<const Dataset> dataset,
             size_t max_bytes)
      : shape_(spec.shape), reader_(std::move(fleet), spec, std::move(dataset)), left_(max_bytes) {}

  /// Appends the units to `changes`. Returns false if the page is full before the last one.
  ///
  /// position  Returns the follower's position at a place.
  absl::StatusOr<bool> Append(std::span<const LoggedUnit> units,
                              const std::function<std::string(const LogPlace& after)>& position,
                              std::vector<UnitChange>& changes);

 private:
  const Shape shape_;
  MySqlUnitReader reader_;
  size_t left_;
};

}  // namespace kvstore::mysql
