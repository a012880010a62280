#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/kvstore.h"

/// How `kv import` loads the lines of its file.
namespace kvstore::cli {

/// The result of loading a line; with LoadMode::write unset, the result that loading it would have had.
enum class Outcome : uint8_t {
  kRejected,  ///< Line::problem says why.
  kLoaded,    ///< Written without a comparison.
  kNew,       ///< The store had nothing under its names.
  kChanged,   ///< The store had something else.
  kSame,      ///< The store has it already. Nothing is written.
};

struct Line {
  uint64_t number = 0;  ///< From 1.
  std::string text;
  absl::Status problem;  ///< The fault of the line. A loader skips a line that has one already.
  Outcome outcome = Outcome::kRejected;
};

/// Returns whether the error is the line's own fault, so that a retry would not help.
bool IsLinesFault(const absl::Status& status);

struct LoadMode {
  bool compare = false;  ///< Reads what the store has first, and writes only what differs.
  bool write = true;
  /// Name of a dataset of rows that maps the keys that objects had elsewhere to their IDs here (column "id");
  /// empty: none.
  std::string keys;
};

/// Loads lines of one dataset. Externally synchronised.
class LineLoader {
 public:
  virtual ~LineLoader() = default;
  /// Loads some lines, and sets their problems and outcomes. Returns an error of the store, after which a
  /// retry may succeed; some of the lines may have been loaded then.
  [[nodiscard]] virtual absl::Status Load(std::vector<Line>& lines) = 0;
};

}  // namespace kvstore::cli
