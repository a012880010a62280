#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvstore::fleet_backup {

/// Cuts a stream of bytes into pieces whose ends depend on the bytes before them alone ("content-defined
/// chunking"): where two streams have the same bytes for long enough, they have the same pieces, whatever is
/// inserted before. So a table that has not changed is sent once, wherever in the stream of a backup it is.
/// Externally synchronised.
class PieceCutter {
 public:
  /// A piece has at least so many bytes, unless it is the last one, ...
  static constexpr size_t kLeastBytes = size_t{4} << 20;
  /// ... about so many more on average, ...
  static constexpr size_t kMeanBytes = size_t{4} << 20;
  /// ... and at most so many.
  static constexpr size_t kMostBytes = size_t{32} << 20;

  /// take  Gets each piece; its error ends Add and Finish, which return it.
  explicit PieceCutter(std::function<absl::Status(std::string piece)> take);

  absl::Status Add(std::string_view bytes);
  /// Cuts what is left after the last piece, if anything.
  absl::Status Finish();

 private:
  const std::function<absl::Status(std::string piece)> take_;
  std::string piece_;
  uint64_t hash_ = 0;  // of the last 64 bytes
};

}  // namespace kvstore::fleet_backup
