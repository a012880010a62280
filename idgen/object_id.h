#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore {

/// The 64-bit ID of an object: where it lives (shard), what it is (type), and which one it is (local).
///
///   bit 63..62  reserved, zero
///   bit 61..46  shard, 0..65535
///   bit 45..36  type, 1..1023
///   bit 35..0   local, 1..2^36-1, counted up by the shard
///
/// An object never leaves its shard, so its ID always says where it is. An ObjectId holds only valid values;
/// Make, FromValue and Parse make one. A plain value, and as thread-safe as one. Source: "Sharding Pinterest:
/// How we scaled our MySQL fleet".
class ObjectId {
 public:
  static constexpr uint32_t kMaxShard = 0xFFFF;
  static constexpr uint32_t kMaxType = 0x3FF;
  static constexpr uint64_t kMaxLocal = (uint64_t{1} << 36) - 1;

  /// Composes an ID. INVALID_ARGUMENT names the part that is out of range.
  static absl::StatusOr<ObjectId> Make(uint64_t shard, uint64_t type, uint64_t local);

  /// Makes an ID from its raw value. INVALID_ARGUMENT if a reserved bit is set, or type or local is zero.
  static absl::StatusOr<ObjectId> FromValue(uint64_t value);

  /// Reads the decimal text form. INVALID_ARGUMENT for anything but digits, and as FromValue does.
  static absl::StatusOr<ObjectId> Parse(std::string_view text);

  /// Returns the shard of a raw value below 2^62, which need not be a valid ID: an end of a mapping, for
  /// example.
  static constexpr uint32_t ShardOf(uint64_t value) { return static_cast<uint32_t>(value >> kShardAt); }
  /// Composes a raw value of parts that are in range, or zero, as where the IDs of a shard begin.
  static constexpr uint64_t ValueOf(uint32_t shard, uint32_t type, uint64_t local) {
    return uint64_t{shard} << kShardAt | uint64_t{type} << kTypeAt | local;
  }

  uint64_t value() const { return value_; }
  uint32_t shard() const { return ShardOf(value_); }
  uint32_t type() const { return static_cast<uint32_t>(value_ >> kTypeAt) & kMaxType; }
  uint64_t local() const { return value_ & kMaxLocal; }

  /// The decimal text form.
  std::string ToString() const;

  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;

 private:
  static constexpr int kShardAt = 46;
  static constexpr int kTypeAt = 36;

  explicit ObjectId(uint64_t value) : value_(value) {}
  uint64_t value_;
};

}  // namespace kvstore

template <>
struct std::hash<kvstore::ObjectId> {
  size_t operator()(const kvstore::ObjectId& id) const noexcept { return std::hash<uint64_t>()(id.value()); }
};
