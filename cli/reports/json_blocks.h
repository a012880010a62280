#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/line_reader.h"
#include "json/flat_json.h"
#include "json/json.h"

namespace kvstore::cli {

/// A line of a file of JSON lines.
struct JsonLine {
  uint64_t number = 0;             ///< From 1.
  uint64_t offset = 0;             ///< How many bytes of the file lie before it.
  std::string_view text;           ///< Empty if it is longer than the limit.
  absl::StatusOr<FlatValue> json;  ///< A value of JsonBlock::json.
};

/// Lines of a file, one after the other. It can be moved, not copied: its lines point into it.
struct JsonBlock {
  JsonBlock() = default;
  JsonBlock(JsonBlock&&) = default;
  JsonBlock& operator=(JsonBlock&&) = default;

  /// Removes everything but its memory.
  void Clear();

  std::vector<JsonLine> lines;  ///< Without those that are blank.
  FlatJson json;
  uint64_t blank = 0;    ///< How many lines were.
  uint64_t end = 0;      ///< How many bytes of the file end with the block.
  bool is_last = false;  ///< Whether the file ends with the block.

  std::vector<char> text;  ///< The text of all lines. Unlike a string, it stays where it is when it is moved.
  std::deque<Json> trees;  ///< The parsed lines that could not be read without a tree.
};

/// Reads and parses a file of JSON lines in blocks, one block ahead of its caller, in a thread of its own.
/// Externally synchronised.
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
  ///
  /// used  a block that the caller is done with: a later one gets its memory, which is large.
  absl::StatusOr<JsonBlock> Next(JsonBlock used = {});

 private:
  absl::StatusOr<JsonBlock> Read(JsonBlock block);
  /// Reads the lines of a block; they are parsed when its text is complete.
  absl::Status ReadLines(JsonBlock& block);
  /// Waits until there is something to read. CANCELLED if the destructor is called first.
  absl::Status Await() const;

  const int file_;
  const int end_;  // an eventfd that is readable once the destructor was called
  LineReader reader_;
  uint64_t number_ = 0;  // of the line that was read last
  std::string line_;     // of Read, kept for its memory
  std::future<absl::StatusOr<JsonBlock>> next_;
};

}  // namespace kvstore::cli
