#include "backends/mysql/changes/consumers.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "backends/mysql/changes/position_order.h"
#include "backends/mysql/driver/schema.h"
#include "base/jitter.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {
namespace {

/// How often a place is noted again when others note one at the same time, and for how long it is waited
/// before that.
constexpr unsigned kNoteAttempts = 10;
constexpr std::chrono::milliseconds kFirstPause{5};
constexpr std::chrono::milliseconds kLongestPause{200};
/// A place may name so many hosts: all places of a dataset are decoded whenever somebody asks for figures.
constexpr size_t kMaxNotedPairs = 4096;

}  // namespace

absl::Status Consumers::CheckPlaces() const {
  if (places_ != nullptr) return absl::OkStatus();
  return absl::UnimplementedError(
      "consumer: the consumers of datasets on MySQL are noted in ZooKeeper, and the shard maps of this store "
      "are files (id_map, mod_map); store the token of what was dealt with yourself, and go on with --from");
}

absl::Status Consumers::Set(const DatasetSpec& spec, std::string_view name, std::string_view position) {
  if (auto status = CheckPlaces(); !status.ok()) return status;
  const auto place = ChangePosition::Decode(position);
  if (!place.ok()) return place.status();
  if (place->pairs.size() > kMaxNotedPairs) {
    return absl::ResourceExhaustedError(
        fmt::format("token: names {} pairs of hosts; the place of a consumer may name {}",
                    place->pairs.size(), kMaxNotedPairs));
  }
  for (unsigned attempt = 1;; ++attempt) {
    if (auto over = CheckCall(); !over.ok()) return over;
    std::optional<int32_t> version;
    const auto before = places_->Find(spec, name);
    if (before.ok()) {
      version = before->version;
      const auto noted = ChangePosition::Decode(before->position);
      // A noted position does not count if its log was lost or purged: it may be after all that comes.
      if (noted.ok() && HasPassed(*noted, *place) &&
          !changes_.Measure(SpaceOf(spec.shape), {&*noted, 1}).front().is_lost) {
        return absl::FailedPreconditionError(fmt::format(
            "token: '{0}' has passed this place already, perhaps by another process that follows under the "
            "same name; if it is to begin there again: kv consumers drop {1} {0}",
            name, spec.name));
      }
    } else if (!absl::IsNotFound(before.status())) {
      return before.status();
    }
    absl::Status status = places_->Put(spec, name, position, version);
    if (!absl::IsAborted(status)) return status;
    if (attempt == kNoteAttempts) {
      return absl::UnavailableError(fmt::format("name: others keep noting where '{}' is", name));
    }
    std::this_thread::sleep_for(FullJitter(kFirstPause, kLongestPause, attempt));
  }
}

absl::StatusOr<std::vector<UnitConsumer>> Consumers::List(const DatasetSpec& spec) {
  if (auto status = CheckPlaces(); !status.ok()) return status;
  auto noted = places_->List(spec);
  if (!noted.ok()) return noted.status();
  std::vector<UnitConsumer> consumers;
  std::vector<ChangePosition> positions;
  std::vector<size_t> of;  // the consumers that the positions are of
  for (NotedConsumer& one : *noted) {
    auto position = ChangePosition::Decode(one.position);
    consumers.push_back({.name = std::move(one.name), .position = {}, .set_ms = one.set_ms, .lag_ms = 0});
    if (!position.ok()) continue;
    consumers.back().position = std::move(one.position);
    positions.push_back(*std::move(position));
    of.push_back(consumers.size() - 1);
  }
  const auto lags = changes_.Measure(SpaceOf(spec.shape), positions);
  for (size_t i = 0; i < lags.size(); ++i) {
    UnitConsumer& consumer = consumers[of[i]];
    consumer.lag_ms = lags[i].ms;
    if (lags[i].is_lost) consumer.position.clear();
  }
  return consumers;
}

absl::Status Consumers::Drop(const DatasetSpec& spec, std::string_view name) {
  if (auto status = CheckPlaces(); !status.ok()) return status;
  return places_->Drop(spec, name);
}

absl::Status Consumers::DropAll(const DatasetSpec& spec) {
  return places_ == nullptr ? absl::OkStatus() : places_->DropAll(spec);
}

}  // namespace kvstore::mysql
