#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "cli/standard_output.h"
#include "json/json.h"

/// Output of bytes to a terminal, which must not act on control sequences that somebody has stored or a
/// server has sent. Shown as \xNN are: control characters (C0, DEL, C1), characters that change the direction
/// of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), line separators, and bytes that are
/// not UTF-8.
namespace kvstore::cli {

/// Shows all other text unchanged, and \ as \\, so that Unescape restores the bytes.
std::string Escape(std::string_view bytes);

enum class Lines : uint8_t {
  kOne,   ///< Newlines and tabs are shown as \xNN, too.
  kMany,  ///< Newlines and tabs stay.
};
/// The same for text that only people read: \ stays as it is.
std::string Printable(std::string_view text, Lines lines);

/// The same for a line of JSON: the characters that JSON allows in its strings become \uNNNN, which means the
/// same.
std::string PrintableJson(std::string json);

/// Returns JSON as one line, without a newline at its end. Bytes that are not UTF-8, which only a message can
/// contain, are replaced.
std::string ToLine(const Json& json);

/// Formats, makes the text Printable as several lines, and writes it to standard output. Throws OutputLost.
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
