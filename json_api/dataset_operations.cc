#include "json/bytes_json.h"
#include "json/dataset_json.h"
#include "json_api/answers.h"
#include "json_api/operations.h"
#include "kvstore_api/limits.h"

namespace kvstore::json_api {
namespace {

/// A listing without `wanted` has about so many partitions.
constexpr uint64_t kPartitions = 16;
constexpr uint64_t kMaxPartitions = 65'536;

/// Returns a partition with the fields by which a scan takes it.
Json PartitionToJson(const Partition& partition) {
  Json json = {{"name", partition.name}};
  if (!partition.range.start.empty()) json["start_row"] = BytesToJson(partition.range.start);
  if (!partition.range.end.empty()) json["end_row"] = BytesToJson(partition.range.end);
  if (!partition.range.shard.empty()) json["partition"] = partition.range.shard;
  if (partition.ids != IdRange()) {
    json["start_id"] = std::to_string(partition.ids.start);
    json["end_id"] = std::to_string(partition.ids.end);
  }
  return json;
}

}  // namespace

Answer CreateDataset(JsonFields& fields, KVStore& store) {
  const DatasetSpec spec = DatasetFromFields(fields, /*stored_fields=*/false);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.CreateDataset(spec));
}

JsonForm CreateDatasetForm() {
  return {.summary = "Creates an empty dataset",
          .request = {RequiredField("dataset", "Text"), OptionalField("shape", "Shape"),
                      OptionalField("backend", "Text"), OptionalField("type", "Uint"),
                      OptionalField("max_versions", "Uint"), OptionalField("ttl_ms", "Uint"),
                      OptionalField("durability", "Durability"), OptionalField("keep_changes_ms", "Uint")}};
}

Answer AlterDataset(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const DatasetChange change = DatasetChangeFromFields(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.AlterDataset(dataset, change));
}

JsonForm AlterDatasetForm() {
  return {.summary = "Changes settings of a dataset, at least one",
          .request = {RequiredField("dataset", "Text"), OptionalField("max_versions", "Uint"),
                      OptionalField("ttl_ms", "Uint"), OptionalField("durability", "Durability"),
                      OptionalField("keep_changes_ms", "Uint")}};
}

Answer DropDataset(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.DropDataset(dataset, {}));
}

JsonForm DropDatasetForm() {
  return {.summary = "Removes a dataset with all of its data", .request = {RequiredField("dataset", "Text")}};
}

Answer GetDataset(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto spec = store.GetDataset(dataset);
  if (!spec.ok()) return spec.status();
  return DatasetToJson(*spec);
}

JsonForm GetDatasetForm() {
  return {.summary = "Returns the settings of a dataset",
          .get = "/v1/datasets/{dataset}",
          .request = {RequiredField("dataset", "Text")},
          .answer = {RequiredField("dataset", "Text"), RequiredField("shape", "Shape"),
                     RequiredField("backend", "Text"), RequiredField("max_versions", "Uint"),
                     RequiredField("ttl_ms", "Uint"), RequiredField("durability", "Durability"),
                     RequiredField("compression", "Text"), RequiredField("blob_threshold", "Uint"),
                     OptionalField("type", "Uint"), OptionalField("engine", "Text"),
                     OptionalField("table", "Text"), OptionalField("keep_changes_ms", "Uint")}};
}

Answer ListDatasets(JsonFields& fields, KVStore& store) {
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto specs = store.ListDatasets();
  if (!specs.ok()) return specs.status();
  Json list = Json::array();
  for (const DatasetSpec& spec : *specs) list.push_back(DatasetToJson(spec));
  return Json{{"datasets", std::move(list)}};
}

JsonForm ListDatasetsForm() {
  return {.summary = "Returns all datasets that the caller may read, by name",
          .get = "/v1/datasets",
          .answer = {RequiredField("datasets", "Datasets")}};
}

Answer GetStats(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto stats = store.GetStats(dataset);
  if (!stats.ok()) return stats.status();
  return Json{{"approximate_bytes", stats->approximate_bytes},
              {"approximate_entries", stats->approximate_entries}};
}

