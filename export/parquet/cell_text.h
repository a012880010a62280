#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <string>

/// The values of a Parquet file's columns, in the forms that lines have. A value that is null is none:
/// callers look for it first.
namespace kvstore::columnar {

/// Whether values of the type can be read; all but structs, maps and the like.
bool CanRead(const arrow::DataType& type);

/// Whether a row has a value: neither null nor an empty list. The functions below are for rows that have one.
bool HasValue(const arrow::Array& array, int64_t row);

/// Returns a value as the bytes of a cell: bytes and text as they are, numbers as digits, times as
/// milliseconds since 1970, truth values as "true" and "false". Invalid for a list, or a time that is no
/// whole number of milliseconds.
arrow::Result<std::string> BytesOf(const arrow::Array& array, int64_t row);

/// Returns a whole number, or a time in milliseconds since 1970. Invalid for a value of any other type.
arrow::Result<int64_t> WholeOf(const arrow::Array& array, int64_t row);

/// Appends a value in the form that it has in JSON: a number, a string, a truth value, an array; a time as
/// milliseconds since 1970, and a date as "2013-01-31".
arrow::Status AppendJson(std::string& out, const arrow::Array& array, int64_t row);

}  // namespace kvstore::columnar
