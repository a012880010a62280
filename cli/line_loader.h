#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/kvstore.h"

/// What `kv import` does with the lines of its file.
namespace kvstore::cli {

/// What became of a line, or with LoadMode::write unset what would have.
enum class Outcome : uint8_t {
  kRejected,  ///< Line::problem says why.
  kLoaded,    ///< It was not compared.
  kNew,       ///< Nothing was there under its names.
  kChanged,   ///< Something else was there.
  kSame,      ///< The store answers already as it says. Nothing is written.
};

struct Line {
  uint64_t number = 0;  ///< From 1.
  std::string text;
  absl::Status problem;  ///< What is wrong with it; one that has a problem already is passed over.
  Outcome outcome = Outcome::kRejected;
};

/// Whether trying the line again would help nothing.
bool IsLinesFault(const absl::Status& status);

struct LoadMode {
  bool compare = false;  ///< Looks at what is there first, and writes only what differs.
  bool write = true;
  /// A dataset of rows that knows the objects' IDs by the keys that they had elsewhere, as column "id";
  /// empty: none.
  std::string keys;
};

/// Loads lines of one dataset. Externally synchronised.
class LineLoader {
 public:
  virtual ~LineLoader() = default;
  /// Loads some lines, and sets their problems and outcomes. An error of the store, which another try may
  /// cure, is returned: then some of them may have been loaded.
  [[nodiscard]] virtual absl::Status Load(std::vector<Line>& lines) = 0;
};

/// A loader for the dataset's shape. The store must outlive it.
std::unique_ptr<LineLoader> NewLineLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode);

}  // namespace kvstore::cli
