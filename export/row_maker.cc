#include "export/row_maker.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "base/big_endian.h"
#include "export/cell_values.h"
#include "idgen/object_id.h"
#include "json/bytes_json.h"
#include "json/json.h"

namespace kvstore::exports {
namespace {

using pipe::Column;
using pipe::ColumnType;

absl::Status Foreign(Shape shape) {
  return absl::DataLossError(fmt::format("a unit that was read is none of {}", Name(shape)));
}

/// Says which value it is that has not the type of its column, and what to do.
absl::Status WithPlace(const absl::Status& status, const std::string& place, std::string_view instead) {
  return absl::Status(status.code(),
                      fmt::format("{}: {}; {}", place, std::string(status.message()), instead));
}

class LongRowMaker : public RowMaker {
 public:
  explicit LongRowMaker(bool text) : text_(text) {
    const ColumnType type = text ? ColumnType::kText : ColumnType::kBytes;
    columns_ = {{"row", type}, {"column", type}, {"timestamp", ColumnType::kTime}, {"value", type}};
  }

  const std::vector<Column>& columns() const override { return columns_; }
  absl::Status Add(Unit& unit, RowSink& sink) override {
    const auto key = ParseRowUnitKey(unit.key);
    if (!key || !key->column) return Foreign(Shape::kRows);
    if (text_) {
      if (auto status = CheckText(unit, *key); !status.ok()) return status;
    }
    for (const Cell& cell : unit.cells) {
      pipe::BatchBuilder& rows = sink.rows();
      rows.AddBytes(0, key->row);
      rows.AddBytes(1, *key->column);
      rows.AddNumber(2, static_cast<int64_t>(cell.timestamp));
      rows.AddBytes(3, cell.value);
      if (auto status = sink.EndRow(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::Status EndRange(RowSink&) override { return absl::OkStatus(); }

 private:
  static absl::Status CheckText(const Unit& unit, const RowUnit& key) {
    bool is_text = IsUtf8(key.row) && IsUtf8(*key.column);
    for (const Cell& cell : unit.cells) is_text = is_text && IsUtf8(cell.value);
    if (is_text) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("{}: its key, its column or its value is not UTF-8; export without --text",
                    ShowUnitKey(Shape::kRows, unit.key)));
  }

  const bool text_;
  std::vector<Column> columns_;
};

class WideRowMaker : public RowMaker {
 public:
  explicit WideRowMaker(const TableOptions& options) : text_(options.text) {
    columns_ = {{"row", text_ ? ColumnType::kText : ColumnType::kBytes}};
    for (const TableColumn& column : options.columns) {
      places_[column.name] = columns_.size();
      columns_.push_back({column.name, column.type, /*nullable=*/true});
    }
    values_.resize(columns_.size());
  }

  const std::vector<Column>& columns() const override { return columns_; }
  absl::Status Add(Unit& unit, RowSink& sink) override {
    auto key = ParseRowUnitKey(unit.key);
    if (!key || !key->column) return Foreign(Shape::kRows);
    if (key->row != row_ && has_values_) {
      if (auto status = EndRange(sink); !status.ok()) return status;
    }
    const auto place = places_.find(*key->column);
    // A column that comes in pieces has its newest value in the first one.
    if (place == places_.end() || unit.cells.empty() || values_[place->second]) return absl::OkStatus();
    bytes_ += unit.cells[0].value.size();
    if (bytes_ > kMaxTableRowBytes) {
      return absl::ResourceExhaustedError(fmt::format(
          "{}: the columns of this row have more than {} bytes, which is the most that a row of a "
          "table may have; name fewer columns, or export without --columns",
          ShowUnitKey(Shape::kRows, unit.key), kMaxTableRowBytes));
    }
    row_ = std::move(key->row);
    values_[place->second] = std::move(unit.cells[0].value);
    has_values_ = true;
    return absl::OkStatus();
  }
  absl::Status EndRange(RowSink& sink) override {
    if (!has_values_) return absl::OkStatus();
    pipe::BatchBuilder& rows = sink.rows();
    if (auto status = AddCell(rows, 0, columns_[0].type, row_); !status.ok()) {
      return WithPlace(status, ShowUnitKey(Shape::kRows, RowUnitKey(row_, "")), "export without --text");
    }
    for (size_t i = 1; i < columns_.size(); ++i) {
      if (!values_[i]) {
        rows.AddNull(i);
        continue;
      }
      if (auto status = AddCell(rows, i, columns_[i].type, *values_[i]); !status.ok()) {
        return WithPlace(status, ShowUnitKey(Shape::kRows, RowUnitKey(row_, columns_[i].name)),
                         "export this column as binary");
      }
      values_[i].reset();
    }
    has_values_ = false;
    bytes_ = 0;
    return sink.EndRow();
  }

 private:
  const bool text_;
  std::vector<Column> columns_;
  std::map<std::string, size_t, std::less<>> places_;  // of the columns that were asked for
  std::string row_;                                    // whose values these are
  std::vector<std::optional<std::string>> values_;     // by column
  bool has_values_ = false;
  size_t bytes_ = 0;
};

class ObjectMaker : public RowMaker {
 public:
  explicit ObjectMaker(const TableOptions& options) : fields_(options.columns) {
    columns_ = {{"id", ColumnType::kInt64},       {"shard", ColumnType::kInt32},
                {"type", ColumnType::kInt32},     {"local_id", ColumnType::kInt64},
                {"timestamp", ColumnType::kTime}, {"data", ColumnType::kText}};
    first_field_ = columns_.size();
    for (const TableColumn& field : fields_) columns_.push_back({field.name, field.type, /*nullable=*/true});
  }

  const std::vector<Column>& columns() const override { return columns_; }
  absl::Status Add(Unit& unit, RowSink& sink) override {
    if (!IsUnitKey(Shape::kObjects, unit.key)) return Foreign(Shape::kObjects);
    if (unit.cells.empty()) return absl::OkStatus();
    const auto id = ObjectId::FromValue(ReadBigEndian<uint64_t>(unit.key));
    if (!id.ok()) return Foreign(Shape::kObjects);
    const Cell& cell = unit.cells[0];
    pipe::BatchBuilder& rows = sink.rows();
    rows.AddNumber(0, static_cast<int64_t>(id->value()));
    rows.AddNumber(1, id->shard());
    rows.AddNumber(2, id->type());
    rows.AddNumber(3, static_cast<int64_t>(id->local()));
    rows.AddNumber(4, static_cast<int64_t>(cell.timestamp));
    if (!IsUtf8(cell.value)) {
      return absl::DataLossError(
          fmt::format("{}: its document is not UTF-8", ShowUnitKey(Shape::kObjects, unit.key)));
    }
    rows.AddBytes(5, cell.value);
    if (auto status = AddFields(unit, rows); !status.ok()) return status;
    return sink.EndRow();
  }
  absl::Status EndRange(RowSink&) override { return absl::OkStatus(); }

 private:
  absl::Status AddFields(const Unit& unit, pipe::BatchBuilder& rows) const {
    if (fields_.empty()) return absl::OkStatus();
    const auto document = ParseStoredJson(unit.cells[0].value);
    if (!document.ok()) {
      return absl::DataLossError(
          fmt::format("{}: its document is not JSON", ShowUnitKey(Shape::kObjects, unit.key)));
    }
    for (size_t i = 0; i < fields_.size(); ++i) {
      const Json* const field = FindField(*document, fields_[i].name);
      if (auto status = AddField(rows, first_field_ + i, fields_[i].type, field); !status.ok()) {
        const std::string place =
            fmt::format("{} field '{}'", ShowUnitKey(Shape::kObjects, unit.key), fields_[i].name);
        return WithPlace(status, place, "export this field as string");
      }
    }
    return absl::OkStatus();
  }

  const std::vector<TableColumn> fields_;
  std::vector<Column> columns_;
  size_t first_field_ = 0;
};

class MappingMaker : public RowMaker {
 public:
  const std::vector<Column>& columns() const override { return columns_; }
  absl::Status Add(Unit& unit, RowSink& sink) override {
    if (unit.cells.empty()) return absl::OkStatus();
    const bool is_entry =
        IsUnitKey(Shape::kMappings, unit.key) && unit.cells[0].value.size() == sizeof(uint64_t);
    if (!is_entry) return Foreign(Shape::kMappings);
    pipe::BatchBuilder& rows = sink.rows();
    rows.AddNumber(0, Number(unit.key));
    rows.AddNumber(1, Number(std::string_view(unit.key).substr(sizeof(uint64_t))));
    rows.AddNumber(2, Number(unit.cells[0].value));
    return sink.EndRow();
  }
  absl::Status EndRange(RowSink&) override { return absl::OkStatus(); }

 private:
  static int64_t Number(std::string_view bytes) {
    return static_cast<int64_t>(ReadBigEndian<uint64_t>(bytes));
  }

  const std::vector<Column> columns_ = {
      {"from", ColumnType::kInt64}, {"to", ColumnType::kInt64}, {"sequence", ColumnType::kInt64}};
};

}  // namespace

std::unique_ptr<RowMaker> NewRowMaker(Shape shape, const TableOptions& options) {
  switch (shape) {
    case Shape::kRows:
      if (options.columns.empty()) return std::make_unique<LongRowMaker>(options.text);
      return std::make_unique<WideRowMaker>(options);
    case Shape::kObjects:
      return std::make_unique<ObjectMaker>(options);
    case Shape::kMappings:
      break;
  }
  return std::make_unique<MappingMaker>();
}

std::string_view FormOf(Shape shape, const TableOptions& options) {
  if (shape != Shape::kRows) return Name(shape);
  return options.columns.empty() ? "long" : "wide";
}

}  // namespace kvstore::exports
