#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/resp/protocol/encoder.h"

namespace kvstore::server::resp {

/// A connection as the commands about it see it. Externally synchronised.
class Session {
 public:
  virtual ~Session() = default;

  /// Identifies the caller by a token, for this connection from now on. An error leaves it as it was.
  ///
  /// user  the caller's name, which must be that of the token, or "default" for whichever it is.
  virtual absl::Status Authenticate(std::string_view user, std::string_view token) = 0;
  /// Whether the caller is known, or everybody may do everything.
  virtual bool is_known() const = 0;

  virtual Version version() const = 0;
  /// In force for the answers to later commands.
  virtual void SetVersion(Version version) = 0;

  /// Returns a number that no other connection of this server has had.
  virtual uint64_t id() const = 0;
  virtual const std::string& name() const = 0;
  virtual void SetName(std::string_view name) = 0;
  /// Remembers what library the client is: `what` is "lib-name" or "lib-ver".
  virtual void SetLibrary(std::string_view what, std::string_view value) = 0;
  /// Describes the connection in a line, as CLIENT INFO does.
  virtual std::string Describe() const = 0;
  /// Describes the server, as INFO does.
  virtual std::string DescribeServer() const = 0;

  /// Ends the connection after the answers that are there.
  virtual void Quit() = 0;
};

}  // namespace kvstore::server::resp
