#include "reports/row_key.h"

#include <fmt/format.h>

#include "base/big_endian.h"
#include "reports/report_types.h"
#include "reports/stable_hash.h"

namespace kvstore::reports {
namespace {

constexpr std::string_view kMetadataPrefix = "\xFFr";
constexpr std::string_view kMetadataEnd = "\xFFs";

}  // namespace

std::string EncodeRowKey(const RowKey& key) {
  std::string bytes;
  bytes.reserve(kRowKeyBytes);
  AppendBigEndian(bytes, key.salt);
  AppendBigEndian(bytes, key.report);
  AppendBigEndian(bytes, key.metric);
  AppendBigEndian(bytes, key.period_start_s);
  return bytes;
}

absl::StatusOr<RowKey> DecodeRowKey(std::string_view bytes) {
  if (bytes.size() != kRowKeyBytes || static_cast<uint8_t>(bytes[0]) >= kMaxSalts) {
    return absl::DataLossError(
        fmt::format("row: not the key of a row of points ({} bytes); a key has {} bytes and a salt below {}",
                    bytes.size(), kRowKeyBytes, kMaxSalts));
  }
  return RowKey{.salt = ReadBigEndian<uint8_t>(bytes),
                .report = ReadBigEndian<uint32_t>(bytes.substr(1)),
                .metric = ReadBigEndian<uint32_t>(bytes.substr(5)),
                .period_start_s = ReadBigEndian<uint64_t>(bytes.substr(9))};
}

std::string EncodeRollupKey(const RowKey& points) {
  RowKey key = points;
  key.salt = static_cast<uint8_t>(points.salt + kMaxSalts);
  return EncodeRowKey(key);
}

absl::StatusOr<RowKey> DecodeRollupKey(std::string_view bytes) {
  const uint8_t salt = bytes.empty() ? uint8_t{0} : static_cast<uint8_t>(bytes[0]);
  if (salt < kMaxSalts) return absl::DataLossError("row: not the key of a row of roll-ups");
  std::string points(bytes);
  points[0] = static_cast<char>(salt - kMaxSalts);
  return DecodeRowKey(points);
}

KeyRange ReportRange(uint8_t salt, uint32_t report) {
  KeyRange range;
  AppendBigEndian(range.start, salt);
  AppendBigEndian(range.start, report);
  // Longer than any key with this prefix can be: the greatest such key and one byte after it.
  range.end = EncodeRowKey({salt, report, UINT32_MAX, UINT64_MAX}) + '\0';
  return range;
}

KeyRange RollupRange(uint8_t salt, uint32_t report) {
  return ReportRange(static_cast<uint8_t>(salt + kMaxSalts), report);
}

KeyRange MetricRange(uint8_t salt, uint32_t report, uint32_t metric, uint64_t first_s, uint64_t last_s) {
  return {EncodeRowKey({salt, report, metric, first_s}), EncodeRowKey({salt, report, metric, last_s}) + '\0'};
}

uint8_t SaltOf(uint32_t report, uint32_t metric, std::span<const uint32_t> segments, uint32_t salts) {
  std::string bytes;
  bytes.reserve(2 * sizeof(uint32_t) * (1 + segments.size()));
  AppendBigEndian(bytes, report);
  AppendBigEndian(bytes, metric);
  for (uint32_t key = 0; key < segments.size(); ++key) {
    if (segments[key] == 0) continue;
    AppendBigEndian(bytes, key);
    AppendBigEndian(bytes, segments[key]);
  }
  return static_cast<uint8_t>(StableHash(bytes) % salts);
}

std::string MetadataRow(std::string_view report_name) {
  return std::string(kMetadataPrefix).append(report_name);
}

KeyRange MetadataRange() { return {std::string(kMetadataPrefix), std::string(kMetadataEnd)}; }

absl::StatusOr<std::string> ReportOfMetadataRow(std::string_view row) {
  if (!row.starts_with(kMetadataPrefix)) return absl::DataLossError("row: not a report's row of metadata");
  return std::string(row.substr(kMetadataPrefix.size()));
}

std::string BatchesRow(uint32_t report) {
  std::string row =
      "\xFF"
      "b";
  AppendBigEndian(row, report);
  return row;
}

std::string CounterRow() {
  return "\xFF"
         "n";
}

}  // namespace kvstore::reports
