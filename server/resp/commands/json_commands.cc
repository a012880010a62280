#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "backend_api/batch_bytes.h"
#include "backend_api/scan_budget.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/answer_memory.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/rows.h"
#include "server/resp/commands/words.h"

/// Objects as JSON documents, as a whole: the only path is the root.
namespace kvstore::server::resp {
namespace {

/// The two ways to name the root: answers to the first one are arrays of what the path matches.
constexpr std::string_view kRoot = "$";
constexpr std::string_view kOldRoot = ".";

absl::Status CheckPath(std::string_view path) {
  if (path == kRoot || path == kOldRoot) return absl::OkStatus();
  return absl::UnimplementedError("the only path is $, the whole document; change parts of it by JSON.MERGE");
}

/// Returns whether an error means that a dataset has no such object, and not that there is no such dataset.
bool HasNoObject(StoreCall& call, std::string_view dataset, const absl::Status& error) {
  return absl::IsNotFound(error) && call.router.Locate(dataset).has_value();
}

absl::Status NoNewObjectError() {
  return absl::FailedPreconditionError(
      "there is no such object; a new one gets its ID from the store: KV.CREATE dataset json");
}

void AppendDocument(std::string_view path, std::string_view document, Encoder& out) {
  if (path == kRoot) return out.Bulk(fmt::format("[{}]", document));
  out.Bulk(document);
}

absl::Status JsonGet(StoreCall& call, Arguments arguments, Encoder& out) {
  if (arguments.size() > 3) {
    return absl::UnimplementedError(
        "INDENT, NEWLINE, SPACE and several paths are not supported: JSON.GET dataset:id [$]");
  }
  const std::string_view path = arguments.size() > 2 ? arguments[2] : kOldRoot;
  if (auto status = CheckPath(path); !status.ok()) return status;
  const auto key = ParseIdKey(arguments[1]);
  if (!key.ok()) return key.status();
  const auto object = call.router.GetObject(key->dataset, key->id, {});
  if (HasNoObject(call, key->dataset, object.status())) {
    out.Null();
    return absl::OkStatus();
  }
  if (!object.ok()) return object.status();
  AppendDocument(path, object->data, out);
  return absl::OkStatus();
}

absl::Status JsonMultiGet(StoreCall& call, Arguments arguments, Encoder& out) {
  const std::string_view path = arguments.back();
  if (auto status = CheckPath(path); !status.ok()) return status;
  const Arguments keys = arguments.subspan(1, arguments.size() - 2);
  if (auto status = CheckCount(keys.size(), "keys"); !status.ok()) return status;
  if (auto status = CheckKeys(call, keys, 1, Right::kRead); !status.ok()) return status;
  std::map<std::string_view, std::vector<size_t>> places;  // by dataset
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto key = ParseIdKey(keys[i]);
    if (!key.ok()) return key.status();
    places[key->dataset].push_back(i);
    ids.push_back(key->id);
  }
  std::vector<std::optional<std::string>> documents(keys.size());
  const SmallBatches pieces(kReadBytes);
  size_t bytes = 0;
  for (const auto& [dataset, its] : places) {
    std::vector<uint64_t> its_ids;
    for (const size_t place : its) its_ids.push_back(ids[place]);
    size_t read_bytes = 0;
    for (size_t done = 0, together = kFirstTogether; done < its.size();) {
      const size_t before = done;
      const size_t end = std::min(its.size(), before + together);
      auto objects = call.router.GetObjects(dataset, std::span(its_ids).subspan(before, end - before), {});
      if (!objects.ok()) return CheckShape(call.router, dataset, Shape::kObjects, objects.status());
      for (; done < end; ++done) {
        absl::StatusOr<Object>& object = (*objects)[done - before];
        if (absl::IsNotFound(object.status())) continue;
        if (IsPaused(object.status()) && done > before) break;
        if (IsPaused(object.status())) return TooLargeAnswerError();
        if (!object.ok()) return object.status();
        read_bytes += object->data.size();
        bytes += object->data.size();
        if (bytes > kMaxAnswerBytes) return TooLargeAnswerError();
        if (auto status = call.memory->Hold(2 * object->data.size()); !status.ok()) return status;
        documents[its[done]] = std::move(object->data);
      }
      together = NextTogether(done, read_bytes);
    }
  }
  out.Array(documents.size());
  for (const auto& document : documents) {
    if (document) {
      AppendDocument(path, *document, out);
    } else {
      out.Null();
    }
  }
  return absl::OkStatus();
}

absl::Status JsonSet(StoreCall& call, Arguments arguments, Encoder& out) {
  if (auto status = CheckPath(arguments[2]); !status.ok()) return status;
  const auto key = ParseIdKey(arguments[1]);
  if (!key.ok()) return key.status();
  const bool if_there = arguments.size() == 5 && Is(arguments[4], "xx");
  const bool if_absent = arguments.size() == 5 && Is(arguments[4], "nx");
  if (arguments.size() > 4 && !if_there && !if_absent) return SyntaxError();
  if (if_absent) {
    const auto object = call.router.GetObject(key->dataset, key->id, {});
    if (HasNoObject(call, key->dataset, object.status())) return NoNewObjectError();
    if (!object.ok()) return object.status();
    out.Null();
    return absl::OkStatus();
  }
  const auto object = call.router.UpdateObject(
      key->dataset, key->id,
      [&](std::string_view) -> absl::StatusOr<std::string> { return std::string(arguments[3]); }, {});
  if (HasNoObject(call, key->dataset, object.status())) {
    if (!if_there) return NoNewObjectError();
    out.Null();
    return absl::OkStatus();
  }
  if (!object.ok()) return object.status();
  out.Ok();
  return absl::OkStatus();
}

absl::Status JsonMerge(StoreCall& call, Arguments arguments, Encoder& out) {
  if (auto status = CheckPath(arguments[2]); !status.ok()) return status;
  const auto key = ParseIdKey(arguments[1]);
  if (!key.ok()) return key.status();
  const auto object = call.router.PatchObject(key->dataset, key->id, arguments[3], {});
  if (HasNoObject(call, key->dataset, object.status())) return NoNewObjectError();
  if (!object.ok()) return object.status();
  out.Ok();
  return absl::OkStatus();
}

absl::Status JsonDelete(StoreCall& call, Arguments arguments, Encoder& out) {
  if (arguments.size() > 3) return SyntaxError();
  if (arguments.size() == 3) {
    if (auto status = CheckPath(arguments[2]); !status.ok()) return status;
  }
  const auto key = ParseIdKey(arguments[1]);
  if (!key.ok()) return key.status();
  const auto hidden = HideObject(call.router, key->dataset, key->id);
  if (!hidden.ok()) return hidden.status();
  out.Integer(*hidden ? 1 : 0);
  return absl::OkStatus();
}

absl::Status Create(StoreCall& call, Arguments arguments, Encoder& out) {
  CreateOptions options;
  if (arguments.size() == 5 && Is(arguments[3], "near")) {
    options.near = ParseUnsigned(arguments[4]);
    if (!options.near) return absl::InvalidArgumentError("near: is no ID");
  } else if (arguments.size() != 3) {
    return SyntaxError();
  }
  const auto id = call.router.CreateObject(arguments[1], arguments[2], options);
  if (!id.ok()) return id.status();
  // As text: many clients keep numbers in doubles, which would round it.
  out.Bulk(std::to_string(*id));
  return absl::OkStatus();
}

}  // namespace

