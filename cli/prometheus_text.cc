#include "cli/prometheus_text.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

namespace kvstore::cli {
namespace {

/// Removes the part before the first of `end` from the front of `text` and returns it; none if there is no
/// such character.
std::optional<std::string> TakeUntil(std::string_view& text, std::string_view ends) {
  const size_t at = text.find_first_of(ends);
  if (at == std::string_view::npos) return std::nullopt;
  std::string taken(text.substr(0, at));
  text.remove_prefix(at);
  return taken;
}

/// Reads a label's value, after its opening quote; \\, \" and \n are escaped in it.
std::optional<std::string> TakeQuoted(std::string_view& text) {
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    if (text[i] == '\\' && i + 1 < text.size()) {
      ++i;
      value += text[i] == 'n' ? '\n' : text[i];
    } else {
      value += text[i];
    }
  }
  return std::nullopt;
}

std::optional<Sample> ParseLine(std::string_view line) {
  Sample sample;
  const auto name = TakeUntil(line, "{ ");
  if (!name || name->empty() || name->starts_with('#')) return std::nullopt;
  sample.name = *name;
  if (line.front() == '{') {
    line.remove_prefix(1);
    while (!line.empty() && line.front() != '}') {
      const auto label = TakeUntil(line, "=");
      if (!label || line.size() < 2 || line[1] != '"') return std::nullopt;
      line.remove_prefix(2);
      auto value = TakeQuoted(line);
      if (!value) return std::nullopt;
      sample.labels.emplace_back(*label, *std::move(value));
      if (line.starts_with(',')) line.remove_prefix(1);
    }
    if (line.empty()) return std::nullopt;
    line.remove_prefix(1);
  }
  const std::string number(line);
  char* end = nullptr;
  sample.value = std::strtod(number.c_str(), &end);
  if (end == number.c_str()) return std::nullopt;
  return sample;
}

}  // namespace

std::string Sample::Label(std::string_view label) const {
  for (const auto& [known, text] : labels) {
    if (known == label) return text;
  }
  return "";
}

std::string Sample::Text() const {
  if (labels.empty()) return name;
  std::string text = name + "{";
  for (size_t i = 0; i < labels.size(); ++i) {
    text += fmt::format("{}{}=\"{}\"", i == 0 ? "" : ",", labels[i].first, labels[i].second);
  }
  return text + "}";
}

std::vector<Sample> ParsePrometheus(std::string_view text) {
  std::vector<Sample> samples;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (auto sample = ParseLine(text.substr(0, end))) samples.push_back(*std::move(sample));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return samples;
}

}  // namespace kvstore::cli
