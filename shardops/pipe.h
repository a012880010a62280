#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

/// A shell's pipe between two programs, which counts what passes through it and reports the programs' errors.
/// (Boost.Process would do, but writing to a program that has ended would end this process.)
namespace kvstore::shardops {

/// A text that only this process and its children can open as a file: it has no name in any folder. It
/// disappears with this object.
class UnnamedFile {
 public:
  explicit UnnamedFile(const std::string& text);
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  /// Returns the path by which a child of this process opens it.
  std::string path() const;

 private:
  const int fd_;
};

/// How many bytes of the beginning of what passes Pipe returns, at most one block more.
inline constexpr size_t kPipeHeader = size_t{64} << 10;

/// Runs `from_program | to_program`. Each is a list of words; the first word is looked up in the PATH. The
/// programs are killed if this process dies.
///
/// progress  Is called with the number of bytes that have passed; if it returns false, both programs are
/// killed.
///           May be null.
///
/// Returns the beginning of what has passed. INTERNAL with what the program that failed wrote to its standard
/// error; FAILED_PRECONDITION if a program is not installed; CANCELLED if `progress` returned false.
absl::StatusOr<std::string> Pipe(const std::vector<std::string>& from_program,
                                 const std::vector<std::string>& to_program,
                                 const std::function<bool(uint64_t)>& progress);

}  // namespace kvstore::shardops
