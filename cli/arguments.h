#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// The common parts of the arguments and options of many commands: their descriptions, and the checks of
/// texts. amounts.h has those of numbers.
namespace kvstore::cli {

inline constexpr char kDatasetHelp[] = "Name of the dataset";
inline constexpr char kRowHelp[] = "Key of the row, 1 to 1,024 bytes";
inline constexpr char kObjectHelp[] = "ID of the object";

/// Returns a check that a text is one of these words, which the help of the option lists.
CLI::Validator OneOf(std::vector<std::string> words);

/// Makes the options of every command refuse an empty text, which mostly is a variable of a shell that is not
/// set. Most options would take it as if they had not been given, and so choose something else: all backups
/// of a store in place of those of a dataset. Options of the kinds COLUMN, ROW and MARKER accept it, because
/// it means something there: there is a column without a name, and an empty key or marker stands for the
/// beginning or the end. A required argument may be empty, too: what it names is checked where it is used.
void RefuseEmpty(CLI::App& app);

}  // namespace kvstore::cli
