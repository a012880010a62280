#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "cli/standard_output.h"

/// Bytes on a terminal, which must not obey what somebody has stored or a server sent: controls (C0, DEL,
/// C1), what turns the direction of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069),
/// separators of lines and bytes that are not UTF-8 are shown as \xNN.
namespace kvstore::cli {

/// All other text as it is, and \ as \\: Unescape undoes it.
std::string Escape(std::string_view bytes);

enum class Lines : uint8_t {
  kOne,   ///< Newlines and tabs are shown as \xNN, too.
  kMany,  ///< They stay.
};
/// For text that is for people: \ stays as it is.
std::string Printable(std::string_view text, Lines lines);

/// In a line of JSON: those that JSON allows in its strings as \uNNNN, which says the same.
std::string PrintableJson(std::string json);

/// Prints to standard output what of it is printable, in many lines. Throws OutputLost.
template <typename... Args>
void Print(fmt::format_string<Args...> format, Args&&... args) {
  WriteOut(Printable(fmt::format(format, std::forward<Args>(args)...), Lines::kMany));
}
/// The same to standard error.
template <typename... Args>
void PrintErr(fmt::format_string<Args...> format, Args&&... args) {
  WriteErr(Printable(fmt::format(format, std::forward<Args>(args)...), Lines::kMany));
}

/// Undoes Escape. INVALID_ARGUMENT for a \ that begins neither \\ nor \xNN.
absl::StatusOr<std::string> Unescape(std::string_view text);

}  // namespace kvstore::cli
