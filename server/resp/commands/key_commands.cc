#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/rows.h"

/// Commands on keys of all kinds: what a key stands for follows from what its dataset holds.
namespace kvstore::server::resp {
namespace {

/// So many entries of a list are listed and removed together; a list that is longer is left to a worker.
constexpr uint32_t kRemovedTogether = 64;

absl::StatusOr<bool> HasEntries(Router& router, std::string_view dataset, uint64_t from) {
  const auto page = router.ListMapping(dataset, from, {.limit = 1});
  if (!page.ok()) return page.status();
  return !page->entries.empty();
}

absl::StatusOr<bool> HasObject(Router& router, std::string_view dataset, uint64_t id) {
  const auto object = router.GetObject(dataset, id, {});
  if (object.ok()) return true;
  // The dataset is known to be there.
  if (absl::IsNotFound(object.status())) return false;
  return object.status();
}

// ---- EXISTS ----

absl::StatusOr<bool> IsThere(StoreCall& call, std::string_view text) {
  Router& router = call.router;
  const auto spec = router.GetDataset(DatasetOf(text));
  if (!spec.ok()) return spec.status();
  if (spec->shape == Shape::kRows) {
    const auto key = ParseKey(text);
    if (!key.ok()) return key.status();
    return HasCells(router, key->dataset, key->row, key->column, call.here);
  }
  const auto key = ParseIdKey(text);
  if (!key.ok()) return key.status();
  return spec->shape == Shape::kObjects ? HasObject(router, key->dataset, key->id)
                                        : HasEntries(router, key->dataset, key->id);
}

absl::Status Exists(StoreCall& call, Arguments arguments, Encoder& out) {
  const Arguments keys = arguments.subspan(1);
  if (auto status = CheckCount(keys.size(), "keys"); !status.ok()) return status;
  if (auto status = CheckKeys(call, keys, 1, Right::kRead); !status.ok()) return status;
  for (; call.next < keys.size(); ++call.next) {
    if (auto status = CheckCall(); !status.ok()) return status;
    const auto there = IsThere(call, keys[call.next]);
    if (!there.ok()) return there.status();
    if (*there) ++call.count;
  }
  out.Integer(static_cast<int64_t>(call.count));
  return absl::OkStatus();
}

// ---- DEL ----

absl::StatusOr<bool> DeleteKeyOfRows(StoreCall& call, std::string_view text) {
  const auto key = ParseKey(text);
  if (!key.ok()) return key.status();
  auto there = HasCells(call.router, key->dataset, key->row, key->column, call.here);
  if (!there.ok() || !*there) return there;
  DeleteOptions what;
  if (key->column) what.columns.emplace().push_back(*key->column);
  if (auto status = call.router.DeleteRow(key->dataset, key->row, what); !status.ok()) return status;
  return true;
}

/// Removes all entries of an ID, one after the other.
absl::StatusOr<bool> DeleteEntries(StoreCall& call, std::string_view dataset, uint64_t from) {
  bool any = false;
  for (;;) {
    const auto page = call.router.ListMapping(dataset, from, {.limit = kRemovedTogether});
    if (!page.ok()) return page.status();
    if (call.here && !page->marker.empty()) return TooLongHereError();
    for (const MappingEntry& entry : page->entries) {
      const auto removed = call.router.RemoveMapping(dataset, from, entry.to);
      if (!removed.ok()) return removed.status();
      any = any || *removed;
    }
    if (page->marker.empty()) return any;
  }
}

absl::StatusOr<bool> DeleteKey(StoreCall& call, std::string_view text) {
  const auto spec = call.router.GetDataset(DatasetOf(text));
  if (!spec.ok()) return spec.status();
  if (spec->shape == Shape::kRows) return DeleteKeyOfRows(call, text);
  const auto key = ParseIdKey(text);
  if (!key.ok()) return key.status();
  return spec->shape == Shape::kObjects ? HideObject(call.router, key->dataset, key->id)
                                        : DeleteEntries(call, key->dataset, key->id);
}

absl::Status Delete(StoreCall& call, Arguments arguments, Encoder& out) {
  const Arguments keys = arguments.subspan(1);
  if (auto status = CheckCount(keys.size(), "keys"); !status.ok()) return status;
  if (auto status = CheckKeys(call, keys, 1, Right::kWrite); !status.ok()) return status;
  for (; call.next < keys.size(); ++call.next) {
    const auto deleted = DeleteKey(call, keys[call.next]);
    if (!deleted.ok()) return deleted.status();
    if (*deleted) ++call.count;
  }
  out.Integer(static_cast<int64_t>(call.count));
  return absl::OkStatus();
}

// ---- TYPE ----

absl::StatusOr<std::string_view> TypeOfKey(StoreCall& call, const Key& key) {
  if (!key.column) return TypeOfRow(call.router, key.dataset, key.row, call.here);
  const auto there = HasCells(call.router, key.dataset, key.row, key.column, call.here);
  if (!there.ok()) return there.status();
  return std::string_view(*there ? "stream" : "none");
}

absl::Status Type(StoreCall& call, Arguments arguments, Encoder& out) {
  const auto spec = call.router.GetDataset(DatasetOf(arguments[1]));
  if (!spec.ok()) return spec.status();
  if (spec->shape == Shape::kRows) {
    const auto key = ParseKey(arguments[1]);
    if (!key.ok()) return key.status();
    const auto type = TypeOfKey(call, *key);
    if (!type.ok()) return type.status();
    out.Simple(*type);
    return absl::OkStatus();
  }
  const auto there = IsThere(call, arguments[1]);
  if (!there.ok()) return there.status();
  const std::string_view type = spec->shape == Shape::kObjects ? "ReJSON-RL" : "zset";
  out.Simple(*there ? type : "none");
  return absl::OkStatus();
}

/// Returns the line of a command on any number of keys.
constexpr Command OnKeys(std::string_view name, StoreCommand carry_out, Operation operation,
                         std::string_view summary) {
  return {.name = name,
          .arity = -2,
          .handler = carry_out,
          .operation = operation,
          .dataset = DatasetIn::kKey,
          .shape = std::nullopt,
          .keys = {1, -1, 1},
          .group = "generic",
          .words = "key [key ...]",
          .summary = summary};
}

}  // namespace

std::span<const Command> KeyCommands() {
  static constexpr std::array kCommands = {
      OnKeys("del", {.carry_out = &Delete, .brief = true}, Operation::kDeleteRow,
             "Deletes rows, columns and lists, and hides objects; returns how many there were"),
      OnKeys("exists", {.carry_out = &Exists, .brief = true}, Operation::kGetRow,
             "Returns how many of the keys there are"),
      OnKey("type", 2, StoreCommand{.carry_out = &Type, .brief = true}, Operation::kGetRow, std::nullopt,
            "generic", "key", "Returns string, hash, stream, zset, ReJSON-RL or none"),
      OnKeys("unlink", {.carry_out = &Delete, .brief = true}, Operation::kDeleteRow, "The same as DEL"),
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
