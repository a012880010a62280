#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "json/flat_json.h"
#include "reports/batch.h"

namespace kvstore::cli {

/// The value of a point of a file, after it was read and before the point is added to a batch: a record that
/// has one wrong value is rejected as a whole.
struct PointValue {
  size_t metric = 0;                 ///< An index of ReportInfo::metrics.
  reports::Number number;            ///< If the metric is of kind value.
  std::vector<std::string> members;  ///< If it is of kind distinct.
  std::vector<double> values;        ///< If it is of kind distribution.
};

/// Reads a whole number of 64 bits, or a real number: "7", "-2.5", "1e6". Returns nullopt for anything else,
/// and for whole numbers beyond 64 bits. Spaces around it are ignored.
std::optional<reports::Number> ParseNumber(std::string_view text);

/// Reads the text of a cell: a number, or for the other kinds one or more values with ';' between them.
/// INVALID_ARGUMENT says what is wrong.
absl::Status ReadCell(std::string_view text, reports::MetricKind kind, PointValue& value);
/// Reads a number (of kind value; or a string of an integer), a string or an array of strings (distinct), a
/// number or an array of numbers (distribution). INVALID_ARGUMENT says what is wrong.
///
/// given  a value of `json`.
absl::Status ReadJsonValue(const FlatJson& json, const FlatValue& given, reports::MetricKind kind,
                           PointValue& value);

/// Adds the point. Errors as of reports::Batch.
absl::Status AddPoint(reports::Batch& batch, int64_t time, reports::Batch::Segments segments,
                      const PointValue& value);

}  // namespace kvstore::cli
