#include "operate/pair_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "json/json_fields.h"
#include "json/json_text.h"

namespace kvstore::operate {
namespace {

Json Encode(const PairRecord& record) {
  Json json = {{"on", record.on}, {"by", record.by}, {"since_ms", record.since_ms}};
  if (record.promotion) {
    json["promotion"] = {{"from", record.promotion->from.ToString()},
                         {"to", record.promotion->to.ToString()},
                         {"begun_ms", record.promotion->begun_ms},
                         {"fenced_ms", record.promotion->fenced_ms},
                         {"done", record.promotion->done}};
  }
  return json;
}

Host ReadHost(JsonFields& fields, std::string_view name) {
  auto host = Host::Parse(fields.String(name));
  if (host.ok()) return *std::move(host);
  fields.Fail(name, std::string(host.status().message()));
  return {};
}

absl::StatusOr<PairRecord> Decode(const std::string& path, const ZooKeeperNode& node) {
  const auto unreadable = [&](const absl::Status& why) {
    return absl::DataLossError(fmt::format(
        "{} in ZooKeeper cannot be read: {}. A newer version wrote it, or somebody by hand: delete that "
        "node, then switch the pair on again (kv operate on)",
        path, std::string(why.message())));
  };
  const auto json = ParseJson(node.data);
  if (!json.ok()) return unreadable(json.status());
  JsonFields fields(*json, "");
  PairRecord record{.version = node.version};
  record.on = fields.OptionalBool("on").value_or(false);
  record.by = fields.OptionalString("by").value_or("");
  record.since_ms = fields.OptionalUint("since_ms", 0, UINT64_MAX).value_or(0);
  if (const Json* const promotion = fields.Find("promotion"); promotion != nullptr) {
    JsonFields inner(*promotion, "promotion.");
    record.promotion = {.from = ReadHost(inner, "from"),
                        .to = ReadHost(inner, "to"),
                        .begun_ms = inner.Uint("begun_ms", 0, UINT64_MAX),
                        .fenced_ms = inner.OptionalUint("fenced_ms", 0, UINT64_MAX).value_or(0),
                        .done = inner.OptionalBool("done").value_or(false)};
    fields.Fail(inner.FirstMistake());
  }
  if (auto status = fields.FirstMistake(); !status.ok()) return unreadable(status);
  return record;
}

}  // namespace

std::string PairRecords::NameOf(const shardops::Pair& pair) {
  const auto& [first, second] = std::minmax(pair.master, pair.slave);
  return first.ToString() + "," + second.ToString();
}

absl::StatusOr<PairRecord> PairRecords::Load(const shardops::Pair& pair) {
  const std::string path = folder_ + "/" + NameOf(pair);
  const auto node = zookeeper_.Get(path, /*watch=*/false);
  if (absl::IsNotFound(node.status())) return PairRecord();
  if (!node.ok()) return node.status();
  return Decode(path, *node);
}

absl::StatusOr<std::map<std::string, absl::StatusOr<PairRecord>>> PairRecords::LoadAll() {
  std::map<std::string, absl::StatusOr<PairRecord>> all;
  const auto names = zookeeper_.Children(folder_);
  if (absl::IsNotFound(names.status())) return all;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const std::string path = folder_ + "/" + name;
    const auto node = zookeeper_.Get(path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) continue;
    if (!node.ok()) return node.status();
    all.emplace(name, Decode(path, *node));
  }
  return all;
}

absl::Status PairRecords::Save(const shardops::Pair& pair, const PairRecord& record,
                               const std::optional<ZooKeeperStep>& condition) {
  using Kind = ZooKeeperStep::Kind;
  const std::string path = folder_ + "/" + NameOf(pair);
  if (record.version < 0) {
    for (const std::string& node : {folder_, path}) {
      absl::Status made = zookeeper_.Create(node, "{}", /*open=*/true);
      if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    }
  }
  std::vector<ZooKeeperStep> steps = {{.kind = Kind::kSet,
                                       .path = path,
                                       .data = TextOf(Encode(record)),
                                       .version = std::max(record.version, 0)}};
  if (condition) steps.push_back(*condition);
  return zookeeper_.Change(std::move(steps));
}

}  // namespace kvstore::operate
