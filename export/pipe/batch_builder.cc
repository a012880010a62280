#include "export/pipe/batch_builder.h"

#include <bit>
#include <cstring>

namespace kvstore::pipe {
namespace {

constexpr std::string_view kPadding("\0\0\0\0\0\0\0", 7);

/// Adds a part, and what fills it up to a multiple of 8.
void AddPadded(std::vector<std::string_view>& parts, const void* data, size_t size) {
  if (size == 0) return;
  parts.emplace_back(static_cast<const char*>(data), size);
  if (const size_t over = size % 8; over != 0) parts.push_back(kPadding.substr(0, 8 - over));
}

}  // namespace

BatchBuilder::BatchBuilder(const Schema& schema) : columns_(schema.columns.size()) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].nullable = schema.columns[i].nullable;
    columns_[i].has_bytes = HasBytes(schema.columns[i].type);
  }
  Clear();
}

void BatchBuilder::AddValidity(Values& values, bool valid) {
  const size_t bit = values.count++ % 8;
  if (!values.nullable) return;
  if (bit == 0) values.validity.push_back('\0');
  if (valid) values.validity.back() = static_cast<char>(values.validity.back() | 1 << bit);
}

void BatchBuilder::AddNull(size_t column) {
  Values& values = columns_[column];
  AddValidity(values, false);
  if (values.has_bytes) {
    values.offsets.push_back(static_cast<int32_t>(values.bytes.size()));
    bytes_ += sizeof(int32_t);
  } else {
    values.numbers.push_back(0);
    bytes_ += sizeof(int64_t);
  }
}

void BatchBuilder::AddBytes(size_t column, std::string_view bytes) {
  Values& values = columns_[column];
  AddValidity(values, true);
  values.bytes += bytes;
  values.offsets.push_back(static_cast<int32_t>(values.bytes.size()));
  bytes_ += sizeof(int32_t) + bytes.size();
}

void BatchBuilder::AddNumber(size_t column, int64_t number) {
  Values& values = columns_[column];
  AddValidity(values, true);
  values.numbers.push_back(number);
  bytes_ += sizeof(int64_t);
}

void BatchBuilder::AddDouble(size_t column, double number) {
  AddNumber(column, std::bit_cast<int64_t>(number));
}

std::vector<std::string_view> BatchBuilder::Frame() {
  std::vector<std::string_view> parts = {""};  // the header, whose size is not known yet
  for (const Values& values : columns_) {
    AddPadded(parts, values.validity.data(), values.validity.size());
    AddPadded(parts, values.numbers.data(), values.numbers.size() * sizeof(int64_t));
    if (!values.has_bytes) continue;
    AddPadded(parts, values.offsets.data(), values.offsets.size() * sizeof(int32_t));
    AddPadded(parts, values.bytes.data(), values.bytes.size());
  }
  size_t size = 2 * sizeof(uint32_t);
  for (const std::string_view part : parts) size += part.size();
  const uint32_t header[] = {static_cast<uint32_t>(FrameKind::kBatch), static_cast<uint32_t>(size),
                             static_cast<uint32_t>(rows_), 0};
  header_.resize(sizeof(header));
  std::memcpy(header_.data(), header, sizeof(header));
  parts.front() = header_;
  return parts;
}

void BatchBuilder::Clear() {
  for (Values& values : columns_) {
    values.count = 0;
    values.validity.clear();
    values.numbers.clear();
    values.bytes.clear();
    values.offsets.assign(values.has_bytes ? 1 : 0, 0);
  }
  rows_ = 0;
  bytes_ = 0;
}

}  // namespace kvstore::pipe
