#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace kvstore::cli {
namespace {

bool MayBeEmpty(const CLI::Option& option) {
  constexpr std::array<std::string_view, 3> kKinds = {"COLUMN", "ROW", "MARKER"};
  if (std::find(kKinds.begin(), kKinds.end(), option.get_type_name()) != kKinds.end()) return true;
  const bool takes_nothing = option.get_expected_max() == 0;
  return takes_nothing || (option.get_positional() && option.get_required());
}

}  // namespace

CLI::Validator OneOf(std::vector<std::string> words) {
  std::string listed = fmt::format("{{{}}}", fmt::join(words, ","));
  return CLI::Validator(
      [words = std::move(words)](const std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
        return fmt::format("'{}' is not one of {}", text, fmt::join(words, ", "));
      },
      std::move(listed));
}

void RefuseEmpty(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (MayBeEmpty(*option)) continue;
    // As a transform it is asked before the option's own checks.
    option->transform(CLI::Validator(
        [](const std::string& text) {
          return text.empty() ? std::string("must not be empty") : std::string();
        },
        ""));
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) RefuseEmpty(*command);
}

}  // namespace kvstore::cli
