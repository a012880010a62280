#include "operate/commands.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operate/alarms.h"
#include "operate/journal.h"
#include "operate/membership.h"
#include "operate/pair_records.h"
#include "shardops/fleet_command.h"

namespace kvstore::operate {
namespace {

Json ToJson(const Meeting& meeting) {
  Json members = Json::array();
  for (const Member& member : meeting.others) {
    members.push_back(
        {{"who", member.who}, {"leads", member.who == meeting.leader}, {"said_ms", member.said_ms}});
  }
  return members;
}

Json ToJson(const std::string& name, const absl::StatusOr<PairRecord>& record) {
  if (!record.ok()) return {{"pair", name}, {"problem", std::string(record.status().message())}};
  Json pair = {{"pair", name}, {"on", record->on}, {"by", record->by}, {"since_ms", record->since_ms}};
  if (const auto& last = record->promotion) {
    pair["promoted"] = {{"from", last->from.ToString()},
                        {"to", last->to.ToString()},
                        {"begun_ms", last->begun_ms},
                        {"done", last->done}};
  }
  return pair;
}

Json ToJson(const Alarms::Alarm& alarm) {
  return {{"subject", alarm.finding.subject},
          {"text", alarm.finding.text},
          {"page", alarm.finding.page},
          {"source", alarm.source},
          {"since_ms", alarm.since_ms}};
}

absl::StatusOr<Json> RunOperateStatus(shardops::FleetCommand& command) {
  const auto session = command.OpenMaps();
  if (!session.ok()) return session.status();
  shardops::FleetOperator& fleet = ***session;
  const auto meeting = ReadMeeting(fleet.zookeeper, fleet.root);
  if (!meeting.ok()) return meeting.status();
  const auto records = PairRecords(fleet.zookeeper, fleet.root).LoadAll();
  if (!records.ok()) return records.status();
  const auto told = Alarms::Read(fleet.zookeeper, fleet.root);
  if (!told.ok()) return told.status();
  Json pairs = Json::array();
  for (const auto& [name, record] : *records) pairs.push_back(ToJson(name, record));
  Json alarms = Json::array();
  for (const Alarms::Alarm& alarm : *told) alarms.push_back(ToJson(alarm));
  return Json{{"members", ToJson(*meeting)}, {"pairs", std::move(pairs)}, {"alarms", std::move(alarms)}};
}

absl::StatusOr<Json> RunOperateJournal(shardops::FleetCommand& command) {
  const auto session = command.OpenMaps();
  if (!session.ok()) return session.status();
  shardops::FleetOperator& fleet = ***session;
  const auto events = Journal::Read(fleet.zookeeper, fleet.root);
  if (!events.ok()) return events.status();
  Json list = Json::array();
  for (const Event& event : *events) list.push_back(ToJson(event));
  return Json{{"events", std::move(list)}};
}

}  // namespace

const shardops::CommandTable& Commands() {
  static const shardops::CommandTable commands = {{"operate_status", &RunOperateStatus},
                                                  {"operate_journal", &RunOperateJournal}};
  return commands;
}

}  // namespace kvstore::operate
