#include "migration/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "json/bytes_json.h"
#include "json/json_fields.h"
#include "json/json_text.h"
#include "kvstore_api/limits.h"
#include "router/read_taps.h"

namespace kvstore::migration {
namespace {

/// The format of records that earlier versions can read.
constexpr uint64_t kFormat = 1;
/// The format of records with a field that earlier versions do not know, and would take for damage.
constexpr uint64_t kNewestFormat = 2;
/// How many events a record keeps.
constexpr size_t kMaxEvents = 200;

constexpr std::array<std::pair<Phase, std::string_view>, 11> kPhases = {{
    {Phase::kCreated, "created"},
    {Phase::kPrepare, "prepare"},
    {Phase::kBackfill, "backfill"},
    {Phase::kVerify, "verify"},
    {Phase::kReady, "ready"},
    {Phase::kCutover, "cutover"},
    {Phase::kReversible, "reversible"},
    {Phase::kFinishing, "finishing"},
    {Phase::kAborting, "aborting"},
    {Phase::kFinished, "finished"},
    {Phase::kAborted, "aborted"},
}};

constexpr std::array<std::pair<Wanted, std::string_view>, 9> kWanted = {{
    {Wanted::kNothing, "nothing"},
    {Wanted::kVerify, "verify"},
    {Wanted::kCutover, "cutover"},
    {Wanted::kReverse, "reverse"},
    {Wanted::kRollback, "rollback"},
    {Wanted::kFinish, "finish"},
    {Wanted::kCancel, "cancel"},
    {Wanted::kResolve, "resolve"},
    {Wanted::kAbandon, "abandon"},
}};

/// A field of the record that is a plain number.
struct Number {
  const char* name;
  uint64_t Record::*place;
};
constexpr std::array<Number, 12> kNumbers = {{
    {"incarnation", &Record::incarnation},
    {"epoch", &Record::epoch},
    {"freeze_ms", &Record::freeze_ms},
    {"estimated_units", &Record::estimated_units},
    {"drained_units", &Record::drained_units},
    {"backfill_ms", &Record::backfill_ms},
    {"passes", &Record::passes},
    {"compared_units", &Record::compared_units},
    {"differences", &Record::differences},
    {"repaired", &Record::repaired},
    {"write_pause_ms", &Record::write_pause_ms},
    {"read_pause_ms", &Record::read_pause_ms},
}};

Json ToJson(const Limits& limits) {
  return {{"units_per_s", limits.units_per_s},
          {"bytes_per_s", limits.bytes_per_s},
          {"share", limits.share},
          {"max_read_us", limits.max_read_us}};
}

Json ToJson(const ShadowState& shadow) {
  return {{"share", shadow.share},     {"compared", shadow.compared},
          {"dropped", shadow.dropped}, {"differences", shadow.differences},
          {"open", shadow.open},       {"examples", shadow.examples}};
}

Json ToJson(const std::vector<Event>& events) {
  Json list = Json::array();
  for (const Event& event : events) {
    list.push_back({{"at_ms", event.at_ms}, {"who", event.who}, {"what", event.what}});
  }
  return list;
}

template <typename Value, size_t kCount>
void ReadName(JsonFields& fields, const char* field,
              const std::array<std::pair<Value, std::string_view>, kCount>& names, Value& value) {
  const std::string read = fields.String(field);
  for (const auto& [one, name] : names) {
    if (name != read) continue;
    value = one;
    return;
  }
  fields.Fail(field, "has a value that this version does not know");
}

Part PartFrom(const Json& json, const std::string& path, JsonFields& whole) {
  JsonFields fields(json, path);
  Part part{
      .range = {.start = fields.Bytes("start"), .end = fields.Bytes("end"), .shard = fields.String("shard")},
      .next = fields.Bytes("next"),
      .done = fields.OptionalBool("done").value_or(false),
      .units = fields.Uint("units", 0, UINT64_MAX),
      .bytes = fields.Uint("bytes", 0, UINT64_MAX)};
  whole.FailAll(fields);
  return part;
}

}  // namespace

std::string_view Name(Phase phase) {
  for (const auto& [one, name] : kPhases) {
    if (one == phase) return name;
  }
  return "unknown";
}

std::string_view Name(Wanted wanted) {
  for (const auto& [one, name] : kWanted) {
    if (one == wanted) return name;
  }
  return "unknown";
}

uint64_t Record::PartsDone() const {
  return static_cast<uint64_t>(
      std::count_if(parts.begin(), parts.end(), [](const Part& part) { return part.done; }));
}

uint64_t Record::UnitsDone() const {
  uint64_t units = 0;
  for (const Part& part : parts) units += part.units;
  return units;
}

uint64_t Record::BytesDone() const {
  uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.bytes;
  return bytes;
}

void Record::AddEvent(std::string who, std::string what, uint64_t now_ms) {
  if (events.size() >= kMaxEvents) events.erase(events.begin());
  events.push_back({now_ms, std::move(who), std::move(what)});
}

// ---- stored ----

std::string Encode(const Record& record) {
  Json parts = Json::array();
  for (const Part& part : record.parts) {
    parts.push_back({{"start", BytesToJson(part.range.start)},
                     {"end", BytesToJson(part.range.end)},
                     {"shard", part.range.shard},
                     {"next", BytesToJson(part.next)},
                     {"done", part.done},
                     {"units", part.units},
                     {"bytes", part.bytes}});
  }
  const bool shadows = record.shadow.share > 0 || record.shadow.differences > 0;
  const bool newest = record.complete || shadows;
  Json json = {{"format", newest ? kNewestFormat : kFormat},
               {"dataset", record.dataset},
               {"source", record.source},
               {"source_engine", record.source_engine},
               {"target", record.target},
               {"target_engine", record.target_engine},
               {"phase", Name(record.phase)},
               {"on_target", record.on_target},
               {"wanted", Name(record.wanted)},
               {"automatic", record.automatic},
               {"paused", record.paused},
               {"owner", record.owner},
               {"limits", ToJson(record.limits)},
               {"threads", record.threads},
               {"parts", std::move(parts)},
               {"crossed", record.crossed},
               {"source_extent", record.source_extent},
               {"target_extent", record.target_extent},
               {"released", record.released},
               {"doubt", record.doubt},
               {"trusted", record.trusted},
               {"keep", record.keep},
               {"gone", record.gone},
               {"verified", record.verified},
               {"problem", record.problem},
               {"events", ToJson(record.events)}};
  for (const Number& number : kNumbers) {
    json[number.name] = std::to_string(record.*number.place);
  }
  if (record.complete) json["complete"] = true;
  if (shadows) json["shadow"] = ToJson(record.shadow);
  return TextOf(json, 1) + "\n";
}

absl::StatusOr<Record> Decode(std::string_view text) {
  const auto damaged = [](const absl::Status& why) {
    return absl::DataLossError("the migration's record: " + std::string(why.message()));
  };
  const auto json = ParseJson(text);
  if (!json.ok()) return damaged(json.status());
  JsonFields fields(*json, "");
  Record record;
  const uint64_t format = fields.Uint("format", 1, UINT32_MAX);
  if (format > kNewestFormat) {
    return damaged(absl::DataLossError(fmt::format(
        "format {} was written by a newer version; this one reads format {}", format, kNewestFormat)));
  }
  record.dataset = fields.String("dataset");
  record.source = fields.String("source");
  record.source_engine = fields.String("source_engine");
  record.target = fields.String("target");
  record.target_engine = fields.String("target_engine");
  ReadName(fields, "phase", kPhases, record.phase);
  ReadName(fields, "wanted", kWanted, record.wanted);
  record.on_target = fields.OptionalBool("on_target").value_or(false);
  record.automatic = fields.OptionalBool("automatic").value_or(false);
  record.paused = fields.OptionalBool("paused").value_or(false);
  // Records that earlier versions wrote lack these fields.
  record.crossed = fields.OptionalBool("crossed").value_or(record.on_target);
  record.complete = fields.OptionalBool("complete").value_or(false);
  record.source_extent = fields.OptionalString("source_extent").value_or("");
  record.target_extent = fields.OptionalString("target_extent").value_or("");
  record.released = fields.OptionalBool("released").value_or(false);
  record.doubt = fields.OptionalString("doubt").value_or("");
  record.trusted = fields.OptionalString("trusted").value_or("");
  record.keep = fields.OptionalString("keep").value_or("");
  record.gone = fields.OptionalString("gone").value_or("");
  record.owner = fields.String("owner");
  record.threads = static_cast<uint32_t>(fields.Uint("threads", 1, 64));
  record.verified = fields.OptionalString("verified").value_or("");
  record.problem = fields.String("problem");
  for (const Number& number : kNumbers) {
    record.*number.place = fields.Uint(number.name, 0, UINT64_MAX);
  }
  if (const Json* limits = fields.Require("limits")) {
    JsonFields inner(*limits, "limits.");
    record.limits = {.units_per_s = inner.Uint("units_per_s", 0, UINT64_MAX),
                     .bytes_per_s = inner.Uint("bytes_per_s", 0, UINT64_MAX),
                     .share = static_cast<uint32_t>(inner.Uint("share", 1, 100)),
                     .max_read_us = inner.OptionalUint("max_read_us", 0, UINT64_MAX).value_or(0)};
    fields.FailAll(inner);
  }
  // Only records whose migration has shadow reads have this.
  if (const Json* shadow = fields.Find("shadow")) {
    JsonFields inner(*shadow, "shadow.");
    record.shadow = {.share = static_cast<uint32_t>(inner.Uint("share", 0, ReadTaps::kAll)),
                     .compared = inner.Uint("compared", 0, UINT64_MAX),
                     .dropped = inner.Uint("dropped", 0, UINT64_MAX),
                     .differences = inner.Uint("differences", 0, UINT64_MAX),
                     .open = inner.Uint("open", 0, UINT64_MAX),
                     .examples = inner.OptionalBytesList("examples").value_or(std::vector<std::string>())};
    fields.FailAll(inner);
  }
  const auto& parts = fields.Array("parts");
  for (size_t i = 0; i < parts.size(); ++i) {
    record.parts.push_back(PartFrom(parts[i], fmt::format("parts[{}].", i), fields));
  }
  const auto& events = fields.Array("events");
  for (size_t i = 0; i < events.size(); ++i) {
    JsonFields inner(events[i], fmt::format("events[{}].", i));
    record.events.push_back({inner.Uint("at_ms", 0, UINT64_MAX), inner.String("who"), inner.String("what")});
    fields.FailAll(inner);
  }
  if (auto status = fields.Finish(); !status.ok()) return damaged(status);
  return record;
}

// ---- shown ----

namespace {

/// The commands that are possible in the record's phase, the safest first.
std::vector<std::string_view> Allowed(const Record& record) {
  if (record.phase == Phase::kFinished || record.phase == Phase::kAborted) return {};
  std::vector<std::string_view> commands;
  const bool works = record.phase == Phase::kBackfill || record.phase == Phase::kVerify ||
                     record.phase == Phase::kReady || record.phase == Phase::kReversible;
  if (!record.doubt.empty()) return {"resolve", "verify"};
  switch (record.phase) {
    case Phase::kCreated:
      commands = {"start", "cancel"};
      break;
    case Phase::kPrepare:
    case Phase::kBackfill:
      commands = {"watch", "cancel"};
      break;
    case Phase::kVerify:
      commands = {"watch"};
      if (!record.on_target) commands.push_back("cancel");
      break;
    case Phase::kReady:
      commands = {"cutover", "verify", "cancel"};
      if (record.shadow.open > 0) commands = {"verify", "cancel"};
      break;
    case Phase::kReversible:
      commands = {"verify", "reverse", "rollback", "finish"};
      break;
    default:
      commands = {"watch"};
  }
  if (works) {
    commands.push_back("throttle");
    commands.push_back(record.paused ? "resume" : "pause");
  } else if (record.phase != Phase::kCreated) {
    commands.push_back("resume");
  }
  if (record.phase != Phase::kCreated && !record.problem.empty()) commands.push_back("abandon");
  return commands;
}

}  // namespace

Json StatusJson(const Record& record, const std::optional<DirtyLag>& lag) {
  const uint64_t units = record.UnitsDone();
  const bool copies = record.phase == Phase::kBackfill;
  const double rate = record.backfill_ms == 0
                          ? 0
                          : static_cast<double>(units) * 1000 / static_cast<double>(record.backfill_ms);
  const uint64_t left = record.estimated_units > units ? record.estimated_units - units : 0;
  Json next = Json::array();
  for (const std::string_view command : Allowed(record)) next.push_back(command);
  Json json = {
      {"dataset", record.dataset},
      {"phase", Name(record.phase)},
      {"source", record.source},
      {"target", record.target},
      {"truth", record.on_target ? record.target : record.source},
      {"wanted", Name(record.wanted)},
      {"paused", record.paused},
      {"automatic", record.automatic},
      {"partitions", record.parts.size()},
      {"partitions_done", record.PartsDone()},
      {"units_done", units},
      {"units_left", copies ? left : 0},
      {"bytes_done", record.BytesDone()},
      {"units_per_s", static_cast<uint64_t>(rate)},
      {"seconds_left", copies && rate > 0 ? static_cast<uint64_t>(static_cast<double>(left) / rate) : 0},
      {"drained_units", record.drained_units},
      {"verify_passes", record.passes},
      {"compared_units", record.compared_units},
      {"differences", record.differences},
      {"repaired", record.repaired},
      {"write_pause_ms", record.write_pause_ms},
      {"read_pause_ms", record.read_pause_ms},
      {"limits", ToJson(record.limits)},
      {"problem", record.problem},
      {"doubt", record.doubt},
      {"next", std::move(next)},
      {"events", ToJson(record.events)}};
  if (record.shadow.share > 0 || record.shadow.differences > 0) json["shadow"] = ToJson(record.shadow);
  if (lag) json["lag"] = {{"units", lag->entries}, {"ms", lag->oldest_ms}};
  return json;
}

namespace {

/// Whether a command may replace a request that is not done yet. If any could, two operators would both be
/// told OK, and one of the requests would be lost.
bool MayReplace(std::string_view command, Wanted pending) {
  if (pending == Wanted::kNothing || command == Name(pending)) return true;
  const bool is_request =
      std::any_of(kWanted.begin(), kWanted.end(), [&](const auto& one) { return one.second == command; });
  // Commands that are no requests, such as throttle, replace nothing. A pending comparison can be replaced,
  // because it changes nothing; and `abandon` replaces everything, because nothing else can be done without
  // the side that is gone.
  if (!is_request || pending == Wanted::kVerify || command == "abandon") return true;
  if (command == "cancel") return pending == Wanted::kCutover || pending == Wanted::kResolve;
  return command == "rollback" && pending == Wanted::kReverse;
}

}  // namespace

absl::Status CheckCommand(const Record& record, std::string_view command) {
  if (!MayReplace(command, record.wanted)) {
    return absl::FailedPreconditionError(
        fmt::format("{0}: {1} was asked for before, and is not done yet; wait for it (kv migrate watch {2}), "
                    "then ask again",
                    command, Name(record.wanted), record.dataset));
  }
  if (command == "cutover" && record.phase == Phase::kReady && record.shadow.open > 0) {
    return absl::FailedPreconditionError(
        fmt::format("cutover: {0} units that were read differ on the two sides although nobody was writing "
                    "to them; for example "
                    "{1}. Find out why; kv migrate verify {2} then compares everything and copies what "
                    "differs, after which a "
                    "cutover is possible. kv migrate cutover {2} --accept-differences cuts over all the same",
                    record.shadow.open, fmt::join(record.shadow.examples, ", "), record.dataset));
  }
  std::string allowed;
  for (const std::string_view one : Allowed(record)) {
    if (one == command) return absl::OkStatus();
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", one);
  }
  // The operator may know that a side is gone before the worker has noticed.
  if (command == "abandon" && record.phase != Phase::kCreated && !allowed.empty()) return absl::OkStatus();
  // A migration that is not paused may have lost its worker, which `resume` replaces.
  if (command == "resume" && !allowed.empty() && record.phase != Phase::kCreated) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{}: not while the migration of '{}' is in phase {}; commands that are possible now: {}",
                  command, record.dataset, Name(record.phase), allowed.empty() ? "none" : allowed));
}

}  // namespace kvstore::migration
