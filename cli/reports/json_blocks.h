#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/line_reader.h"
#include "json/json.h"

namespace kvstore::cli {

/// A line of a file of JSON lines.
struct JsonLine {
  uint64_t number = 0;  ///< From 1.
  uint64_t offset = 0;  ///< How many bytes of the file lie before it.
  std::string text;     ///< Empty if it is longer than the limit.
  absl::StatusOr<Json> json;
};

/// Lines of a file, one behind the other.
struct JsonBlock {
  std::vector<JsonLine> lines;  ///< Without those that are blank.
  uint64_t blank = 0;           ///< How many were.
  uint64_t end = 0;             ///< How many bytes of the file end with the block.
  bool is_last = false;         ///< Whether the file ends with the block.
};

/// Reads and parses a file of JSON lines in blocks, one block ahead of its caller, in a thread of its own:
/// parsing takes longer than all else that loading does. Externally synchronised.
class JsonBlockReader {
 public:
  /// Begins to read.
  ///
  /// file  a descriptor, which must stay open for the reader's life.
  explicit JsonBlockReader(int file);
  /// Gives up the block that is being read, also if it waits for more of a pipe or of a terminal.
  ~JsonBlockReader();
  JsonBlockReader(const JsonBlockReader&) = delete;
  JsonBlockReader& operator=(const JsonBlockReader&) = delete;

  /// Returns the next block; only until one was the last. UNAVAILABLE if reading fails.
  absl::StatusOr<JsonBlock> Next();

 private:
  absl::StatusOr<JsonBlock> Read();
  /// Waits until there is something to read. CANCELLED if the destructor is called first.
  absl::Status Await() const;

  const int file_;
  const int end_;  // an eventfd that is readable once the destructor was called
  LineReader reader_;
  uint64_t number_ = 0;  // of the line that was read last
  std::future<absl::StatusOr<JsonBlock>> next_;
};

}  // namespace kvstore::cli
