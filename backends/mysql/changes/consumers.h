#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/consumer_places.h"
#include "backend_api/unit_changes.h"
#include "backends/mysql/changes/changes.h"
#include "kvstore_api/dataset.h"

namespace kvstore::mysql {

/// The consumers of datasets on MySQL: who follows under a name, and how far they have come. Binary logs are
/// kept for as long as the servers are told to, whoever follows; so a consumer is told when it is lost, and
/// holds nothing back. Thread-safe.
class Consumers {
 public:
  /// changes  Must outlive this.
  /// places   Null: there is no place that all processes share, and all calls but DropAll are UNIMPLEMENTED.
  Consumers(Changes& changes, std::unique_ptr<ConsumerPlaces> places)
      : changes_(changes), places_(std::move(places)) {}

  /// Notes where a consumer is. The servers are not asked, so that a follower can note what it has dealt with
  /// while one of them is away.
  ///
  /// FAILED_PRECONDITION  the consumer has passed this place already: it is dropped to begin there again. A
  ///                      consumer that is lost may be anywhere.
  /// RESOURCE_EXHAUSTED   as ConsumerPlaces::Put.
  /// UNAVAILABLE          the places cannot be reached; or others keep noting other ones.
  absl::Status Set(const DatasetSpec& spec, std::string_view name, std::string_view position);
  /// Returns all consumers, by name. Their lags are upper bounds (Changes::Measure).
  absl::StatusOr<std::vector<UnitConsumer>> List(const DatasetSpec& spec);
  /// NOT_FOUND if there is none of that name.
  absl::Status Drop(const DatasetSpec& spec, std::string_view name);
  /// Forgets all of a dataset. Idempotent.
  absl::Status DropAll(const DatasetSpec& spec);

 private:
  absl::Status CheckPlaces() const;

  Changes& changes_;
  const std::unique_ptr<ConsumerPlaces> places_;
};

}  // namespace kvstore::mysql
