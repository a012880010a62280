#include "operate/alarms.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "json/json_text.h"

namespace kvstore::operate {
namespace {

/// The same for findings that are the same.
std::string KeyOf(const std::string& source, const Finding& finding, Alarms::Same same) {
  std::string key = source + "\n" + finding.subject + "\n";
  if (same == Alarms::Same::kSubject) return key;
  bool in_number = false;
  for (const char c : finding.text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) key += c;
    if (digit && !in_number) key += '#';
    in_number = digit;
  }
  return key;
}

absl::StatusOr<std::string> ReadText(ZooKeeper& zookeeper, const std::string& root) {
  const auto node = zookeeper.Get(root + "/operate/alarms", /*watch=*/false);
  if (absl::IsNotFound(node.status())) return std::string("[]");
  if (!node.ok()) return node.status();
  return node->data;
}

std::vector<Alarms::Alarm> DecodeAlarms(const std::string& text) {
  std::vector<Alarms::Alarm> alarms;
  const Json list = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return alarms;
  for (const Json& one : list) {
    const Event event = EventFromJson(one);
    const bool has_source = one.is_object() && one.contains("source") && one["source"].is_string();
    const bool by_subject = one.is_object() && one.contains("by_subject") && one["by_subject"] == true;
    alarms.push_back({.finding = {event.subject, event.text, event.page},
                      .source = has_source ? one["source"].get<std::string>() : "",
                      .same = by_subject ? Alarms::Same::kSubject : Alarms::Same::kText,
                      .since_ms = event.at_ms,
                      .told = true});
  }
  return alarms;
}

}  // namespace

void Alarms::Set(const std::string& source, const std::vector<Finding>& findings,
                 std::chrono::milliseconds settle, Same same) {
  const uint64_t now_ms = WallClockMs();
  std::set<std::string> found;
  for (const Finding& finding : findings) {
    const std::string key = KeyOf(source, finding, same);
    found.insert(key);
    Alarm& alarm =
        alarms_.try_emplace(key, Alarm{.source = source, .same = same, .since_ms = now_ms}).first->second;
    alarm.finding = finding;
    if (alarm.told || now_ms - alarm.since_ms < static_cast<uint64_t>(settle.count())) continue;
    alarm.told = true;
    tell_({.kind = "alarm", .subject = finding.subject, .text = finding.text, .page = finding.page});
  }
  for (auto one = alarms_.begin(); one != alarms_.end();) {
    const Alarm& alarm = one->second;
    if (alarm.source != source || found.contains(one->first)) {
      ++one;
      continue;
    }
    if (alarm.told) tell_({.kind = "over", .subject = alarm.finding.subject, .text = alarm.finding.text});
    one = alarms_.erase(one);
  }
}

std::vector<Alarms::Alarm> Alarms::Told() const {
  std::vector<Alarm> told;
  for (const auto& [key, alarm] : alarms_) {
    if (alarm.told) told.push_back(alarm);
  }
  return told;
}

absl::Status Alarms::Publish(ZooKeeper& zookeeper, const std::string& root, const ZooKeeperStep& condition) {
  Json list = Json::array();
  for (const Alarm& alarm : Told()) {
    if (list.size() == kMost) break;
    Json one = ToJson(Event{.kind = "alarm",
                            .subject = alarm.finding.subject,
                            .text = alarm.finding.text,
                            .page = alarm.finding.page,
                            .at_ms = alarm.since_ms});
    one["source"] = alarm.source;
    if (alarm.same == Same::kSubject) one["by_subject"] = true;
    list.push_back(std::move(one));
  }
  std::string text = TextOf(list);
  if (text == published_) return absl::OkStatus();
  const std::string path = root + "/operate/alarms";
  const auto set = [&] {
    return zookeeper.Change({{.kind = ZooKeeperStep::Kind::kSet, .path = path, .data = text}, condition});
  };
  absl::Status status = set();
  if (absl::IsNotFound(status)) {
    status = zookeeper.Create(path, "[]", /*open=*/true);
    if (status.ok() || absl::IsAlreadyExists(status)) status = set();
  }
  if (status.ok()) published_ = std::move(text);
  return status;
}

absl::Status Alarms::Load(ZooKeeper& zookeeper, const std::string& root,
                          const std::set<std::string>& sources) {
  const auto alarms = Read(zookeeper, root);
  if (!alarms.ok()) return alarms.status();
  alarms_.clear();
  for (const Alarm& alarm : *alarms) {
    if (sources.contains(alarm.source))
      alarms_.emplace(KeyOf(alarm.source, alarm.finding, alarm.same), alarm);
  }
  published_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Alarms::Alarm>> Alarms::Read(ZooKeeper& zookeeper, const std::string& root) {
  const auto text = ReadText(zookeeper, root);
  if (!text.ok()) return text.status();
  return DecodeAlarms(*text);
}

}  // namespace kvstore::operate
