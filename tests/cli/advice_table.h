#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// Helpers that tests of advice share: the texts of the program, and the tables of docs/operators.md that say
/// which test obeys which advice.
namespace kvstore::cli {

/// A string literal of the program's sources (literals.h).
struct SourceText {
  std::string file;  ///< Relative to the root.
  std::string text;
};

/// Returns all string literals of the sources, without those of tests.
std::vector<SourceText> TextsOfTheSources();

/// Returns the rows of a table of docs/operators.md, each with its three cells.
///
/// heading  how the line with the names of the columns begins.
std::vector<std::vector<std::string>> AdviceTable(const std::string& heading);

/// Expects that each row has three cells, of which the last one names at least one test, and that these
/// exist. Returns how many names of tests, beside those of files, were found.
size_t CheckTestsOf(const std::vector<std::vector<std::string>>& table);

}  // namespace kvstore::cli
