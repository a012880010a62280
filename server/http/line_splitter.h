#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kvstore::server {

/// Cuts bytes that arrive in pieces into lines. Externally synchronised.
class LineSplitter {
 public:
  /// max_bytes  The longest line that it takes, without its end.
  explicit LineSplitter(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Adds bytes at the end. Call it only while there is no whole line, so that memory stays bounded: one
  /// line, and one piece.
  void Append(std::string_view bytes);
  /// No bytes follow: what is left is a line although it has no end.
  void End() { ended_ = true; }

  /// Returns the next whole line without its end ("\n" or "\r\n"); nothing if there is none. Lines that have
  /// only white space are skipped.
  std::optional<std::string> Next();
  /// Returns whether the line that is arriving is too long. Nothing more can be read then.
  bool is_too_long() const { return too_long_; }
  /// Returns how many bytes are here that belong to no line yet.
  size_t partial_bytes() const { return text_.size() - begin_; }
  /// Returns what this takes of memory, which also has room for bytes that are still to come.
  size_t held_bytes() const { return text_.capacity(); }

 private:
  /// Gives back the memory of lines that were taken.
  void Shrink();

  const size_t max_bytes_;
  std::string text_;
  size_t begin_ = 0;     // of the next line
  size_t searched_ = 0;  // before here there is no end of that line
  bool ended_ = false;
  bool too_long_ = false;
};

}  // namespace kvstore::server
