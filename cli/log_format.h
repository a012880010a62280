#pragma once

#include <spdlog/formatter.h>

#include <memory>

namespace kvstore::cli {

/// Returns what makes lines of the log: spdlog's own format, with the message Printable as one line. Messages
/// quote what other machines say, which must neither control a terminal nor look like another line.
std::unique_ptr<spdlog::formatter> PrintableLogFormat();

}  // namespace kvstore::cli
