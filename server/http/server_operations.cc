#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/call/migration_command.h"
#include "server/call/served_parts.h"
#include "server/http/json_operations.h"

namespace kvstore::server {
namespace {

using JsonAnswer = absl::StatusOr<Json>;

JsonAnswer GetServer(const ServedRequest& served) {
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const auto clock = RequestMemory::Clock::now() - served.core.epoch;
  return Json{{"version", KV_VERSION},
              {"instance", InstanceText(served.core)},
              {"clock_us", std::chrono::duration_cast<std::chrono::microseconds>(clock).count()}};
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

JsonAnswer CreateBackup(const ServedRequest& served) {
  const std::string dataset = served.fields.OptionalString("dataset").value_or("");
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const auto backups = BackupsOf(served.core);
  if (!backups.ok()) return backups.status();
  const auto made = (*backups)->CreateBackup(dataset, served.progress);
  if (!made.ok()) return made.status();
  return Json{{"backup", made->id},
              {"url", made->url},
              {"began_ms", made->began_ms},
              {"finished_ms", made->finished_ms},
              {"bytes", made->bytes},
              {"files", made->files},
              {"units", made->units},
              {"sent_bytes", made->sent_bytes},
              {"sent_objects", made->sent_objects}};
}

/// Reads whether the map of mod shards is asked for.
bool ReadIsMod(JsonFields& fields) {
  const std::string space = fields.OptionalString("space").value_or("id");
  if (space != "id" && space != "mod") fields.Fail("space", "must be \"id\" or \"mod\"");
  return space == "mod";
}

JsonAnswer GetShardMap(const ServedRequest& served) {
  const bool mod = ReadIsMod(served.fields);
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const auto maps = ShardMapsOf(served.core);
  if (!maps.ok()) return maps.status();
  auto map = (*maps)->GetShardMap(mod);
  if (!map.ok()) return map.status();
  return Json{{"map", *std::move(map)}};
}

JsonAnswer ListShardMaps(const ServedRequest& served) {
  const bool mod = ReadIsMod(served.fields);
  if (auto status = served.fields.Finish(); !status.ok()) return status;
  const auto maps = ShardMapsOf(served.core);
  if (!maps.ok()) return maps.status();
  auto history = (*maps)->ListShardMaps(mod);
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
       .form = {.summary = "Returns the server's version and instance; for anybody",
                .get = "/v1/server",
                .answer = {RequiredField("version", "Text"), RequiredField("instance", "Text"),
                           RequiredField("clock_us", "Uint")}},
       .serve = &GetServer},
      {.name = "get_metrics",
       .operation = Operation::kGetMetrics,
       .form = {.summary = "Returns the server's figures in Prometheus' text format",
                .get = "/v1/metrics",
                .answer = {RequiredField("text", "Text")}},
       .serve = &GetMetrics},
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
      {.name = "get_shard_map",
       .operation = Operation::kGetShardMap,
       .form = {.summary = "Returns the shard map in force, as it is stored",
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
