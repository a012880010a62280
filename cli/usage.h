#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kvstore::cli {

/// Returns the innermost command that was recognised; `app` itself if there was none.
const CLI::App& Innermost(const CLI::App& app);

/// Says in lines for people what is wrong with a command line: names the word, and what may have been meant.
/// app    the whole program, in its state after `error` was thrown.
std::string ExplainUsage(const CLI::App& app, const CLI::Error& error);

/// Says that the innermost command that was given has no option of this name, and which may have been meant.
/// app    the whole program.
std::string NoSuchOption(const CLI::App& app, const std::string& word);

}  // namespace kvstore::cli
