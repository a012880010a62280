#include "cli/reports/filter_text.h"

#include <fmt/format.h>

namespace kvstore::cli {
namespace {

/// Finds the first such character that has no \ in front of it; npos if there is none.
size_t FindPlain(std::string_view text, char wanted) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == wanted) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// Takes the text up to the separator, and the separator, from the front of `rest`.
std::string_view TakeUntil(std::string_view& rest, char separator) {
  const size_t end = FindPlain(rest, separator);
  const std::string_view taken = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return taken;
}

/// Removes the \ in front of characters.
std::string Plain(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

absl::Status Malformed(std::string_view text, std::string_view problem) {
  return absl::InvalidArgumentError(
      fmt::format("'{}': {}; give KEY=VALUE,VALUE, with ';' between several keys: country=US,CA;gender=*",
                  text, problem));
}

/// The values of one key; nullopt for any.
absl::StatusOr<std::optional<std::vector<std::string>>> ParseValues(std::string_view text,
                                                                    std::string_view values) {
  if (values == "*") return std::nullopt;
  std::vector<std::string> list;
  while (true) {
    const bool last = FindPlain(values, ',') == std::string_view::npos;
    const std::string_view value = TakeUntil(values, ',');
    if (value == "*") return Malformed(text, "a * stands alone (\\* is the character)");
    list.push_back(Plain(value));
    if (last) return list;
  }
}

}  // namespace

absl::StatusOr<Where> ParseWhere(std::string_view text) {
  Where where;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view condition = TakeUntil(rest, ';');
    const size_t equals = FindPlain(condition, '=');
    if (equals == std::string_view::npos) return Malformed(text, "a condition has no '='");
    const std::string key = Plain(condition.substr(0, equals));
    if (key.empty()) return Malformed(text, "a segment key has no name");
    auto values = ParseValues(text, condition.substr(equals + 1));
    if (!values.ok()) return values.status();
    if (!where.emplace(key, *std::move(values)).second) {
      return Malformed(text, fmt::format("segment key '{}' is named twice", key));
    }
  }
  return where;
}

absl::StatusOr<reports::QueryFilter> ParseFilter(std::string_view text) {
  std::string_view rest = text;
  if (FindPlain(rest, ':') == std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': has no name; give NAME:KEY=VALUE,VALUE: north:country=US,CA", text));
  }
  reports::QueryFilter filter{.name = Plain(TakeUntil(rest, ':')), .where = {}};
  if (filter.name.empty()) return Malformed(text, "the name is empty");
  auto where = ParseWhere(rest);
  if (!where.ok()) return where.status();
  filter.where = *std::move(where);
  return filter;
}

absl::Status AddWhere(const Where& more, Where& where) {
  for (const auto& [key, values] : more) {
    if (where.emplace(key, values).second) continue;
    return absl::InvalidArgumentError(fmt::format("segment key '{}' is named twice", key));
  }
  return absl::OkStatus();
}

}  // namespace kvstore::cli
