#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Keys of the Redis protocol: "dataset:row" for a row, "dataset:row:column" for one of its columns, and
/// "dataset:id" for an object or for a mapping's list. In a row key and in a column name \xNN stands for a
/// byte, and must for ':'; \\ stands for \. No error quotes a key.
namespace kvstore::server::resp {

struct Key {
  std::string_view dataset;  ///< Points into the text that was parsed.
  std::string row;
  std::optional<std::string> column;
};

/// Parses a key with or without a column. INVALID_ARGUMENT says what is wrong.
absl::StatusOr<Key> ParseKey(std::string_view text);
/// The same, for commands that take a row: a key with a column is refused.
absl::StatusOr<Key> ParseRowKey(std::string_view text);
/// The same, for commands that take a column: a key without one is refused.
absl::StatusOr<Key> ParseColumnKey(std::string_view text);

struct IdKey {
  std::string_view dataset;  ///< Points into the text that was parsed.
  uint64_t id = 0;
};
absl::StatusOr<IdKey> ParseIdKey(std::string_view text);

/// Returns the dataset of a key, whatever follows it; the whole text if it names none.
std::string_view DatasetOf(std::string_view key);
/// Returns INVALID_ARGUMENT for a key without a ':'. To be called before the key's dataset is looked for: all
/// of such a key would count as the name of a dataset, which errors and the log quote.
absl::Status CheckNamesDataset(std::string_view key);

/// Returns the key of a row, as ParseRowKey takes it.
std::string RowKey(std::string_view dataset, std::string_view row);
/// Returns the key of an object, or of a mapping's list.
std::string IdKeyText(std::string_view dataset, uint64_t id);

}  // namespace kvstore::server::resp
