#include "operate/purge_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "json/json_fields.h"
#include "json/json_text.h"

namespace kvstore::operate {
namespace {

constexpr uint64_t kHourMs = 3'600'000;
constexpr uint64_t kDayMs = 24 * kHourMs;
/// One purge may fail, or take most of a day, before a person is told.
constexpr uint64_t kBacklogMs = 2 * kDayMs + kHourMs;

std::string PathOf(const std::string& root) { return root + "/operate/purge"; }

std::string Encode(const PurgeRecord& record) {
  return TextOf(Json{{"begun_ms", record.begun_ms}, {"complete_ms", record.complete_ms}});
}

absl::StatusOr<PurgeRecord> Decode(const std::string& path, const std::string& text) {
  const auto unreadable = [&](const absl::Status& why) {
    return absl::DataLossError(fmt::format(
        "{} in ZooKeeper cannot be read: {}. A newer version wrote it, or somebody by hand: delete "
        "that node; the next purge is in its hour then",
        path, std::string(why.message())));
  };
  const auto json = ParseJson(text);
  if (!json.ok()) return unreadable(json.status());
  JsonFields fields(*json, "");
  const PurgeRecord record{.begun_ms = fields.Uint("begun_ms", 0, UINT64_MAX),
                           .complete_ms = fields.Uint("complete_ms", 0, UINT64_MAX)};
  if (auto status = fields.FirstMistake(); !status.ok()) return unreadable(status);
  return record;
}

}  // namespace

absl::StatusOr<PurgeRecord> LoadPurge(ZooKeeper& zookeeper, const std::string& root, uint64_t now_ms) {
  const std::string path = PathOf(root);
  const PurgeRecord first{.begun_ms = now_ms, .complete_ms = now_ms};
  // Another process may make it, or delete it, at the same moment.
  constexpr int kTries = 3;
  absl::Status made;
  for (int i = 0; i < kTries; ++i) {
    const auto node = zookeeper.Get(path, /*watch=*/false);
    if (node.ok()) return Decode(path, node->data);
    if (!absl::IsNotFound(node.status())) return node.status();
    made = zookeeper.Create(path, Encode(first), /*open=*/true);
    if (made.ok()) return first;
    if (!absl::IsAlreadyExists(made)) return made;
  }
  return made;
}

absl::Status SavePurge(ZooKeeper& zookeeper, const std::string& root, const PurgeRecord& record) {
  return zookeeper.Set(PathOf(root), Encode(record), /*version=*/-1);
}

bool IsPurgeDue(const PurgeRecord& record, uint64_t hour, uint64_t now_ms) {
  const uint64_t due_ms = now_ms / kDayMs * kDayMs + hour * kHourMs;
  return now_ms >= due_ms && record.begun_ms < due_ms;
}

std::optional<Finding> FindBacklog(const PurgeRecord& record, uint64_t now_ms) {
  const uint64_t age_ms = now_ms - std::min(now_ms, record.complete_ms);
  if (age_ms <= kBacklogMs) return std::nullopt;
  return Finding{
      .subject = "purge",
      .text = fmt::format("has not removed all expired cells for {} hours: kv operate journal says "
                          "why, or who led; kv purge DATASET does it by hand",
                          age_ms / kHourMs),
      .page = "runbook.md#alarms-of-kv-operate"};
}

}  // namespace kvstore::operate
