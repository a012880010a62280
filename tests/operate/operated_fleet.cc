#include "tests/operate/operated_fleet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operate/switch.h"
#include "shardops/notes.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

using operate::Alarms;
using operate::Event;
using operate::Orchestrator;

OperatedFleet::OperatedFleet() : store_(pair_.OpenStore(dir_.path())) {
  EXPECT_OK(store_->CreateDataset({.name = "events"}));
}

OperatedFleet::~OperatedFleet() { StopAll(); }

void OperatedFleet::StopAll() {
  while (!processes_.empty()) Stop(*processes_.back().orchestrator);
}

void OperatedFleet::SwitchOn() { EXPECT_OK(operate::SwitchOn(pair_.fleet(), records_, pair_.hosts())); }

Orchestrator& OperatedFleet::Start(operate::OperateOptions options, bool dry_run) {
  options.look_ms = 100;
  const shardops::FleetOptions fleet{.zookeeper = {.servers = pair_.zookeeper().address()},
                                     .root = pair_.fleet().root,
                                     .has_operator = true,
                                     .access = pair_.fleet().access};
  Process process;
  process.orchestrator = std::make_unique<Orchestrator>(
      Orchestrator::Setup{.fleet = fleet,
                          .options = options,
                          .dry_run = dry_run,
                          .who = fmt::format("process {}", processes_.size())});
  process.thread = std::thread([&orchestrator = *process.orchestrator] { orchestrator.Run(); });
  processes_.push_back(std::move(process));
  return *processes_.back().orchestrator;
}

void OperatedFleet::Stop(Orchestrator& process) {
  const auto found = std::find_if(processes_.begin(), processes_.end(),
                                  [&](const Process& one) { return one.orchestrator.get() == &process; });
  found->orchestrator->Stop();
  found->thread.join();
  processes_.erase(found);
}

bool OperatedFleet::IsInspected() {
  const auto note = shardops::NoteOrEmpty(pair_.fleet(), pair_.Master());
  return note.contains("at_slave") && note["at_slave"].is_object() && note.value("semi_sync", false);
}

void OperatedFleet::StartTwo(const operate::OperateOptions& options, bool dry_run) {
  Start(options, dry_run);
  Start(options, dry_run);
  EXPECT_TRUE(Eventually([&] { return IsInspected(); }));
}

bool OperatedFleet::HasEvent(const std::string& kind, const std::string& words) {
  const auto events = operate::Journal::Read(pair_.fleet().zookeeper, pair_.fleet().root);
  return events.ok() && std::any_of(events->begin(), events->end(), [&](const Event& event) {
           return event.kind == kind && event.text.find(words) != std::string::npos;
         });
}

Event OperatedFleet::AwaitEvent(const std::string& kind, const std::string& words) {
  Event found;
  EXPECT_TRUE(Eventually([&] {
    const auto events = operate::Journal::Read(pair_.fleet().zookeeper, pair_.fleet().root);
    if (!events.ok()) return false;
    for (const Event& event : *events) {
      if (event.kind != kind || event.text.find(words) == std::string::npos) continue;
      found = event;
      return true;
    }
    return false;
  })) << "no event '"
      << kind << "' with: " << words;
  return found;
}

bool OperatedFleet::AwaitAlarm(const std::string& words) {
  return Eventually([&] {
    const auto alarms = Alarms::Read(pair_.fleet().zookeeper, pair_.fleet().root);
    return alarms.ok() && std::any_of(alarms->begin(), alarms->end(), [&](const Alarms::Alarm& alarm) {
             return alarm.finding.text.find(words) != std::string::npos;
           });
  });
}

bool OperatedFleet::AwaitMaster(const Host& host) {
  return Eventually([&] { return pair_.Master() == host; });
}

bool OperatedFleet::Put(int row) {
  const CellWrite cell{"c", "value", std::nullopt};
  return Eventually([&] {
    return store_->PutRow("events", fmt::format("row:{}", row), {&cell, 1}, {}).ok();
  });
}

bool OperatedFleet::Has(int row) {
  const auto found = store_->GetRow("events", fmt::format("row:{}", row), {});
  return found.ok() && !found->items.empty();
}

}  // namespace kvstore::testing
