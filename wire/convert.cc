#include "wire/convert.h"

#include <fmt/format.h>

#include <variant>

#include "backend_api/outcome.h"
#include "wire/unknown_number.h"

namespace kvstore::wire {
namespace {

constexpr size_t kMaxMessageBytes = 2'000;

void ToWire(const std::optional<std::vector<std::string>>& names, v1::Names* message) {
  for (const std::string& name : *names) message->add_names(name);
}

std::vector<std::string> FromWire(const v1::Names& message) {
  return {message.names().begin(), message.names().end()};
}

std::string Truncate(std::string_view text) {
  if (text.size() <= kMaxMessageBytes) return std::string(text);
  return fmt::format("{}...", text.substr(0, kMaxMessageBytes));
}

}  // namespace

// ---- datasets ----

v1::Durability ToWire(Durability durability) {
  return durability == Durability::kMachine ? v1::DURABILITY_MACHINE : v1::DURABILITY_PROCESS;
}

absl::StatusOr<Durability> FromWire(v1::Durability durability) {
  switch (durability) {
    case v1::DURABILITY_UNSPECIFIED:
    case v1::DURABILITY_PROCESS:
      return Durability::kProcess;
    case v1::DURABILITY_MACHINE:
      return Durability::kMachine;
    default:
      return UnknownNumberError("durability", durability);
  }
}

void ToWire(const DatasetSpec& spec, v1::Dataset& message) {
  message.set_name(spec.name);
  message.set_shape(static_cast<v1::Shape>(spec.shape));
  message.set_backend(spec.backend);
  message.set_type(spec.type);
  message.set_max_versions(spec.max_versions);
  message.set_ttl_ms(spec.ttl_ms);
  message.set_durability(ToWire(spec.durability));
  message.set_keep_changes_ms(spec.keep_changes_ms);
  message.set_compression(static_cast<v1::Compression>(spec.compression));
  message.set_blob_threshold(spec.blob_threshold);
  message.set_engine(spec.engine);
  message.set_incarnation(spec.incarnation);
  message.set_table(spec.table);
}

absl::StatusOr<DatasetSpec> FromWire(const v1::Dataset& message) {
  DatasetSpec spec;
  spec.name = message.name();
  // The numbers are those of the API, which are stored and never change.
  if (message.shape() != v1::SHAPE_UNSPECIFIED) spec.shape = static_cast<Shape>(message.shape());
  if (Name(spec.shape) == "unknown") return UnknownNumberError("shape", message.shape());
  spec.backend = message.backend();
  spec.type = message.type();
  if (message.has_max_versions()) spec.max_versions = message.max_versions();
  spec.ttl_ms = message.ttl_ms();
  spec.keep_changes_ms = message.keep_changes_ms();
  const auto durability = FromWire(message.durability());
  if (!durability.ok()) return durability.status();
  spec.durability = *durability;
  if (message.compression() != v1::COMPRESSION_UNSPECIFIED) {
    spec.compression = static_cast<Compression>(message.compression());
  }
  if (Name(spec.compression) == "unknown") return UnknownNumberError("compression", message.compression());
  spec.blob_threshold = message.blob_threshold();
  spec.engine = message.engine();
  spec.incarnation = message.incarnation();
  spec.table = message.table();
  return spec;
}

// ---- changes ----

namespace {

void ToWire(RowChange change, v1::Change& message) {
  v1::Change::Column& column = *message.mutable_column();
  column.set_row(std::move(change.row));
  column.set_more(change.more);
  if (change.column) column.set_column(*std::move(change.column));
  for (Cell& cell : change.cells) {
    v1::Cell& one = *column.add_cells();
    one.set_timestamp(cell.timestamp);
    one.set_value(std::move(cell.value));
  }
}

void ToWire(ObjectChange change, v1::Change& message) {
  v1::Change::Object& object = *message.mutable_object();
  object.set_id(change.id);
  object.set_timestamp(change.timestamp);
  if (change.data) object.set_data(*std::move(change.data));
}

void ToWire(const MappingChange& change, v1::Change& message) {
  v1::Change::Mapping& mapping = *message.mutable_mapping();
  mapping.set_from(change.from);
  mapping.set_to(change.to);
  if (change.sequence) mapping.set_sequence(*change.sequence);
}

RowChange FromWire(v1::Change::Column& message) {
  RowChange change{
      .row = std::move(*message.mutable_row()), .column = {}, .cells = {}, .more = message.more()};
  if (message.has_column()) change.column = std::move(*message.mutable_column());
  change.cells.reserve(static_cast<size_t>(message.cells_size()));
  for (v1::Cell& cell : *message.mutable_cells()) {
    change.cells.push_back({cell.timestamp(), std::move(*cell.mutable_value())});
  }
  return change;
}

ObjectChange FromWire(v1::Change::Object& message) {
  ObjectChange change{.id = message.id(), .timestamp = message.timestamp(), .data = {}};
  if (message.has_data()) change.data = std::move(*message.mutable_data());
  return change;
}

MappingChange FromWire(const v1::Change::Mapping& message) {
  MappingChange change{.from = message.from(), .to = message.to(), .sequence = {}};
  if (message.has_sequence()) change.sequence = message.sequence();
  return change;
}

}  // namespace

void ToWire(Change change, v1::Change& message) {
  message.set_token(std::move(change.token));
  message.set_at_ms(change.at_ms);
  std::visit([&](auto& what) { ToWire(std::move(what), message); }, change.what);
}

std::optional<Change> FromWire(v1::Change& message) {
  Change change{.token = std::move(*message.mutable_token()), .at_ms = message.at_ms(), .what = {}};
  switch (message.what_case()) {
    case v1::Change::kColumn:
      change.what = FromWire(*message.mutable_column());
      return change;
    case v1::Change::kObject:
      change.what = FromWire(*message.mutable_object());
      return change;
    case v1::Change::kMapping:
      change.what = FromWire(message.mapping());
      return change;
    case v1::Change::WHAT_NOT_SET:
      break;
  }
  return std::nullopt;
}

// ---- rows ----

void ToWire(const ReadOptions& options, v1::ReadOptions& message) {
  const ReadOptions standard;
  if (options.columns) ToWire(options.columns, message.mutable_columns());
  if (options.versions != standard.versions) message.set_versions(options.versions);
  message.set_start_timestamp(options.time_range.start);
  if (options.time_range.end != standard.time_range.end) message.set_end_timestamp(options.time_range.end);
  if (options.limit != standard.limit) message.set_limit(options.limit);
  if (options.max_bytes != standard.max_bytes) message.set_max_bytes(options.max_bytes);
  message.set_marker(options.marker);
  message.set_packed(true);
  if (options.after_column) message.set_after_column(*options.after_column);
}

ReadOptions FromWire(const v1::ReadOptions& message) {
  ReadOptions options;
  if (message.has_columns()) options.columns = FromWire(message.columns());
  if (message.has_versions()) options.versions = message.versions();
  options.time_range.start = message.start_timestamp();
  if (message.has_end_timestamp()) options.time_range.end = message.end_timestamp();
  if (message.has_limit()) options.limit = message.limit();
  if (message.has_max_bytes()) options.max_bytes = message.max_bytes();
  options.marker = message.marker();
  if (message.has_after_column()) options.after_column = message.after_column();
  return options;
}

void ToWire(std::vector<Item> items, List<v1::Item>& list) {
  list.Reserve(static_cast<int>(items.size()));
  for (Item& item : items) {
    v1::Item& message = *list.Add();
    message.set_column(std::move(item.column));
    message.mutable_cells()->Reserve(static_cast<int>(item.cells.size()));
    for (Cell& cell : item.cells) {
      v1::Cell& one = *message.add_cells();
      one.set_timestamp(cell.timestamp);
      one.set_value(std::move(cell.value));
    }
  }
}

std::vector<Item> FromWire(List<v1::Item>& list) {
  std::vector<Item> items;
  items.reserve(static_cast<size_t>(list.size()));
  for (v1::Item& message : list) {
    Item& item = items.emplace_back();
    item.column = std::move(*message.mutable_column());
    item.cells.reserve(static_cast<size_t>(message.cells_size()));
    for (v1::Cell& cell : *message.mutable_cells()) {
      item.cells.push_back({cell.timestamp(), std::move(*cell.mutable_value())});
    }
  }
  return items;
}

void ToWire(std::span<const CellWrite> cells, List<v1::CellWrite>& list) {
  list.Reserve(static_cast<int>(cells.size()));
  for (const CellWrite& cell : cells) {
    v1::CellWrite& message = *list.Add();
    message.set_column(cell.column.data(), cell.column.size());
    message.set_value(cell.value.data(), cell.value.size());
    if (cell.timestamp) message.set_timestamp(*cell.timestamp);
  }
}

std::vector<CellWrite> FromWire(const List<v1::CellWrite>& list) {
  std::vector<CellWrite> cells;
  cells.reserve(static_cast<size_t>(list.size()));
  for (const v1::CellWrite& message : list) {
    CellWrite& cell = cells.emplace_back();
    cell.column = message.column();
    cell.value = message.value();
    if (message.has_timestamp()) cell.timestamp = message.timestamp();
  }
  return cells;
}

void ToWire(const Condition& condition, v1::Condition& message) {
  message.set_column(std::string(condition.column));
  if (condition.equals) message.set_equals(std::string(*condition.equals));
}

Condition FromWire(const v1::Condition& message) {
  Condition condition{.column = message.column()};
  if (message.has_equals()) condition.equals = message.equals();
  return condition;
}

void ToWire(const DeleteOptions& options, v1::DeleteOptions& message) {
  if (options.columns) ToWire(options.columns, message.mutable_columns());
  if (options.cells) {
    v1::CellNames& names = *message.mutable_cells();
    for (const CellName& cell : *options.cells) {
      v1::CellName& name = *names.add_names();
      name.set_column(cell.column);
      name.set_timestamp(cell.timestamp);
    }
  }
}

DeleteOptions FromWire(const v1::DeleteOptions& message) {
  DeleteOptions options;
  if (message.has_columns()) options.columns = FromWire(message.columns());
  if (message.has_cells()) {
    options.cells.emplace();
    for (const v1::CellName& name : message.cells().names()) {
      options.cells->push_back({name.column(), name.timestamp()});
    }
  }
  return options;
}

void ToWire(const RowRange& range, v1::RowRange& message) {
  message.set_start(range.start);
  message.set_end(range.end);
  message.set_shard(range.shard);
}

RowRange FromWire(const v1::RowRange& message) {
  return {.start = message.start(), .end = message.end(), .shard = message.shard()};
}

void ToWire(const ScanOptions& options, v1::ScanRowsRequest& message) {
  const ScanOptions standard;
  if (options.columns) ToWire(options.columns, message.mutable_columns());
  if (options.versions != standard.versions) message.set_versions(options.versions);
  message.set_start_timestamp(options.time_range.start);
  if (options.time_range.end != standard.time_range.end) message.set_end_timestamp(options.time_range.end);
  if (options.max_bytes != standard.max_bytes) message.set_max_bytes(options.max_bytes);
  message.set_marker(options.marker);
  message.set_packed(true);
  message.set_packed_rows(true);
}

ScanOptions FromWire(const v1::ScanRowsRequest& message) {
  ScanOptions options;
  if (message.has_columns()) options.columns = FromWire(message.columns());
  if (message.has_versions()) options.versions = message.versions();
  options.time_range.start = message.start_timestamp();
  if (message.has_end_timestamp()) options.time_range.end = message.end_timestamp();
  if (message.has_max_bytes()) options.max_bytes = message.max_bytes();
  options.marker = message.marker();
  return options;
}

// ---- objects and mappings ----

void ToWire(const IdRange& range, v1::IdRange& message) {
  message.set_start(range.start);
  if (range.end != IdRange().end) message.set_end(range.end);
}

IdRange FromWire(const v1::IdRange& message) {
  IdRange range{.start = message.start()};
  if (message.has_end()) range.end = message.end();
  return range;
}

void ToWire(const ObjectScanOptions& options, v1::ScanObjectsRequest& message) {
  const ObjectScanOptions standard;
  message.set_include_inactive(options.include_inactive);
  if (options.limit != standard.limit) message.set_limit(options.limit);
  if (options.max_bytes != standard.max_bytes) message.set_max_bytes(options.max_bytes);
  message.set_marker(options.marker);
}

ObjectScanOptions FromWire(const v1::ScanObjectsRequest& message) {
  ObjectScanOptions options{.include_inactive = message.include_inactive(), .marker = message.marker()};
  if (message.has_limit()) options.limit = message.limit();
  if (message.has_max_bytes()) options.max_bytes = message.max_bytes();
  return options;
}

void ToWire(const MappingScanOptions& options, v1::ScanMappingsRequest& message) {
  if (options.limit != MappingScanOptions().limit) message.set_limit(options.limit);
  message.set_marker(options.marker);
}

MappingScanOptions FromWire(const v1::ScanMappingsRequest& message) {
  MappingScanOptions options{.marker = message.marker()};
  if (message.has_limit()) options.limit = message.limit();
  return options;
}

void ToWire(Object object, v1::Object& message) {
  message.set_id(object.id);
  message.set_data(std::move(object.data));
  message.set_timestamp(object.timestamp);
}

Object FromWire(v1::Object& message) {
  return {message.id(), std::move(*message.mutable_data()), message.timestamp()};
}

void ToWire(const MappingListOptions& options, v1::ListingOptions& message) {
  const MappingListOptions standard;
  message.set_descending(options.order == MappingListOptions::Order::kDescending);
  if (options.limit != standard.limit) message.set_limit(options.limit);
  message.set_offset(options.offset);
  message.set_marker(options.marker);
  if (options.max_bytes != standard.max_bytes) message.set_max_bytes(options.max_bytes);
}

MappingListOptions FromWire(const v1::ListingOptions& message) {
  MappingListOptions options;
  if (message.descending()) options.order = MappingListOptions::Order::kDescending;
  if (message.has_limit()) options.limit = message.limit();
  options.offset = message.offset();
  options.marker = message.marker();
  if (message.has_max_bytes()) options.max_bytes = message.max_bytes();
  return options;
}

void ToWire(const MappingEntry& entry, v1::MappingEntry& message) {
  message.set_to(entry.to);
  message.set_sequence(entry.sequence);
}

MappingEntry FromWire(const v1::MappingEntry& message) { return {message.to(), message.sequence()}; }

// ---- errors ----

std::string AsciiOf(std::string_view text) {
  std::string ascii(text);
  for (char& c : ascii) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return ascii;
}

// absl and gRPC use the same numbers for codes.

grpc::Status ToWire(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), Truncate(std::string(status.message()))};
}

absl::Status FromWire(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

void ToWire(const absl::Status& status, v1::Error& message) {
  message.set_code(static_cast<int>(status.code()));
  message.set_message(AsciiOf(Truncate(std::string(status.message()))));
  // Only the router that meets a dataset that is gone holds the call, so this outcome is not passed on.
  if (IsInDoubt(status)) {
    message.set_outcome(kInDoubt);
  } else if (IsMigrating(status) && !IsGone(status)) {
    message.set_outcome(kMoved);
  }
}

absl::Status FromWire(const v1::Error& message) {
  const auto code = message.code() >= 1 && message.code() <= 16
                        ? static_cast<absl::StatusCode>(message.code())
                        : absl::StatusCode::kUnknown;
  if (message.outcome() == kMoved) return ServedElsewhereError(message.message());
  absl::Status error(code, message.message());
  return message.outcome() == kInDoubt ? MarkInDoubt(std::move(error)) : error;
}

}  // namespace kvstore::wire
