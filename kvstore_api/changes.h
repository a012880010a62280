#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/limits.h"
#include "kvstore_api/types.h"

/// The changes of a dataset, for whoever keeps something that must follow it: a cache, a search index,
/// another store. Datasets keep them that have DatasetSpec::keep_changes_ms; KVStore::ReadChanges returns
/// them.
namespace kvstore {

/// Values of `from` in ReadChanges, besides tokens.
inline constexpr std::string_view kChangesFromBegin =
    "begin";  ///< With the oldest change that is still kept.
inline constexpr std::string_view kChangesFromNow =
    "now";  ///< With the writes that are acknowledged after this.

/// A column of a row was written or deleted, or a row was deleted.
struct RowChange {
  std::string row;
  /// nullopt: the whole row was deleted. Columns that it has now were written since, and follow as changes of
  /// their own.
  std::optional<std::string> column;
  std::vector<Cell> cells;  ///< The visible ones, newest first; empty: the column is gone.
  /// There are more than these: only the newest ones are told of a column that has more than about a
  /// megabyte. Read it to have all.
  bool more = false;
  friend bool operator==(const RowChange&, const RowChange&) = default;
};

/// An object was created, changed or deleted.
struct ObjectChange {
  uint64_t id = 0;
  uint64_t timestamp = 0;           ///< Object::timestamp; 0 if it is gone.
  std::optional<std::string> data;  ///< JSON; nullopt: it is gone. One that was deleted softly is not.
  friend bool operator==(const ObjectChange&, const ObjectChange&) = default;
};

/// An entry of a mapping was added, given another sequence, or removed.
struct MappingChange {
  uint64_t from = 0;
  uint64_t to = 0;
  std::optional<uint64_t> sequence;  ///< nullopt: it is gone.
  friend bool operator==(const MappingChange&, const MappingChange&) = default;
};

/// A column, object or entry that a write has touched, **as it is now**: it may have been written again
/// since, which follows as another change.
struct Change {
  std::string token;   ///< To go on after this change.
  uint64_t at_ms = 0;  ///< When the write was made, by the clock of the store.
  std::variant<RowChange, ObjectChange, MappingChange> what;  ///< By the dataset's shape.
  friend bool operator==(const Change&, const Change&) = default;
};

struct ChangePage {
  std::vector<Change> changes;
  std::string token;  ///< To go on after this page; never empty.
  /// All writes that were made until then (ms) are in this page or before it; 0 if it is not known, because
  /// more follows at once.
  uint64_t complete_until_ms = 0;
};

/// Selects what a page of changes has.
struct ChangeOptions {
  uint32_t limit = 1000;  ///< Changes of a page, 1..kMaxListEntries.
  size_t max_bytes =
      kDefaultPageBytes;  ///< About, 1..kMaxPageBytes; a page that is not at the end has one change.
};

/// Somebody who follows a dataset and has said how far it has come (KVStore::SetConsumer).
struct ChangeConsumer {
  std::string name;
  /// The place after all changes that it has dealt with. Empty: some of the changes after that are not kept
  /// any more, so it must begin again.
  std::string token;
  uint64_t set_ms = 0;  ///< When that was said.
  uint64_t lag_ms = 0;  ///< How old the oldest change after the token is; 0: there is none.
  friend bool operator==(const ChangeConsumer&, const ChangeConsumer&) = default;
};

/// The changes of a dataset as they come (KVStore::WatchChanges). Must be destroyed before its store.
/// Externally synchronised.
class ChangeStream {
 public:
  virtual ~ChangeStream() = default;

  /// Waits for changes and returns them. A page without changes comes first where there are none yet, and
  /// about once a second while none come: it says until when all were told. CANCELLED and DEADLINE_EXCEEDED
  /// by the caller's CallScope; after these and UNAVAILABLE, call again. After other errors (those of
  /// KVStore::ReadChanges) begin again.
  [[nodiscard]] virtual absl::StatusOr<ChangePage> Next() = 0;
};

}  // namespace kvstore
