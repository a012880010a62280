#include "export/parquet/cell_text.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "export/parquet/json_text.h"

namespace kvstore::columnar {
namespace {

using arrow::Array;
using arrow::Type;

template <typename ArrayType>
auto ValueAt(const Array& array, int64_t row) {
  return static_cast<const ArrayType&>(array).Value(row);
}

template <typename ArrayType>
std::string_view ViewAt(const Array& array, int64_t row) {
  return static_cast<const ArrayType&>(array).GetView(row);
}

/// The bytes of a value of a type that has bytes; nullopt for any other type.
std::optional<std::string_view> StoredBytes(const Array& array, int64_t row) {
  switch (array.type_id()) {
    case Type::STRING:
    case Type::BINARY:
      return ViewAt<arrow::BinaryArray>(array, row);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      return ViewAt<arrow::LargeBinaryArray>(array, row);
    case Type::FIXED_SIZE_BINARY:
      return ViewAt<arrow::FixedSizeBinaryArray>(array, row);
    default:
      return std::nullopt;
  }
}

/// A whole number of a type that fits 64 bits with a sign; nullopt for any other type.
std::optional<int64_t> StoredWhole(const Array& array, int64_t row) {
  switch (array.type_id()) {
    case Type::INT8:
      return ValueAt<arrow::Int8Array>(array, row);
    case Type::INT16:
      return ValueAt<arrow::Int16Array>(array, row);
    case Type::INT32:
      return ValueAt<arrow::Int32Array>(array, row);
    case Type::INT64:
      return ValueAt<arrow::Int64Array>(array, row);
    case Type::UINT8:
      return ValueAt<arrow::UInt8Array>(array, row);
    case Type::UINT16:
      return ValueAt<arrow::UInt16Array>(array, row);
    case Type::UINT32:
      return ValueAt<arrow::UInt32Array>(array, row);
    default:
      return std::nullopt;
  }
}

/// How many units of a time are a second.
int64_t UnitsOfSecond(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return 1;
    case arrow::TimeUnit::MILLI:
      return 1'000;
    case arrow::TimeUnit::MICRO:
      return 1'000'000;
    case arrow::TimeUnit::NANO:
      break;
  }
  return 1'000'000'000;
}

/// A time in milliseconds; nullopt if it is no whole number of them.
std::optional<int64_t> Milliseconds(const Array& array, int64_t row) {
  if (array.type_id() == Type::DATE64) return ValueAt<arrow::Date64Array>(array, row);
  const int64_t time = ValueAt<arrow::TimestampArray>(array, row);
  const int64_t units = UnitsOfSecond(static_cast<const arrow::TimestampType&>(*array.type()).unit());
  if (units == 1) {
    int64_t result = 0;
    if (__builtin_mul_overflow(time, int64_t{1000}, &result)) return std::nullopt;
    return result;
  }
  const int64_t divisor = units / 1000;
  return time % divisor == 0 ? std::optional(time / divisor) : std::nullopt;
}

bool IsTime(const Array& array) {
  return array.type_id() == Type::TIMESTAMP || array.type_id() == Type::DATE64;
}

bool IsList(Type::type type) { return type == Type::LIST || type == Type::LARGE_LIST; }

arrow::Status Unexpected(const Array& array) {
  return arrow::Status::Invalid("it has values of type ", array.type()->ToString(),
                                ", which have no place here");
}

/// A value of any type that can be read, as Arrow shows it.
arrow::Result<std::string> Shown(const Array& array, int64_t row) {
  ARROW_ASSIGN_OR_RAISE(const auto scalar, array.GetScalar(row));
  return scalar->ToString();
}

/// Appends the shortest text that reads back as the same number.
template <typename Number>
void AppendNumber(std::string& out, Number number) {
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), number);
  out.append(text, end.ptr);
}

template <typename ListArray>
arrow::Status AppendList(std::string& out, const Array& array, int64_t row) {
  const auto& lists = static_cast<const ListArray&>(array);
  const Array& values = *lists.values();
  out += '[';
  for (auto at = lists.value_offset(row); at < lists.value_offset(row + 1); ++at) {
    if (at != lists.value_offset(row)) out += ',';
    if (values.IsNull(at)) {
      out += "null";
    } else {
      ARROW_RETURN_NOT_OK(AppendJson(out, values, at));
    }
  }
  out += ']';
  return arrow::Status::OK();
}

