#pragma once

#include <string>
#include <string_view>

namespace kvstore {

/// Names the user that this process runs as, and the host, for people: "ann@ops1". The user is looked up by
/// its number, so it does not depend on the environment.
std::string UserAndHost();

/// Names the user, the host and this process, for people: "ann@ops1, process 4711".
std::string ProcessName();

/// Identifies this process on its machine, also against a later process with the same number. Empty if the
/// system does not say enough.
std::string ProcessIdentity();

/// Whether the process of that identity has certainly ended. False for processes of another machine or
/// another container.
bool ProcessHasEnded(std::string_view identity);

}  // namespace kvstore
