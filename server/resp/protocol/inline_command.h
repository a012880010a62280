#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvstore::server::resp {

/// A part of some text.
struct Piece {
  size_t begin = 0;
  size_t size = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Splits a command that was typed as a line into its words, as Redis does: they are separated by white
/// space;
/// "..." may contain \xNN, \n, \r, \t, \b, \a and \ before any other character, '...' may contain \'. Returns
/// false if a quote is not closed, or is followed by something other than white space.
///
/// line   without its end. Changed: words are written over it without their quotes.
/// words  set to the places of the words in the changed line; a place is never after the one that it was
///        read from.
bool SplitInline(std::span<char> line, std::vector<Piece>& words);

}  // namespace kvstore::server::resp
