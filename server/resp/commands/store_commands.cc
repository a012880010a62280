#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "backend_api/outcome.h"
#include "idgen/object_id.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/items.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/rows.h"
#include "server/resp/commands/words.h"

/// Commands for what the store can do and Redis has no command for: KV.GET, KV.PUT, KV.LIST, KV.DATASETS. The
/// arguments are the bytes themselves, without escapes.
namespace kvstore::server::resp {
namespace {

// ---- KV.GET ----

absl::Status Get(StoreCall& call, Arguments arguments, Encoder& out) {
  ReadOptions options{.max_bytes = kMaxWireBytes};
  PageOptions page;
  for (size_t i = 3; i < arguments.size();) {
    if (auto status = ReadPageOption(arguments, i, page); !status.ok()) return status;
  }
  options.columns = std::move(page.columns);
  options.versions = page.versions;
  options.time_range = page.range;
  if (page.limit) options.limit = *page.limit;
  options.marker = page.marker;
  const auto row = PageOf(call.router, arguments[1], arguments[2], std::move(options), call.here);
  if (!row.ok()) return row.status();
  out.Array(2);
  AppendItems(row->items, out);
  AppendMarker(row->marker, out);
  return absl::OkStatus();
}

// ---- KV.PUT ----

/// Reads "column timestamp|* value".
absl::StatusOr<CellWrite> ReadCell(Arguments words) {
  CellWrite cell{words[0], words[2], std::nullopt};
  if (words[1] == "*") return cell;
  cell.timestamp = ParseUnsigned(words[1]);
  if (!cell.timestamp) {
    return absl::InvalidArgumentError("timestamp: must be * or a whole number of milliseconds");
  }
  return cell;
}

absl::Status ReadPutOptions(Arguments words, WriteOptions& options) {
  for (size_t i = 0; i < words.size();) {
    const size_t left = words.size() - i - 1;
    if (Is(words[i], "ifabsent") && left >= 1 && !options.condition) {
      options.condition = Condition{.column = words[i + 1], .equals = std::nullopt};
      i += 2;
    } else if (Is(words[i], "ifequals") && left >= 2 && !options.condition) {
      options.condition = Condition{.column = words[i + 1], .equals = words[i + 2]};
      i += 3;
    } else if (Is(words[i], "sync")) {
      options.sync = true;
      ++i;
    } else {
      return SyntaxError();
    }
  }
  return absl::OkStatus();
}

absl::Status PlanStorePut(Arguments arguments, WritePlan& plan) {
  plan.dataset = arguments[1];
  plan.row = arguments[2];
  const auto count = ParseUnsigned(arguments[3]);
  const Arguments rest = arguments.subspan(4);
  if (!count || *count == 0 || *count > rest.size() / 3) {
    return absl::InvalidArgumentError(
        "KV.PUT dataset row CELLS column timestamp|* value ...: CELLS must say how many triples follow");
  }
  const size_t cells = static_cast<size_t>(*count);
  for (size_t i = 0; i < cells; ++i) {
    const auto cell = ReadCell(rest.subspan(3 * i, 3));
    if (!cell.ok()) return cell.status();
    plan.cells.push_back(*cell);
  }
  return ReadPutOptions(rest.subspan(3 * cells), plan.options);
}

void AnswerPut(const WritePlan&, const PutResult* put, Encoder& out) {
  if (put == nullptr) return out.Null();
  if (!put->timestamp) return out.Ok();
  out.Integer(static_cast<int64_t>(*put->timestamp));
}

// ---- KV.LIST ----

/// Returns the types of the objects that the caller may not read.
absl::StatusOr<std::set<uint32_t>> ForbiddenTypes(StoreCall& call) {
  std::set<uint32_t> forbidden;
  if (call.principal == nullptr) return forbidden;
  const auto specs = call.router.ListDatasets();
  if (!specs.ok()) return specs.status();
  for (const DatasetSpec& spec : *specs) {
    if (spec.shape == Shape::kObjects && !CheckRight(call.principal, spec.name, Right::kRead).ok()) {
      forbidden.insert(spec.type);
    }
  }
  return forbidden;
}

absl::StatusOr<MappingListOptions> ReadListOptions(Arguments words) {
  MappingListOptions options{.max_bytes = kMaxWireBytes};
  for (size_t i = 0; i < words.size();) {
    const bool has_value = i + 1 < words.size();
    if (Is(words[i], "rev")) {
      options.order = MappingListOptions::Order::kDescending;
      ++i;
    } else if (Is(words[i], "limit") && has_value) {
      const auto limit = ParseNumber<uint32_t>(words[i + 1]);
      if (!limit) return NotAnIntegerError();
      options.limit = *limit;
      i += 2;
    } else if (Is(words[i], "offset") && has_value) {
      const auto offset = ParseUnsigned(words[i + 1]);
      if (!offset) return NotAnIntegerError();
      options.offset = *offset;
      i += 2;
    } else if (Is(words[i], "marker") && has_value) {
      options.marker = words[i + 1];
      i += 2;
    } else {
      return SyntaxError();
    }
  }
  return options;
}

void AppendJoined(const JoinedObject& joined, bool is_forbidden, Encoder& out) {
  out.Array(3);
  out.Bulk(std::to_string(joined.entry.to));
  out.Integer(static_cast<int64_t>(joined.entry.sequence));
  if (is_forbidden) {
    out.Error("NOPERM the caller lacks the right to read this object");
  } else if (joined.object.ok()) {
    out.Bulk(joined.object->data);
  } else if (absl::IsNotFound(joined.object.status())) {
    out.Null();
  } else {
    out.Error(ErrorText(joined.object.status()));
  }
}

absl::Status List(StoreCall& call, Arguments arguments, Encoder& out) {
  const auto from = ParseUnsigned(arguments[2]);
  if (!from) return absl::InvalidArgumentError("from: is no ID");
  const auto options = ReadListOptions(arguments.subspan(3));
  if (!options.ok()) return options.status();
  const auto forbidden = ForbiddenTypes(call);
  if (!forbidden.ok()) return forbidden.status();
  const auto page = call.router.ListObjects(arguments[1], *from, *options);
  if (!page.ok()) return page.status();
  // While the dataset of some objects migrates, the list is made again.
  for (const JoinedObject& joined : page->objects) {
    if (IsMigrating(joined.object.status())) return joined.object.status();
  }
  out.Array(2);
  out.Array(page->objects.size());
  for (const JoinedObject& joined : page->objects) {
    const auto id = ObjectId::FromValue(joined.entry.to);
    AppendJoined(joined, id.ok() && forbidden->contains(id->type()), out);
  }
  AppendMarker(page->marker, out);
  return absl::OkStatus();
}

// ---- KV.DATASETS ----

absl::Status Datasets(StoreCall& call, Arguments, Encoder& out) {
  const auto specs = call.router.ListDatasets();
  if (!specs.ok()) return specs.status();
  std::vector<const DatasetSpec*> shown;
  for (const DatasetSpec& spec : *specs) {
    if (CheckRight(call.principal, spec.name, Right::kRead).ok()) shown.push_back(&spec);
  }
  out.Array(shown.size());
  for (const DatasetSpec* spec : shown) {
    out.Map(6);
    out.Bulk("dataset");
    out.Bulk(spec->name);
    out.Bulk("shape");
    out.Bulk(Name(spec->shape));
    out.Bulk("backend");
    out.Bulk(spec->backend);
    out.Bulk("max_versions");
    out.Integer(spec->max_versions);
    out.Bulk("ttl_ms");
    out.Integer(static_cast<int64_t>(spec->ttl_ms));
    out.Bulk("durability");
    out.Bulk(Name(spec->durability));
  }
  return absl::OkStatus();
}

/// Returns the line of a command whose first argument is its dataset.
constexpr Command OnDataset(std::string_view name, int arity, Handler handler, Operation operation,
                            std::optional<Shape> shape, std::string_view words, std::string_view summary) {
  return {.name = name,
          .arity = arity,
          .handler = handler,
          .operation = operation,
          .dataset = DatasetIn::kArgument,
          .shape = shape,
          .keys = {},
          .group = "kvstore",
          .words = words,
          .summary = summary};
}

}  // namespace

std::span<const Command> StoreCommands() {
  static constexpr std::array kCommands = {
      Command{.name = "kv.datasets",
              .arity = 1,
              .handler = StoreCommand{.carry_out = &Datasets, .brief = true},
              .operation = Operation::kListDatasets,
              .dataset = DatasetIn::kNone,
              .shape = std::nullopt,
              .keys = {},
              .group = "kvstore",
              .words = "",
              .summary = "Lists the datasets that the caller may read"},
      OnDataset("kv.get", -3, StoreCommand{.carry_out = &Get, .brief = true}, Operation::kGetRow,
                Shape::kRows,
                "dataset row [COLUMNS n column ...] [VERSIONS n] [RANGE start end] [LIMIT n] [MARKER marker]",
                "Returns a page of a row with its versions and their timestamps"),
      OnDataset("kv.list", -3, StoreCommand{.carry_out = &List}, Operation::kListObjects, Shape::kMappings,
                "dataset from [REV] [LIMIT n] [OFFSET n] [MARKER marker]",
                "Returns a page of an ID's entries with the objects that they point to"),
      OnDataset("kv.put", -7, WriteCommand{.plan = &PlanStorePut, .answer = &AnswerPut}, Operation::kPutRow,
                Shape::kRows,
                "dataset row cells column timestamp|* value [...] [IFABSENT column | IFEQUALS column value] "
                "[SYNC]",
                "Puts cells of one row, all or none, perhaps under a condition"),
      OnDataset(
          "kv.scan", -2, StoreCommand{.carry_out = &ScanStore}, Operation::kScanRows, std::nullopt,
          "dataset [START start] [END end] [COLUMNS n column ...] [VERSIONS n] [RANGE start end] [LIMIT n] "
          "[MARKER marker]",
          "Returns a page of a dataset's rows, objects or entries"),
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
