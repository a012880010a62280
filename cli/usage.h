#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kvstore::cli {

/// What is wrong with a command line, in lines for people: names the word, and what may have been meant.
///
/// app    the whole program, as it is after `error` was thrown.
std::string ExplainUsage(const CLI::App& app, const CLI::Error& error);

}  // namespace kvstore::cli