JsonForm GetStatsForm() {
  return {
      .summary = "Returns rough sizes of a dataset, without reading data",
      .get = "/v1/datasets/{dataset}/stats",
      .request = {RequiredField("dataset", "Text")},
      .answer = {RequiredField("approximate_bytes", "Uint"), RequiredField("approximate_entries", "Uint")}};
}

Answer ListPartitions(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t wanted = fields.OptionalUint("wanted", 1, kMaxPartitions).value_or(kPartitions);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto partitions = store.ListPartitions(dataset, wanted);
  if (!partitions.ok()) return partitions.status();
  Json list = Json::array();
  for (const Partition& partition : *partitions) list.push_back(PartitionToJson(partition));
  return Json{{"partitions", std::move(list)}};
}

JsonForm ListPartitionsForm() {
  return {.summary = "Returns about `wanted` parts of a dataset for parallel scans, which take their fields",
          .get = "/v1/datasets/{dataset}/partitions",
          .request = {RequiredField("dataset", "Text"), OptionalField("wanted", "Uint")},
          .answer = {RequiredField("partitions", "Partitions")}};
}

Answer ReadChanges(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const std::string from = fields.OptionalString("from").value_or(std::string(kChangesFromBegin));
  ChangeOptions options;
  options.limit =
      static_cast<uint32_t>(fields.OptionalUint("limit", 1, kMaxListEntries).value_or(options.limit));
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto page = store.ReadChanges(dataset, from, options);
  if (!page.ok()) return page.status();
  Json changes = Json::array();
  for (const Change& change : page->changes) {
    auto json = ChangeToJson(change);
    if (!json.ok()) return json.status();
    changes.push_back(*std::move(json));
  }
  Json answer = {{"changes", std::move(changes)}, {"token", page->token}};
  if (page->complete_until_ms != 0) answer["complete_until"] = page->complete_until_ms;
  return answer;
}

JsonForm ReadChangesForm() {
  return {
      .summary = "Returns changes of a dataset that keeps them, after a token; none if there are none yet",
      .get = "/v1/datasets/{dataset}/changes",
      .request = {RequiredField("dataset", "Text"), OptionalField("from", "Text"),
                  OptionalField("limit", "Uint")},
      .answer = {RequiredField("changes", "Changes"), RequiredField("token", "Text"),
                 OptionalField("complete_until", "Uint")}};
}

Answer SetConsumer(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const std::string name = fields.String("name");
  const std::string token = fields.String("token");
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.SetConsumer(dataset, name, token));
}

JsonForm SetConsumerForm() {
  return {
      .summary =
          "Notes how far a follower of a dataset's changes has come: what is after the token is kept for it",
      .request = {RequiredField("dataset", "Text"), RequiredField("name", "Text"),
                  RequiredField("token", "Text")}};
}

Answer ListConsumers(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto consumers = store.ListConsumers(dataset);
  if (!consumers.ok()) return consumers.status();
  Json list = Json::array();
  for (const ChangeConsumer& consumer : *consumers) list.push_back(ConsumerToJson(consumer));
  return Json{{"consumers", std::move(list)}};
}

JsonForm ListConsumersForm() {
  return {
      .summary = "Returns the followers of a dataset's changes that have a name, and how far they have come",
      .get = "/v1/datasets/{dataset}/consumers",
      .request = {RequiredField("dataset", "Text")},
      .answer = {RequiredField("consumers", "Consumers")}};
}

Answer DropConsumer(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const std::string name = fields.String("name");
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.DropConsumer(dataset, name));
}

JsonForm DropConsumerForm() {
  return {.summary = "Forgets such a follower, so that nothing is kept for it",
          .request = {RequiredField("dataset", "Text"), RequiredField("name", "Text")}};
}

Answer Compact(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.Compact(dataset, nullptr).status());
}

JsonForm CompactForm() {
  return {.summary = "Removes expired and surplus cells from disk now",
          .request = {RequiredField("dataset", "Text")}};
}

}  // namespace kvstore::json_api
