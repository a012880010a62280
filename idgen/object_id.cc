#include "idgen/object_id.h"

#include <fmt/format.h>

#include <charconv>

namespace kvstore {

absl::StatusOr<ObjectId> ObjectId::Make(uint64_t shard, uint64_t type, uint64_t local) {
  if (shard > kMaxShard) {
    return absl::InvalidArgumentError(fmt::format("shard {} is out of range 0..{}", shard, kMaxShard));
  }
  if (type < 1 || type > kMaxType) {
    return absl::InvalidArgumentError(fmt::format("type {} is out of range 1..{}", type, kMaxType));
  }
  if (local < 1 || local > kMaxLocal) {
    return absl::InvalidArgumentError(fmt::format("local {} is out of range 1..{}", local, kMaxLocal));
  }
  return ObjectId(ValueOf(static_cast<uint32_t>(shard), static_cast<uint32_t>(type), local));
}

absl::StatusOr<ObjectId> ObjectId::FromValue(uint64_t value) {
  if (value >> 62 != 0) {
    return absl::InvalidArgumentError(
        fmt::format("ID {} has a reserved bit set: the top two bits must be zero", value));
  }
  const ObjectId id(value);
  if (auto made = Make(id.shard(), id.type(), id.local()); !made.ok()) {
    return absl::InvalidArgumentError(fmt::format("ID {}: {}", value, std::string(made.status().message())));
  }
  return id;
}

absl::StatusOr<ObjectId> ObjectId::Parse(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return absl::InvalidArgumentError("an ID is a decimal number below 2^62");
  }
  return FromValue(value);
}

std::string ObjectId::ToString() const { return std::to_string(value_); }

}  // namespace kvstore
