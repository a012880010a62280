#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "migration/diagnosis.h"

namespace kvstore::migration {
namespace {

Json SideJson(const SideFacts& side, bool unchanged_known, bool unchanged) {
  Json json = {{"backend", side.backend}, {"engine", side.engine}, {"answers", side.problem.ok()}};
  if (!side.problem.ok()) {
    json["problem"] = std::string(side.problem.message());
    return json;
  }
  Json partitions = Json::object();
  for (const auto& [state, count] : side.status.partitions) {
    partitions[std::string(kvstore::Name(state))] = count;
  }
  json["partitions"] = std::move(partitions);
  json["records_writes"] = side.status.capture;
  json["epoch"] = side.status.epoch;
  if (unchanged_known) json["restarted_or_replaced"] = !unchanged;
  if (side.lag) json["log"] = {{"units", side.lag->entries}, {"ms", side.lag->oldest_ms}};
  return json;
}

}  // namespace

Json ToJson(const RepairFacts& facts, const Diagnosis& diagnosis) {
  const Record& record = facts.record;
  const bool recorded = facts.record_problem.ok();
  const size_t bar = record.verified.find('|');
  const bool verified = recorded && bar != std::string::npos;
  Json steps = Json::array();
  for (const Diagnosis::Step& step : diagnosis.steps) {
    steps.push_back({{"step", Name(step.step)}, {"does", step.text}});
  }
  Json decisions = Json::array();
  for (const Diagnosis::Decision& decision : diagnosis.decisions) {
    decisions.push_back({{"why", decision.why}, {"command", decision.command}});
  }
  Json json = {{"dataset", facts.dataset},
               {"phase", recorded ? std::string(Name(record.phase))
                                  : (absl::IsNotFound(facts.record_problem) ? "none" : "unreadable")},
               {"truth", diagnosis.truth},
               {"worker", facts.runs_here        ? "here"
                          : facts.runs_elsewhere ? "elsewhere"
                                                 : "none"},
               {"owner", record.owner},
               {"epoch", record.epoch},
               {"findings", diagnosis.findings},
               {"notes", diagnosis.notes},
               {"steps", std::move(steps)},
               {"decisions", std::move(decisions)}};
  if (facts.entry_problem.ok()) {
    const CatalogEntry& entry = facts.entry;
    json["catalog"] = {{"backend", entry.spec.backend}, {"other_backend", entry.other_backend}};
    if (!entry.spec.engine.empty()) json["catalog"]["engine"] = entry.spec.engine;
    if (!entry.other_engine.empty()) json["catalog"]["other_engine"] = entry.other_engine;
  }
  if (recorded || !facts.source.backend.empty()) {
    json["source"] = SideJson(facts.source, verified, facts.source.boot == record.verified.substr(0, bar));
    json["target"] =
        SideJson(facts.target, verified, verified && facts.target.boot == record.verified.substr(bar + 1));
  }
  return json;
}

}  // namespace kvstore::migration
