#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvstore {

/// The prefix of the address of a Unix domain socket; the path of the socket follows.
inline constexpr std::string_view kUnixPrefix = "unix:";

/// Returns the host of "host:port" or "[ipv6]:port", without brackets; nullopt if the text has neither form.
std::optional<std::string> HostOf(std::string_view address);

/// Whether an address can be reached from this machine only: "127.x.x.x:port", "[::1]:port",
/// "localhost:port", "unix:/path". Other names are not looked up, and count as reachable from elsewhere.
bool IsLocal(std::string_view address);

/// Whether a process listens on the socket of "unix:/path" now. A server that binds a path takes it over from
/// another server without an error, so it must ask first. False for other addresses, whose ports the system
/// guards.
bool IsListening(std::string_view address);

}  // namespace kvstore
