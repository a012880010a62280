#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::cached {

/// An answer of a Redis server (RESP 2).
struct RedisAnswer {
  enum class Kind : uint8_t { kText, kNumber, kNothing, kError, kList };
  Kind kind = Kind::kNothing;
  std::string text;                ///< The text of kText and kError.
  int64_t number = 0;              ///< The value of kNumber.
  std::vector<RedisAnswer> parts;  ///< The elements of kList; none of them is a list.
};

/// Takes a server's bytes apart into answers. Written here because hiredis takes as much memory as a server
/// announces, and Debian's has no TLS. An answer whose head shows that it is not allowed is refused before
/// any memory is taken for it. Externally synchronised.
class RedisAnswers {
 public:
  /// The largest text that is accepted: a value, with the letter in front that says what it is.
  static constexpr size_t kMaxTextBytes = size_t{1} << 20;
  static constexpr size_t kMaxLineBytes = 2048;

  void Append(std::string_view bytes) { bytes_.append(bytes); }
  /// Where what has arrived may be appended to directly.
  std::string& bytes() { return bytes_; }
  /// Returns the next answer; nullopt if not all of it has arrived. UNAVAILABLE for bytes that are no answer,
  /// or are too large: the connection is of no use then.
  ///
  /// most_parts  A list of more is refused.
  absl::StatusOr<std::optional<RedisAnswer>> Next(size_t most_parts);
  /// Whether all bytes that were appended belong to answers that were returned.
  bool empty() const { return used_ == bytes_.size() && !list_; }

 private:
  /// The next answer that is no list, or a list without its parts, whose number is in `number`.
  absl::StatusOr<std::optional<RedisAnswer>> NextPart();
  void Use(size_t size);

  std::string bytes_;
  size_t used_ = 0;
  std::optional<RedisAnswer> list_;  // of which not all parts have arrived
};

}  // namespace kvstore::cached
