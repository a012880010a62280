#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore/v1/reports.pb.h"
#include "reports/number.h"

namespace kvstore::wire {

/// Adds a number to a column. Columns of one kind stay without `is_real`.
void AddNumber(const reports::Number& number, v1::Numbers& column);

/// The numbers of a column. INVALID_ARGUMENT unless it is sound and has this many, each finite.
///
/// field  the column's name in errors.
absl::StatusOr<std::vector<reports::Number>> NumbersOf(const v1::Numbers& column, size_t count,
                                                       std::string_view field);

}  // namespace kvstore::wire
