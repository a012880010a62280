#include "export/parquet/line_printers.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "export/parquet/cell_text.h"
#include "export/parquet/json_text.h"

namespace kvstore::columnar {
namespace {

/// A line of cells ends when it has so many bytes.
constexpr size_t kLineBytes = size_t{1} << 20;

/// Names the column in an error that concerns a value of it.
arrow::Status InColumn(const std::string& name, const arrow::Status& status) {
  return status.WithMessage("column '", name, "': ", status.message());
}

/// The places of columns in batches.
class Columns {
 public:
  explicit Columns(const arrow::Schema& schema) : names_(schema.field_names()) {}

  const std::vector<std::string>& names() const { return names_; }
  bool Has(const std::string& name) const { return Find(name).has_value(); }
  std::optional<int> Find(const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) return std::nullopt;
    return static_cast<int>(found - names_.begin());
  }
  arrow::Result<int> Need(const std::string& name) const {
    if (const auto found = Find(name)) return *found;
    return arrow::Status::Invalid("the file has no column '", name, "'");
  }

 private:
  const std::vector<std::string> names_;
};

arrow::Status HasNone(const std::string& name) {
  return arrow::Status::Invalid("column '", name, "': a row has no value, and must have one");
}

/// The bytes of a value that must be there.
arrow::Result<std::string> NeedBytes(const arrow::RecordBatch& batch, int column, int64_t row) {
  const arrow::Array& array = *batch.column(column);
  if (!HasValue(array, row)) return HasNone(batch.column_name(column));
  auto bytes = BytesOf(array, row);
  if (!bytes.ok()) return InColumn(batch.column_name(column), bytes.status());
  return bytes;
}

arrow::Result<int64_t> NeedWhole(const arrow::RecordBatch& batch, int column, int64_t row) {
  const arrow::Array& array = *batch.column(column);
  if (!HasValue(array, row)) return HasNone(batch.column_name(column));
  auto whole = WholeOf(array, row);
  if (!whole.ok()) return InColumn(batch.column_name(column), whole.status());
  return whole;
}

/// Prints cells, those of one row that follow each other on one line.
class CellLines {
 public:
  explicit CellLines(OutputPipe& output) : output_(output) {}

  arrow::Status Add(const std::string& row, std::string_view column, std::string_view value,
                    const std::optional<int64_t>& timestamp) {
    if (!line_.empty() && (row != row_ || line_.size() >= kLineBytes)) ARROW_RETURN_NOT_OK(End());
    if (line_.empty()) {
      row_ = row;
      line_ = R"({"row":)";
      AppendBytes(line_, row);
      line_ += R"(,"items":[)";
    } else {
      line_ += ',';
    }
    line_ += R"({"column":)";
    AppendBytes(line_, column);
    line_ += R"(,"value":)";
    AppendBytes(line_, value);
    if (timestamp) {
      line_ += R"(,"timestamp":)";
      line_ += std::to_string(*timestamp);
    }
    line_ += '}';
    return arrow::Status::OK();
  }
  arrow::Status End() {
    if (line_.empty()) return arrow::Status::OK();
    line_ += "]}\n";
    ARROW_RETURN_NOT_OK(output_.Append(line_));
    line_.clear();
    return arrow::Status::OK();
  }

 private:
  OutputPipe& output_;
  std::string row_;
  std::string line_;  // up to its last cell; empty: none is begun
};

class LongRows : public LinePrinter {
 public:
  static arrow::Result<std::unique_ptr<LinePrinter>> New(const Columns& columns, OutputPipe& output) {
    ARROW_ASSIGN_OR_RAISE(const int row, columns.Need("row"));
    ARROW_ASSIGN_OR_RAISE(const int column, columns.Need("column"));
    ARROW_ASSIGN_OR_RAISE(const int value, columns.Need("value"));
    return std::unique_ptr<LinePrinter>(new LongRows(row, column, value, columns.Find("timestamp"), output));
  }

  arrow::Status Print(const arrow::RecordBatch& batch) override {
    for (int64_t i = 0; i < batch.num_rows(); ++i) {
      ARROW_ASSIGN_OR_RAISE(const std::string row, NeedBytes(batch, row_, i));
      ARROW_ASSIGN_OR_RAISE(const std::string column, NeedBytes(batch, column_, i));
      ARROW_ASSIGN_OR_RAISE(const std::string value, NeedBytes(batch, value_, i));
      std::optional<int64_t> timestamp;
      if (timestamp_) {
        ARROW_ASSIGN_OR_RAISE(timestamp, NeedWhole(batch, *timestamp_, i));
      }
      ARROW_RETURN_NOT_OK(lines_.Add(row, column, value, timestamp));
    }
    return arrow::Status::OK();
  }
  arrow::Status Finish() override { return lines_.End(); }

 private:
  LongRows(int row, int column, int value, std::optional<int> timestamp, OutputPipe& output)
      : row_(row), column_(column), value_(value), timestamp_(timestamp), lines_(output) {}

  const int row_;
  const int column_;
  const int value_;
  const std::optional<int> timestamp_;
  CellLines lines_;
};

class WideRows : public LinePrinter {
 public:
  WideRows(int row, std::optional<uint64_t> time, OutputPipe& output)
      : row_(row), time_(time), lines_(output) {}

