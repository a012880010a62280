#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/call/migration_command.h"
#include "server/call/served_parts.h"
#include "server/call/shard_command.h"
#include "server/http/json_operations.h"

namespace kvstore::server {
namespace {

using JsonAnswer = absl::StatusOr<Json>;

std::string_view NameOf(Right right) { return kRightNames[static_cast<size_t>(right)]; }

/// Returns the rights of a caller as the list of callers has them.
Json RightsOf(const Principal* principal) {
  if (principal == nullptr) return {{"*", NameOf(Right::kAdmin)}};
  Json rights = {{"*", NameOf(principal->everywhere)}};
  for (const auto& [dataset, right] : principal->rights) rights[dataset] = NameOf(right);
  for (const auto& [dataset, reports] : principal->report_rights) {
    for (const auto& [report, right] : reports) rights[dataset + "/" + report] = NameOf(right);
  }
  return rights;
}

/// Returns what the server has beside the data.
Json PartsOf(const Core& core, const Principal* principal) {
  Json parts = Json::array();
  if (core.parts.migrations != nullptr) parts.push_back("migrations");
  if (core.parts.backups != nullptr) parts.push_back("backups");
  if (core.parts.shard_maps != nullptr) parts.push_back("shard_maps");
  if (core.parts.shard_operations != nullptr && principal != nullptr) parts.push_back("shard_operations");
  return parts;
}

JsonAnswer GetServer(const ServedRequest& served) {
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const Core& core = served.core;
  const auto clock = RequestMemory::Clock::now() - core.epoch;
  Json answer = {{"version", KV_VERSION},
                 {"instance", InstanceText(core)},
                 {"clock_us", std::chrono::duration_cast<std::chrono::microseconds>(clock).count()}};
  // Strangers are not told what there is.
  if (served.principal == nullptr && !core.access->open_to_all()) return answer;
  answer["caller"] = served.principal == nullptr ? "" : served.principal->name;
  answer["rights"] = RightsOf(served.principal);
  answer["parts"] = PartsOf(core, served.principal);
  answer["reports_dataset"] = core.options.reports.dataset;
  return answer;
}

/// Adds the figures of a step to the list of each name.
void AddSeries(const CallHistory::Series& series, uint64_t begin_ms, Json& all) {
  for (const auto& [name, figures] : series)
    all[name].push_back({begin_ms, figures.calls, figures.errors, figures.p50_us, figures.p99_us});
}

JsonAnswer GetHistory(const ServedRequest& served) {
  const uint64_t after = served.fields.OptionalUint("after_ms", 0, UINT64_MAX).value_or(0);
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  Json times = Json::array();
  Json operations = Json::object();
  Json datasets = Json::object();
  for (const CallHistory::Step& step : served.core.history.After(after)) {
    times.push_back(step.begin_ms);
    AddSeries(step.operations, step.begin_ms, operations);
    AddSeries(step.datasets, step.begin_ms, datasets);
  }
  return Json{{"step_ms", CallHistory::kStep.count()},
              {"steps", std::move(times)},
              {"operations", std::move(operations)},
              {"datasets", std::move(datasets)}};
}

JsonAnswer GetMetrics(const ServedRequest& served) {
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  return Json{{"text", served.core.metrics.Text()}};
}

/// A command and its options, which only migrations know, are one object.
JsonAnswer Migrate(const ServedRequest& served) {
  const std::string dataset = served.fields.String("dataset");
  served.fields.String("command");
  if (auto status = served.fields.FirstMistake(); !status.ok()) return status;
  Json command = served.request;
  command.erase("op");
  command.erase("id");
  auto status = CommandMigration(served.core, served.principal, dataset, std::move(command));
  if (!status.ok()) return status.status();
  return Json{{"status", *std::move(status)}};
}

/// The most lines of an operation that its client is told: the first ones.
constexpr size_t kMostLines = 10'000;

/// Returns an error that also says what an operation had told before it failed.
absl::Status WithLines(const absl::Status& error, const Json& lines) {
  if (lines.empty()) return error;
  std::string text(error.message());
  text += "; before that:";
  for (const Json& line : lines) text += "\n" + line.get<std::string>();
  absl::Status whole(error.code(), text);
  error.ForEachPayload(
      [&whole](absl::string_view type, const absl::Cord& payload) { whole.SetPayload(type, payload); });
  return whole;
}

JsonAnswer OperateShards(const ServedRequest& served) {
  served.fields.String("command");
  if (auto status = served.fields.FirstMistake(); !status.ok()) return status;
  Json command = served.request;
  // With others on a stream it has an "op", and its "id" is that of the line; else a command may have one.
  if (command.erase("op") > 0) command.erase("id");
  command["who"] = WhoAsks(*served.principal, served.peer);
  Json lines = Json::array();
  const ShardEvents events{.line =
                               [&lines](const std::string& line) {
                                 if (lines.size() < kMostLines) lines.push_back(line);
                               },
                           .progress = [&served](std::string_view, uint64_t done,
                                                 uint64_t total) { return served.progress(done, total); }};
  auto answer = served.core.parts.shard_operations->Operate(command, events);
  if (!answer.ok()) return WithLines(answer.status(), lines);
  return Json{{"answer", *std::move(answer)}, {"lines", std::move(lines)}};
}

/// The most backups that are listed at once.
constexpr uint64_t kMostBackups = 1'000;

Json BackupToJson(const Backups::Made& made) {
  return {{"backup", made.id},
          {"url", made.url},
          {"began_ms", made.began_ms},
          {"finished_ms", made.finished_ms},
          {"bytes", made.bytes},
          {"files", made.files},
          {"units", made.units},
          {"sent_bytes", made.sent_bytes},
          {"sent_objects", made.sent_objects}};
}

JsonAnswer CreateBackup(const ServedRequest& served) {
  const std::string dataset = served.fields.OptionalString("dataset").value_or("");
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const auto backups = BackupsOf(served.core);
  if (!backups.ok()) return backups.status();
  const auto made = (*backups)->CreateBackup(dataset, served.progress);
  if (!made.ok()) return made.status();
  return BackupToJson(*made);
}

JsonAnswer ListBackups(const ServedRequest& served) {
  const std::string dataset = served.fields.OptionalString("dataset").value_or("");
  const uint64_t limit = served.fields.OptionalUint("limit", 1, kMostBackups).value_or(100);
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const auto backups = BackupsOf(served.core);
  if (!backups.ok()) return backups.status();
  const auto listed = (*backups)->ListBackups(dataset, limit);
  if (!listed.ok()) return listed.status();
  Json list = Json::array();
  for (const Backups::Made& made : listed->backups) list.push_back(BackupToJson(made));
  return Json{{"url", listed->url},
              {"backups", std::move(list)},
              {"unreadable", listed->unreadable},
              {"more", listed->more}};
}

JsonAnswer VerifyBackup(const ServedRequest& served) {
  const std::string dataset = served.fields.OptionalString("dataset").value_or("");
  const std::string id = served.fields.OptionalString("backup").value_or("");
  const bool deep = served.fields.OptionalBool("deep").value_or(false);
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const auto backups = BackupsOf(served.core);
  if (!backups.ok()) return backups.status();
  const auto verified = (*backups)->VerifyBackup(dataset, id, deep, served.progress);
  if (!verified.ok()) return verified.status();
  return Json{{"backup", verified->id},
              {"objects", verified->objects},
              {"read_bytes", verified->read_bytes},
              {"problems", verified->problems}};
}

/// Reads the space whose map is asked for.
ShardSpace ReadSpace(JsonFields& fields) {
  const std::string space = fields.OptionalString("space").value_or("id");
  if (space != "id" && space != "mod") fields.Fail("space", "must be \"id\" or \"mod\"");
  return space == "mod" ? ShardSpace::kMod : ShardSpace::kId;
}

JsonAnswer GetShardMap(const ServedRequest& served) {
  const ShardSpace space = ReadSpace(served.fields);
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const auto maps = ShardMapsOf(served.core);
  if (!maps.ok()) return maps.status();
  auto map = (*maps)->GetShardMap(space);
  if (!map.ok()) return map.status();
  return Json{{"map", *std::move(map)}};
}

JsonAnswer ListShardMaps(const ServedRequest& served) {
  const ShardSpace space = ReadSpace(served.fields);
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const auto maps = ShardMapsOf(served.core);
  if (!maps.ok()) return maps.status();
  auto history = (*maps)->ListShardMaps(space);
  if (!history.ok()) return history.status();
  Json list = Json::array();
  for (ShardMaps::Kept& kept : *history) {
    list.push_back({{"name", std::move(kept.name)},
                    {"at_ms", kept.at_ms},
                    {"who", std::move(kept.who)},
                    {"map", kept.map ? Json(*std::move(kept.map)) : Json()}});
  }
  return Json{{"maps", std::move(list)}};
}

}  // namespace

std::string InstanceText(const Core& core) {
  std::string text;
  for (const char byte : core.instance) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

std::vector<JsonOperation> ServerOperations() {
  return {
      {.name = "get_server",
       .operation = Operation::kGetServer,
       .form = {.summary =
                    "Returns the server's version and instance, for anybody; and to callers who are known "
                    "their names and rights, and what the server has beside the data",
                .get = "/v1/server",
                .answer = {RequiredField("version", "Text"), RequiredField("instance", "Text"),
                           RequiredField("clock_us", "Uint"), OptionalField("caller", "Text"),
                           OptionalField("rights", "Rights"), OptionalField("parts", "Texts"),
                           OptionalField("reports_dataset", "Text")}},
       .serve = &GetServer},
      {.name = "get_metrics",
       .operation = Operation::kGetMetrics,
       .form = {.summary = "Returns the server's figures in Prometheus' text format",
                .get = "/v1/metrics",
                .answer = {RequiredField("text", "Text")}},
       .serve = &GetMetrics},
      {.name = "get_history",
       .operation = Operation::kGetMetrics,
       .form =
           {.summary =
                "Returns the calls of the last hour in steps of ten seconds, by operation and by dataset: "
                "[begin of the step in ms, calls, errors, p50 in us, p99 in us]",
            .get = "/v1/history",
            .request = {OptionalField("after_ms", "Uint")},
            .answer = {RequiredField("step_ms", "Uint"), RequiredField("steps", "Uints"),
                       RequiredField("operations", "CallSeries"), RequiredField("datasets", "CallSeries")}},
       .serve = &GetHistory},
      {.name = "migrate",
       .operation = Operation::kMigrate,
       .form = {.summary =
                    "Gives a command to the migration of a dataset, with the options of the command line, "
                    "and returns "
                    "its status",
                .request = {RequiredField("dataset", "Text"), RequiredField("command", "Text")},
                .takes_more_fields = true,
                .answer = {RequiredField("status", "Document")}},
       .serve = &Migrate},
      {.name = "create_backup",
       .operation = Operation::kCreateBackup,
       .form = {.summary =
                    "Makes a backup of the embedded store, or of one dataset, and returns when it is made",
                .request = {OptionalField("dataset", "Text")},
                .answer = {RequiredField("backup", "Text"), RequiredField("url", "Text"),
                           RequiredField("began_ms", "Uint"), RequiredField("finished_ms", "Uint"),
                           RequiredField("bytes", "Uint"), RequiredField("files", "Uint"),
                           RequiredField("units", "Uint"), RequiredField("sent_bytes", "Uint"),
                           RequiredField("sent_objects", "Uint")}},
       .serve = &CreateBackup},
      {.name = "list_backups",
       .operation = Operation::kListBackups,
       .form = {.summary = "Returns the newest backups of the embedded store, or of one dataset",
                .get = "/v1/backups",
                .request = {OptionalField("dataset", "Text"), OptionalField("limit", "Uint")},
                .answer = {RequiredField("url", "Text"), RequiredField("backups", "Backups"),
                           RequiredField("unreadable", "Texts"), RequiredField("more", "Flag")}},
       .serve = &ListBackups},
      {.name = "verify_backup",
       .operation = Operation::kVerifyBackup,
       .form = {.summary =
                    "Looks whether a backup is whole, the newest if none is named; \"deep\" reads all of it",
                .request = {OptionalField("dataset", "Text"), OptionalField("backup", "Text"),
                            OptionalField("deep", "Flag")},
                .answer = {RequiredField("backup", "Text"), RequiredField("objects", "Uint"),
                           RequiredField("read_bytes", "Uint"), RequiredField("problems", "Texts")}},
       .serve = &VerifyBackup},
      {.name = "operate_shards",
       .operation = Operation::kOperateShards,
       .form = {.summary =
                    "Carries out a command on the shards and their hosts, with the options that shards.proto "
                    "names, and returns its answer when it has ended",
                .request = {RequiredField("command", "Text")},
                .takes_more_fields = true,
                .answer = {RequiredField("answer", "Document"), RequiredField("lines", "Texts")}},
       .serve = &OperateShards},
      {.name = "get_shard_map",
       .operation = Operation::kGetShardMap,
       .form = {.summary = "Returns the shard map in force, as the text that people edit",
                .get = "/v1/shard_map",
                .request = {OptionalField("space", "ShardSpace")},
                .answer = {RequiredField("map", "Text")}},
       .serve = &GetShardMap},
      {.name = "list_shard_maps",
       .operation = Operation::kListShardMaps,
       .form = {.summary = "Returns the last shard maps that were in force, the newest first",
                .get = "/v1/shard_maps",
                .request = {OptionalField("space", "ShardSpace")},
                .answer = {RequiredField("maps", "ShardMaps")}},
       .serve = &ListShardMaps},
  };
}

}  // namespace kvstore::server
