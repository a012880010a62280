#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

/// Two programs, the output of one being the input of the other, as a shell has it; with what went by, and
/// what they had to say. (Boost.Process would do, but for what writing to a program that has ended does to
/// this one.)
namespace kvstore::shardops {

/// A text that a program can open as a file, and nobody else: it has no name in any folder. Gone with this.
class UnnamedFile {
 public:
  explicit UnnamedFile(const std::string& text);
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  /// As a child of this process finds it.
  std::string path() const;

 private:
  const int fd_;
};

/// So much of what goes by is kept, from the beginning.
inline constexpr size_t kPipeHeader = size_t{64} << 10;

/// Runs `from_program | to_program`: words, the first looked up in the PATH. Both end with this process, if
/// that is killed.
///
/// progress  bytes that went by; false ends both. May be null.
///
/// The beginning of what went by. INTERNAL with what the one that failed wrote to its standard error;
/// FAILED_PRECONDITION if it is not installed; CANCELLED.
absl::StatusOr<std::string> Pipe(const std::vector<std::string>& from_program,
                                 const std::vector<std::string>& to_program,
                                 const std::function<bool(uint64_t)>& progress);

}  // namespace kvstore::shardops
