#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit.h"

/// The files of a backup of a dataset, each of which holds units in order of their keys.
/// docs/backup-format.md is for those who read them with other programs; golden tests pin the form.
///
///   file   "KVUNITS1", frames
///   frame  be32(bytes of the compressed units) be32(bytes of the units) zstd(units)
///   unit   be32(bytes) key be32(cells) cells
///   cell   be64(timestamp) be32(bytes) value
namespace kvstore::backup {

/// A frame is compressed when it has so many bytes of units. It has more only for one large unit.
inline constexpr size_t kFrameBytes = size_t{1} << 20;
/// The most bytes of units in a frame: RESOURCE_EXHAUSTED for a unit that has more.
inline constexpr size_t kMaxFrameBytes = size_t{1} << 30;

/// A file ends after the unit with which it has so many bytes of units.
inline constexpr size_t kMostFileBytes = size_t{32} << 20;
/// No file has more bytes, even if its last unit is as large as a frame can be and nothing can be compressed:
/// what frames and zstd add to the units is less than kMostFileBytes.
inline constexpr uint64_t kMaxUnitsFileBytes = uint64_t{kMaxFrameBytes} + 2 * kMostFileBytes;

/// Makes such a file. Externally synchronised.
class UnitsWriter {
 public:
  /// Adds a unit, whose key is after those of all before. RESOURCE_EXHAUSTED if it is too large.
  absl::Status Add(const Unit& unit);
  /// How many bytes of units were added since the last Take.
  size_t bytes() const { return bytes_; }
  /// Returns the file with the units that were added, and begins another one.
  std::string Take();

 private:
  void EndFrame();

  std::string file_;
  std::string frame_;
  size_t bytes_ = 0;
};

/// Reads such a file, whose bytes anybody may have written: calls `take` with its units, those of a frame at
/// a time, and returns its first error. DATA_LOSS if the file does not decode.
absl::Status ReadUnits(std::string_view file, const std::function<absl::Status(std::vector<Unit>)>& take);

}  // namespace kvstore::backup
