#include "reports/metadata_rollups.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "json/json.h"
#include "json/json_fields.h"
#include "json/json_text.h"
#include "reports/status_macros.h"
#include "reports/steps.h"

namespace kvstore::reports {
namespace {

absl::Status Damaged(const absl::Status& why) {
  return absl::DataLossError(
      fmt::format("the stored roll-ups of a report do not decode: {}", std::string(why.message())));
}

StoredRollup ReadRollup(JsonFields& fields) {
  StoredRollup rollup{.id = static_cast<uint32_t>(fields.Uint("id", 1, UINT32_MAX))};
  for (const Json& key : fields.Array("keys")) {
    const auto number = UintFromJson(key);
    if (!number || *number >= kMaxSegmentKeys) {
      fields.Fail("keys", "must be numbers of segment keys");
      break;
    }
    rollup.keys.push_back(static_cast<uint32_t>(*number));
  }
  rollup.step_ms = fields.Uint("step_ms", 1, kMaxTimeMs);
  return rollup;
}

absl::Status CheckStep(const ReportInfo& info, uint64_t step_ms) {
  const ReportSettings& settings = info.settings;
  const uint64_t period_ms = settings.period_s * 1000;
  if (step_ms == 0 || step_ms % settings.resolution_ms != 0 || period_ms % step_ms != 0) {
    return absl::InvalidArgumentError(
        fmt::format("rollups: a step must be a multiple of the report's resolution of {} that divides its "
                    "period of {}; {} is not",
                    StepText(settings.resolution_ms), StepText(period_ms), StepText(step_ms)));
  }
  if (period_ms / step_ms > kMaxRollupSteps) {
    return absl::InvalidArgumentError(
        fmt::format("rollups: a step of {} makes {} steps of a period of {}, "
                    "the limit is {}",
                    StepText(step_ms), period_ms / step_ms, StepText(period_ms), kMaxRollupSteps));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> KeysOf(const ReportInfo& info, const Rollup& rollup) {
  std::vector<uint32_t> keys;
  for (const std::string& name : rollup.keys) {
    const auto number = info.KeyNumber(name);
    if (!number) {
      return absl::InvalidArgumentError(
          fmt::format("rollups: report '{}' has no segment key '{}'", info.name, name));
    }
    keys.push_back(*number);
  }
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) {
    return absl::InvalidArgumentError("rollups: a roll-up names a segment key twice");
  }
  return keys;
}

}  // namespace

std::string RollupsToText(const StoredRollups& stored) {
  Json list = Json::array();
  for (const StoredRollup& rollup : stored.rollups) {
    list.push_back({{"id", rollup.id}, {"keys", rollup.keys}, {"step_ms", rollup.step_ms}});
  }
  return TextOf(Json{{"next", stored.next}, {"rollups", std::move(list)}});
}

absl::StatusOr<StoredRollups> RollupsFromText(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return Damaged(json.status());
  JsonFields fields(*json, "");
  StoredRollups stored{.next = static_cast<uint32_t>(fields.Uint("next", 1, UINT32_MAX))};
  for (const Json& one : fields.Array("rollups")) {
    JsonFields inner(one, "rollups.");
    stored.rollups.push_back(ReadRollup(inner));
    fields.Fail(inner.Finish());
  }
  if (auto status = fields.Finish(); !status.ok()) return Damaged(status);
  return stored;
}

absl::StatusOr<StoredRollups> ChooseRollups(const ReportInfo& info, const StoredRollups& known,
                                            const std::vector<Rollup>& wanted) {
  if (wanted.size() > kMaxRollups) {
    return absl::InvalidArgumentError(
        fmt::format("rollups: {} roll-ups, the limit is {}", wanted.size(), kMaxRollups));
  }
  StoredRollups chosen{.next = known.next};
  for (const Rollup& rollup : wanted) {
    KV_RETURN_IF_ERROR(CheckStep(info, rollup.step_ms));
    KV_ASSIGN_OR_RETURN(std::vector<uint32_t> keys, KeysOf(info, rollup));
    const auto same = [&](const StoredRollup& other) {
      return other.keys == keys && other.step_ms == rollup.step_ms;
    };
    if (std::any_of(chosen.rollups.begin(), chosen.rollups.end(), same)) {
      return absl::InvalidArgumentError("rollups: two roll-ups have the same keys and the same step");
    }
    const auto before = std::find_if(known.rollups.begin(), known.rollups.end(), same);
    const uint32_t id = before == known.rollups.end() ? chosen.next++ : before->id;
    chosen.rollups.push_back({id, std::move(keys), rollup.step_ms});
  }
  std::sort(chosen.rollups.begin(), chosen.rollups.end(),
            [](const StoredRollup& a, const StoredRollup& b) { return a.id < b.id; });
  return chosen;
}

std::vector<Rollup> NamedRollups(const ReportInfo& info, const StoredRollups& stored) {
  std::vector<Rollup> rollups;
  for (const StoredRollup& one : stored.rollups) {
    Rollup rollup{.step_ms = one.step_ms, .id = one.id};
    for (const uint32_t key : one.keys) {
      if (key < info.keys.size()) rollup.keys.push_back(info.keys[key].name);
    }
    if (rollup.keys.size() == one.keys.size()) rollups.push_back(std::move(rollup));
  }
  return rollups;
}

}  // namespace kvstore::reports
