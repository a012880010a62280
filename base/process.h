#pragma once

#include <string>
#include <string_view>

namespace kvstore {

/// Who runs this process, for people: "ann@ops1, process 4711".
std::string ProcessName();

/// Tells this process from all others of this machine, also from a later one with the same number.
std::string ProcessIdentity();

/// Whether the process of that identity has ended, for certain. Of another machine, or another container: no.
bool ProcessHasEnded(std::string_view identity);

}  // namespace kvstore