/// The text of a number that is neither whole within 64 bits nor in bytes; nullopt for any other type.
std::optional<std::string> NumberText(const Array& array, int64_t row) {
  std::string text;
  switch (array.type_id()) {
    case Type::UINT64:
      AppendNumber(text, ValueAt<arrow::UInt64Array>(array, row));
      return text;
    case Type::FLOAT:
      AppendNumber(text, ValueAt<arrow::FloatArray>(array, row));
      return text;
    case Type::DOUBLE:
      AppendNumber(text, ValueAt<arrow::DoubleArray>(array, row));
      return text;
    case Type::DECIMAL32:
    case Type::DECIMAL64:
    case Type::DECIMAL128:
    case Type::DECIMAL256:
      return Shown(array, row).ValueOr("");
    default:
      return std::nullopt;
  }
}

}  // namespace

bool CanRead(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::NA:
    case Type::BOOL:
    case Type::INT8:
    case Type::INT16:
    case Type::INT32:
    case Type::INT64:
    case Type::UINT8:
    case Type::UINT16:
    case Type::UINT32:
    case Type::UINT64:
    case Type::FLOAT:
    case Type::DOUBLE:
    case Type::STRING:
    case Type::BINARY:
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
    case Type::FIXED_SIZE_BINARY:
    case Type::TIMESTAMP:
    case Type::DATE32:
    case Type::DATE64:
    case Type::DECIMAL32:
    case Type::DECIMAL64:
    case Type::DECIMAL128:
    case Type::DECIMAL256:
      return true;
    case Type::LIST:
    case Type::LARGE_LIST:
      return !IsList(type.field(0)->type()->id()) && CanRead(*type.field(0)->type());
    case Type::DICTIONARY:
      return CanRead(*static_cast<const arrow::DictionaryType&>(type).value_type());
    default:
      return false;
  }
}

bool HasValue(const Array& array, int64_t row) {
  if (array.IsNull(row)) return false;
  switch (array.type_id()) {
    case Type::NA:
      return false;
    case Type::LIST:
      return static_cast<const arrow::ListArray&>(array).value_length(row) > 0;
    case Type::LARGE_LIST:
      return static_cast<const arrow::LargeListArray&>(array).value_length(row) > 0;
    default:
      return true;
  }
}

arrow::Result<int64_t> WholeOf(const Array& array, int64_t row) {
  if (const auto whole = StoredWhole(array, row)) return *whole;
  if (!IsTime(array)) return Unexpected(array);
  if (const auto time = Milliseconds(array, row)) return *time;
  return arrow::Status::Invalid("it has a time that is no whole number of milliseconds, in row ", row,
                                " of a batch");
}

arrow::Result<std::string> BytesOf(const Array& array, int64_t row) {
  if (const auto bytes = StoredBytes(array, row)) return std::string(*bytes);
  if (array.type_id() == Type::BOOL) return ValueAt<arrow::BooleanArray>(array, row) ? "true" : "false";
  if (auto text = NumberText(array, row)) return *std::move(text);
  if (array.type_id() == Type::DATE32) return Shown(array, row);
  if (array.type_id() == Type::DICTIONARY) {
    const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
    return BytesOf(*coded.dictionary(), coded.GetValueIndex(row));
  }
  ARROW_ASSIGN_OR_RAISE(const int64_t whole, WholeOf(array, row));
  return std::to_string(whole);
}

arrow::Status AppendJson(std::string& out, const Array& array, int64_t row) {
  if (const auto bytes = StoredBytes(array, row)) {
    AppendBytes(out, *bytes);
  } else if (const auto whole = StoredWhole(array, row)) {
    AppendNumber(out, *whole);
  } else if (const auto number = NumberText(array, row)) {
    // JSON has no number that is infinite, or none; whoever reads the line refuses the string.
    const bool is_finite = number->find_first_of("ni") == std::string::npos;
    if (is_finite) {
      out += *number;
    } else {
      AppendString(out, *number);
    }
  } else if (array.type_id() == Type::BOOL) {
    out += ValueAt<arrow::BooleanArray>(array, row) ? "true" : "false";
  } else if (array.type_id() == Type::LIST) {
    return AppendList<arrow::ListArray>(out, array, row);
  } else if (array.type_id() == Type::LARGE_LIST) {
    return AppendList<arrow::LargeListArray>(out, array, row);
  } else if (array.type_id() == Type::DICTIONARY) {
    const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
    return AppendJson(out, *coded.dictionary(), coded.GetValueIndex(row));
  } else if (const auto time = IsTime(array) ? Milliseconds(array, row) : std::nullopt) {
    AppendNumber(out, *time);
  } else {
    // A date; or a time that is no whole number of milliseconds, which whoever reads the line refuses.
    ARROW_ASSIGN_OR_RAISE(const std::string shown, Shown(array, row));
    AppendString(out, shown);
  }
  return arrow::Status::OK();
}

}  // namespace kvstore::columnar
