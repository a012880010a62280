#pragma once

#include <string_view>

#include "json/flat_json.h"

namespace kvstore {

/// Reads JSON from left to right without making a tree of it, as long as it is *plain*: strings have no
/// escapes, whole numbers at most 18 digits, objects each name once, and they nest at most kMaxDepth deep.
/// A tree takes several times as long, most of it for allocations.
///
/// It gives up at anything else, and at any mistake: then failed() is true, and ParseJson, given the text,
/// returns its content or says where it is wrong. A text that is read without giving up is JSON, and
/// ParseJson would return the same. Externally synchronised.
class PlainJson {
 public:
  static constexpr int kMaxDepth = 4;

  /// The text must outlive what is read of it.
  explicit PlainJson(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool failed() const { return failed_; }
  /// Gives up, for a caller that has found out why: whatever is read from now on is empty.
  void Fail();

  /// Takes a punctuation mark if it comes next, after spaces.
  bool Take(char mark);
  /// Takes it, or gives up.
  void Expect(char mark) {
    if (!Take(mark)) Fail();
  }
  /// Whether there is nothing more but spaces, and all was plain.
  bool IsWhole();

  /// Reads a string, which points into the text.
  std::string_view String();
  /// Reads true or false.
  bool Bool();
  /// Reads a value of any kind, arrays of plain values alone. Its elements and fields are in `flat` until
  /// that removes them; nothing is added if this gives up.
  FlatValue Value(FlatJson& flat);

 private:
  void SkipSpaces();
  bool Word(std::string_view word);
  /// A value that is neither an array nor an object.
  FlatValue Single();
  FlatValue Number();
  FlatValue Nested(FlatJson& flat, int depth);
  FlatValue Array(FlatJson& flat);
  FlatValue Object(FlatJson& flat, int depth);

  const char* at_;
  const char* end_;
  bool failed_ = false;
};

}  // namespace kvstore
