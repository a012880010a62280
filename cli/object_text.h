#pragma once

#include <string>
#include <string_view>

/// The documents of objects as parts of lines. They are taken and given as text: parsed ones would lose
/// digits of numbers that are long.
namespace kvstore::cli {

/// Replaces the line breaks of a document by spaces. They are all between its parts, because strings escape
/// theirs.
void PutOnOneLine(std::string& document);

/// Returns the text of the member "data" of a JSON object; empty if there is none. The last of several
/// counts, as for a parser.
///
/// line  must be well-formed.
std::string_view DocumentIn(std::string_view line);

/// Returns whether two documents say the same. Those with integers beyond 64 bits must have the same text,
/// except for line breaks.
bool SameDocument(std::string a, std::string b);

}  // namespace kvstore::cli