std::span<const Command> JsonCommands() {
  static constexpr std::array kCommands = {
      OnKey("json.del", -2, StoreCommand{.carry_out = &JsonDelete, .brief = true}, Operation::kDeleteObject,
            Shape::kObjects, "json", "dataset:id [$]", "Hides an object from reads; it is not removed"),
      OnKey("json.get", -2, StoreCommand{.carry_out = &JsonGet, .brief = true}, Operation::kGetObject,
            Shape::kObjects, "json", "dataset:id [$]", "Returns an object's document"),
      OnKey("json.merge", 4, StoreCommand{.carry_out = &JsonMerge, .brief = true}, Operation::kUpdateObject,
            Shape::kObjects, "json", "dataset:id $ patch", "Changes an object by a merge patch (RFC 7396)"),
      Command{.name = "json.mget",
              .arity = -3,
              .handler = StoreCommand{.carry_out = &JsonMultiGet, .brief = true},
              .operation = Operation::kGetObjects,
              .dataset = DatasetIn::kKey,
              .shape = Shape::kObjects,
              .keys = {1, -2, 1},
              .group = "json",
              .words = "dataset:id [dataset:id ...] $",
              .summary = "Returns the documents of several objects"},
      OnKey("json.set", -4, StoreCommand{.carry_out = &JsonSet, .brief = true}, Operation::kUpdateObject,
            Shape::kObjects, "json", "dataset:id $ json [XX|NX]", "Replaces the document of an object"),
      Command{.name = "kv.create",
              .arity = -3,
              .handler = StoreCommand{.carry_out = &Create, .brief = true},
              .operation = Operation::kCreateObject,
              .dataset = DatasetIn::kArgument,
              .shape = Shape::kObjects,
              .keys = {},
              .group = "kvstore",
              .words = "dataset json [NEAR id]",
              .summary = "Stores a new object, and returns its ID"},
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
