#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// The row keys of the dataset that holds the reports. Stored: never change without a new format version.
///
///   points     salt u8 (0..63) | report u32 | metric u32 | period start u64 in s      17 bytes, big endian
///   roll-ups   the key of the row of points that they were made from, with 64 added to the salt
///   metadata   FF 'r' name                    one row a report
///   batches    FF 'b' report u32              what is known of each batch that has an ID
///   counter    FF 'n'                         the next report's ID
namespace kvstore::reports {

struct RowKey {
  uint8_t salt = 0;
  uint32_t report = 0;
  uint32_t metric = 0;
  uint64_t period_start_s = 0;
  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

inline constexpr size_t kRowKeyBytes = 17;

std::string EncodeRowKey(const RowKey& key);
/// DATA_LOSS unless the bytes are the key of a row of points.
absl::StatusOr<RowKey> DecodeRowKey(std::string_view bytes);

/// The key of the row that has the roll-ups of a row of points. They have a row of their own, so that a query
/// of points reads none of them, and a query of roll-ups finds those of neighbouring periods side by side.
std::string EncodeRollupKey(const RowKey& points);
/// The key of the row of points; DATA_LOSS unless the bytes are the key of a row of roll-ups.
absl::StatusOr<RowKey> DecodeRollupKey(std::string_view bytes);

/// All rows of points of a report under one salt: keys from `start` (inclusive) to `end` (exclusive).
struct KeyRange {
  std::string start;
  std::string end;
};
KeyRange ReportRange(uint8_t salt, uint32_t report);
/// All rows of roll-ups of a report whose points are under this salt.
KeyRange RollupRange(uint8_t salt, uint32_t report);
/// Those of one metric whose periods start from `first_s` to `last_s`, both inclusive.
KeyRange MetricRange(uint8_t salt, uint32_t report, uint32_t metric, uint64_t first_s, uint64_t last_s);

/// Which of a report's `salts` rows for a period a series lies in. Time takes no part, so that a whole series
/// has one salt; nor do segments with the ID 0, the default of their key, so that a series keeps its salt
/// when a segment key is added.
///
/// segments  IDs of the segment values, in the order of the keys.
uint8_t SaltOf(uint32_t report, uint32_t metric, std::span<const uint32_t> segments, uint32_t salts);

std::string MetadataRow(std::string_view report_name);
/// The rows of metadata of all reports.
KeyRange MetadataRange();
/// The report's name in the key of its row of metadata; DATA_LOSS unless it is one.
absl::StatusOr<std::string> ReportOfMetadataRow(std::string_view row);
std::string BatchesRow(uint32_t report);
std::string CounterRow();

}  // namespace kvstore::reports
