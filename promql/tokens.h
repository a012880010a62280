#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::promql {

/// A piece of a query.
struct Token {
  enum class Kind {
    kName,      ///< sum, visits:views
    kNumber,    ///< 3, 0.99
    kDuration,  ///< 1h30m
    kString,    ///< "DE", without its quotes and escapes
    kMark,      ///< ( ) { } [ ] , = != =~ !~ and what else stands alone
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text;
  size_t at = 0;  ///< Where it begins, in bytes from 0.
};

/// Divides a query into tokens, the last one kEnd. INVALID_ARGUMENT names the place of what is none.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view query);

}  // namespace kvstore::promql
