#include "export/change_row_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "backend_api/unit_key.h"
#include "base/big_endian.h"
#include "idgen/object_id.h"
#include "json/bytes_json.h"

namespace kvstore::exports {
namespace {

using pipe::Column;
using pipe::ColumnType;

constexpr char kDeleted[] = "deleted";
/// Columns that a row has also if its unit is gone.
constexpr std::array<std::string_view, 7> kKeys = {"row", "id", "shard", "type", "local_id", "from", "to"};

/// Adds to each row that its unit is there.
class PresentRows : public RowSink {
 public:
  PresentRows(RowSink& sink, size_t deleted) : sink_(sink), deleted_(deleted) {}
  pipe::BatchBuilder& rows() override { return sink_.rows(); }
  absl::Status EndRow() override {
    sink_.rows().AddNumber(deleted_, 0);
    return sink_.EndRow();
  }

 private:
  RowSink& sink_;
  const size_t deleted_;
};

class ChangeRowMaker : public RowMaker {
 public:
  ChangeRowMaker(Shape shape, const TableOptions& options)
      : shape_(shape), text_(options.text), present_(NewRowMaker(shape, options)) {
    columns_ = present_->columns();
    for (Column& column : columns_) {
      if (std::find(kKeys.begin(), kKeys.end(), column.name) == kKeys.end()) column.nullable = true;
    }
    columns_.push_back({kDeleted, ColumnType::kBool});
  }

  const std::vector<Column>& columns() const override { return columns_; }
  absl::Status Add(Unit& unit, RowSink& sink) override {
    if (unit.cells.empty()) return AddGone(unit, sink);
    PresentRows rows(sink, columns_.size() - 1);
    return present_->Add(unit, rows);
  }
  absl::Status EndRange(RowSink& sink) override {
    PresentRows rows(sink, columns_.size() - 1);
    return present_->EndRange(rows);
  }

 private:
  absl::Status AddGone(const Unit& unit, RowSink& sink) {
    size_t keys = 0;
    switch (shape_) {
      case Shape::kRows: {
        const auto key = ParseRowUnitKey(unit.key);
        if (!key) return Foreign();
        if (text_ && !(IsUtf8(key->row) && IsUtf8(key->column.value_or("")))) {
          return absl::FailedPreconditionError(
              fmt::format("{}: its key or its column is not UTF-8; export without --text",
                          ShowUnitKey(Shape::kRows, unit.key)));
        }
        sink.rows().AddBytes(keys++, key->row);
        if (key->column) sink.rows().AddBytes(keys++, *key->column);
        break;
      }
      case Shape::kObjects: {
        if (!IsUnitKey(Shape::kObjects, unit.key)) return Foreign();
        const auto id = ObjectId::FromValue(ReadBigEndian<uint64_t>(unit.key));
        if (!id.ok()) return Foreign();
        const uint64_t parts[] = {id->value(), id->shard(), id->type(), id->local()};
        for (const uint64_t part : parts) sink.rows().AddNumber(keys++, static_cast<int64_t>(part));
        break;
      }
      case Shape::kMappings:
        if (!IsUnitKey(Shape::kMappings, unit.key)) return Foreign();
        for (const size_t at : {size_t{0}, sizeof(uint64_t)}) {
          const auto id = ReadBigEndian<uint64_t>(std::string_view(unit.key).substr(at));
          sink.rows().AddNumber(keys++, static_cast<int64_t>(id));
        }
        break;
    }
    for (size_t i = keys; i + 1 < columns_.size(); ++i) sink.rows().AddNull(i);
    sink.rows().AddNumber(columns_.size() - 1, 1);
    return sink.EndRow();
  }

  absl::Status Foreign() const {
    return absl::DataLossError(fmt::format("a change that was read is none of {}", Name(shape_)));
  }

  const Shape shape_;
  const bool text_;
  const std::unique_ptr<RowMaker> present_;
  std::vector<Column> columns_;
};

}  // namespace

absl::Status CheckChangeOptions(const TableOptions& options, Shape shape) {
  if (shape == Shape::kRows && !options.columns.empty()) {
    return absl::InvalidArgumentError(
        "columns: an export of changes of rows has a row of the table for each cell; leave the columns out");
  }
  for (const TableColumn& column : options.columns) {
    if (absl::EqualsIgnoreCase(column.name, kDeleted)) {
      return absl::InvalidArgumentError(
          fmt::format("columns: '{}' is a column that every export of changes has", column.name));
    }
  }
  return absl::OkStatus();
}

std::unique_ptr<RowMaker> NewChangeRowMaker(Shape shape, const TableOptions& options) {
  return std::make_unique<ChangeRowMaker>(shape, options);
}

}  // namespace kvstore::exports
