#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/pipe/table.h"

namespace kvstore::pipe {

/// Collects rows for a frame with a batch. Its memory is reused. Externally synchronised.
///
///   builder.AddBytes(0, "user:7");
///   builder.AddNumber(1, 1700000000000);
///   builder.EndRow();
///   for (std::string_view part : builder.Frame()) Send(part);
///   builder.Clear();
class BatchBuilder {
 public:
  explicit BatchBuilder(const Schema& schema);

  // A row gives each column exactly one value, of the column's type, or none if it is nullable.

  void AddNull(size_t column);
  void AddBytes(size_t column, std::string_view bytes);
  /// For all types without bytes but kDouble.
  void AddNumber(size_t column, int64_t number);
  void AddDouble(size_t column, double number);
  void EndRow() { ++rows_; }

  size_t rows() const { return rows_; }
  /// How many bytes the frame has about.
  size_t bytes() const { return bytes_; }

  /// Returns the frame of the rows, in parts that follow one another; valid until the next call of another
  /// method. There must be a row, no more than kMaxBatchRows, and bytes() within kMaxFrameBytes.
  std::vector<std::string_view> Frame();
  /// Forgets the rows.
  void Clear();

 private:
  struct Values {
    bool nullable = false;
    bool has_bytes = false;
    size_t count = 0;
    std::string validity;  // if it is nullable
    std::vector<int64_t> numbers;
    std::vector<int32_t> offsets;
    std::string bytes;
  };

  void AddValidity(Values& values, bool valid);

  std::vector<Values> columns_;
  std::string header_;
  size_t rows_ = 0;
  size_t bytes_ = 0;
};

}  // namespace kvstore::pipe
