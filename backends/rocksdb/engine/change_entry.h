#pragma once

#include <rocksdb/iterator.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/big_endian.h"
#include "base/varint.h"

/// The stored form of a change log (change_log.h), for the files that implement it.
namespace kvstore::rocks {

/// The key of the log's consumers. It is before all numbers.
inline constexpr std::string_view kChangeConsumersKey("\0\0\0", 3);

/// Returns the key of an entry.
inline std::string ChangeKey(uint64_t number) {
  std::string key;
  AppendBigEndian(key, number);
  return key;
}

inline absl::Status ChangeNotDecoded() {
  return absl::DataLossError("an entry of a change log does not decode");
}

/// An entry of the log. `units` is the iterator's, and valid as long as that stays.
struct ChangeEntry {
  uint64_t number = 0;
  uint64_t at_ms = 0;
  std::string_view units;
};

/// Decodes the entry at which the iterator is. DATA_LOSS if it is none.
inline absl::StatusOr<ChangeEntry> ReadChangeEntry(const rocksdb::Iterator& it) {
  if (it.key().size() != sizeof(uint64_t) || it.value().size() < sizeof(uint64_t)) return ChangeNotDecoded();
  const std::string_view value = it.value().ToStringView();
  return ChangeEntry{.number = ReadBigEndian<uint64_t>(it.key().ToStringView()),
                     .at_ms = ReadBigEndian<uint64_t>(value),
                     .units = value.substr(sizeof(uint64_t))};
}

}  // namespace kvstore::rocks
