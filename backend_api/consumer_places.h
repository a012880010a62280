#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"

namespace kvstore {

/// Where a consumer of changes is, as it was noted.
struct NotedConsumer {
  std::string name;
  std::string position;  ///< As Backend::ReadChanges returns it.
  uint64_t set_ms = 0;   ///< When it was noted, by the clock of the place where it is noted.
  int32_t version = 0;   ///< Counts how often it was noted.
};

/// Where the places of consumers (Backend::SetConsumer) are noted that follow a dataset on a backend which
/// several processes share. All processes of the fleet see the same. Those of a dataset go with it: they are
/// kept under its incarnation, so that another dataset of its name has none of them. Thread-safe.
///
/// Errors of all calls: UNAVAILABLE if the place cannot be reached; the outcome of a change is unknown then.
class ConsumerPlaces {
 public:
  /// The largest position that can be noted. That of a fleet of 1,000 hosts has about 50 KiB.
  static constexpr size_t kMaxPositionBytes = size_t{256} << 10;

  virtual ~ConsumerPlaces() = default;

  /// Returns all consumers of a dataset, by name.
  [[nodiscard]] virtual absl::StatusOr<std::vector<NotedConsumer>> List(const DatasetSpec& spec) = 0;
  /// NOT_FOUND if there is none of that name.
  [[nodiscard]] virtual absl::StatusOr<NotedConsumer> Find(const DatasetSpec& spec,
                                                           std::string_view name) = 0;
  /// Notes where a consumer is.
  ///
  /// version  NotedConsumer::version of what is replaced; nullopt: there is no consumer of that name.
  ///
  /// ABORTED             somebody else has noted something meanwhile: find it again.
  /// RESOURCE_EXHAUSTED  the name is new, and there are kMaxConsumers; or the position is too large.
  [[nodiscard]] virtual absl::Status Put(const DatasetSpec& spec, std::string_view name,
                                         std::string_view position, std::optional<int32_t> version) = 0;
  /// NOT_FOUND if there is none of that name.
  [[nodiscard]] virtual absl::Status Drop(const DatasetSpec& spec, std::string_view name) = 0;
  /// Forgets all consumers of a dataset. Idempotent.
  [[nodiscard]] virtual absl::Status DropAll(const DatasetSpec& spec) = 0;
};

}  // namespace kvstore
