#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvstore {

/// What an address of a socket in the file system begins with; its path follows.
inline constexpr std::string_view kUnixPrefix = "unix:";

/// The host of "host:port" or "[ipv6]:port", without brackets; none if it is no such thing.
std::optional<std::string> HostOf(std::string_view address);

/// Whether only this machine reaches an address: "127.x.x.x:port", "[::1]:port", "localhost:port",
/// "unix:/path". Names are not looked up: all others are taken to be elsewhere.
bool IsLocal(std::string_view address);

/// Whether somebody answers at the socket of "unix:/path" now. A server that binds a path takes it from
/// whoever has it, without an error. False for other addresses, whose ports the system guards.
bool IsTaken(std::string_view address);

}  // namespace kvstore
