#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kvstore::cli {

/// Says in lines for people what is wrong with a command line: names the word, and what may have been meant.
/// app    the whole program, in its state after `error` was thrown.
std::string ExplainUsage(const CLI::App& app, const CLI::Error& error);

}  // namespace kvstore::cli