  arrow::Status Print(const arrow::RecordBatch& batch) override {
    for (int64_t i = 0; i < batch.num_rows(); ++i) {
      ARROW_ASSIGN_OR_RAISE(const std::string row, NeedBytes(batch, row_, i));
      for (int column = 0; column < batch.num_columns(); ++column) {
        if (column == row_ || !HasValue(*batch.column(column), i)) continue;
        ARROW_ASSIGN_OR_RAISE(const std::string value, NeedBytes(batch, column, i));
        ARROW_RETURN_NOT_OK(lines_.Add(row, batch.column_name(column), value, time_));
      }
      // A row that comes twice has a line each time: no column may be twice in one.
      ARROW_RETURN_NOT_OK(lines_.End());
    }
    return arrow::Status::OK();
  }

 private:
  const int row_;
  const std::optional<int64_t> time_;
  CellLines lines_;
};

class Objects : public LinePrinter {
 public:
  Objects(int id, int data, OutputPipe& output) : id_(id), data_(data), output_(output) {}

  arrow::Status Print(const arrow::RecordBatch& batch) override {
    std::string line;
    for (int64_t i = 0; i < batch.num_rows(); ++i) {
      ARROW_ASSIGN_OR_RAISE(const int64_t id, NeedWhole(batch, id_, i));
      ARROW_ASSIGN_OR_RAISE(std::string data, NeedBytes(batch, data_, i));
      // The document stands in the line as it is. In JSON, line breaks are between its parts alone; in what
      // is no JSON they must not begin a line of their own.
      std::replace(data.begin(), data.end(), '\n', ' ');
      line = R"({"id":")" + std::to_string(id) + R"(","data":)" + data + "}\n";
      ARROW_RETURN_NOT_OK(output_.Append(line));
    }
    return arrow::Status::OK();
  }

 private:
  const int id_;
  const int data_;
  OutputPipe& output_;
};

class Mappings : public LinePrinter {
 public:
  Mappings(int from, int to, int sequence, OutputPipe& output)
      : from_(from), to_(to), sequence_(sequence), output_(output) {}

  arrow::Status Print(const arrow::RecordBatch& batch) override {
    for (int64_t i = 0; i < batch.num_rows(); ++i) {
      ARROW_ASSIGN_OR_RAISE(const int64_t from, NeedWhole(batch, from_, i));
      ARROW_ASSIGN_OR_RAISE(const int64_t to, NeedWhole(batch, to_, i));
      ARROW_ASSIGN_OR_RAISE(const int64_t sequence, NeedWhole(batch, sequence_, i));
      ARROW_RETURN_NOT_OK(output_.Append(R"({"from":")" + std::to_string(from) + R"(","to":")" +
                                         std::to_string(to) + R"(","sequence":)" + std::to_string(sequence) +
                                         "}\n"));
    }
    return arrow::Status::OK();
  }

 private:
  const int from_;
  const int to_;
  const int sequence_;
  OutputPipe& output_;
};

class Points : public LinePrinter {
 public:
  Points(const Columns& columns, const std::vector<std::string>& text, OutputPipe& output) : output_(output) {
    for (const std::string& name : columns.names()) {
      std::string key;
      AppendString(key, name);
      keys_.push_back(key + ':');
      is_text_.push_back(std::find(text.begin(), text.end(), name) != text.end());
    }
  }

  arrow::Status Print(const arrow::RecordBatch& batch) override {
    std::string line;
    for (int64_t row = 0; row < batch.num_rows(); ++row) {
      line = "{";
      for (int column = 0; column < batch.num_columns(); ++column) {
        const arrow::Array& array = *batch.column(column);
        if (!HasValue(array, row)) continue;
        if (line.size() > 1) line += ',';
        line += keys_[static_cast<size_t>(column)];
        const arrow::Status added = AddValue(line, array, row, is_text_[static_cast<size_t>(column)]);
        if (!added.ok()) return InColumn(batch.column_name(column), added);
      }
      line += "}\n";
      ARROW_RETURN_NOT_OK(output_.Append(line));
    }
    return arrow::Status::OK();
  }

 private:
  static arrow::Status AddValue(std::string& line, const arrow::Array& array, int64_t row, bool as_text) {
    if (!as_text) return AppendJson(line, array, row);
    ARROW_ASSIGN_OR_RAISE(const std::string bytes, BytesOf(array, row));
    AppendBytes(line, bytes);
    return arrow::Status::OK();
  }

  OutputPipe& output_;
  std::vector<std::string> keys_;  // of each column, with ':' after it
  std::vector<bool> is_text_;
};

}  // namespace

arrow::Result<std::unique_ptr<LinePrinter>> NewLinePrinter(const LineOptions& options,
                                                           const std::string& note,
                                                           const arrow::Schema& schema, OutputPipe& output) {
  const Columns columns(schema);
  switch (options.form) {
    case LineForm::kRows: {
      const bool is_long = note.empty() ? columns.Has("column") && columns.Has("value") : note == "long";
      if (is_long) return LongRows::New(columns, output);
      ARROW_ASSIGN_OR_RAISE(const int row, columns.Need("row"));
      return std::make_unique<WideRows>(row, options.time, output);
    }
    case LineForm::kObjects: {
      ARROW_ASSIGN_OR_RAISE(const int id, columns.Need("id"));
      ARROW_ASSIGN_OR_RAISE(const int data, columns.Need("data"));
      return std::make_unique<Objects>(id, data, output);
    }
    case LineForm::kMappings: {
      ARROW_ASSIGN_OR_RAISE(const int from, columns.Need("from"));
      ARROW_ASSIGN_OR_RAISE(const int to, columns.Need("to"));
      ARROW_ASSIGN_OR_RAISE(const int sequence, columns.Need("sequence"));
      return std::make_unique<Mappings>(from, to, sequence, output);
    }
    case LineForm::kPoints:
      break;
  }
  return std::make_unique<Points>(columns, options.text, output);
}

}  // namespace kvstore::columnar
