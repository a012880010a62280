#include <fmt/format.h>

#include <chrono>
#include <string>

#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/connection.h"

/// Connection as a Session: commands about the connection read and change it by these functions.
namespace kvstore::server::resp {

absl::Status Connection::Authenticate(std::string_view user, std::string_view token) {
  Core& core = environment_.core;
  if (core.access->open_to_all()) {
    return absl::InvalidArgumentError(
        "AUTH <password> called without any password configured for the default user. Are you sure your "
        "configuration is correct?");
  }
  std::string authorization = fmt::format("Bearer {}", token);
  const auto caller = core.access->Identify(authorization, "");
  if (!caller.ok() || (user != "default" && user != (*caller)->name)) {
    const absl::Status error =
        absl::UnauthenticatedError("invalid username-password pair or user is disabled.");
    CountStranger(error);
    return WithWord(error, "WRONGPASS");
  }
  CallerShare* const before = counted_for_;
  if (auto status = CountFor((*caller)->share); !status.ok()) return status;
  authorization_.swap(authorization);
  if (auto status = session_.Authenticate(); !status.ok()) {
    authorization_.swap(authorization);
    CountFor(before).IgnoreError();
    return status;
  }
  BecomeKnown(true);
  return absl::OkStatus();
}

void Connection::CountStranger(const absl::Status& error) {
  CommandCall(environment_.core, Operation::kCalls, Info()).Finish(error, 0);
}

void Connection::SetLibrary(std::string_view what, std::string_view value) {
  (what == "lib-name" ? library_ : library_version_) = value.substr(0, kMaxDatasetNameBytes);
}

std::string Connection::Describe() const {
  const auto seconds = [now = Clock::now()](Clock::time_point since) {
    return std::chrono::duration_cast<std::chrono::seconds>(now - since).count();
  };
  const Principal* const caller = session_.principal();
  return fmt::format("id={} addr={} name={} age={} idle={} db=0 user={} resp={} lib-name={} lib-ver={}\n",
                     id_, peer_, name_, seconds(connected_), seconds(last_command_),
                     caller == nullptr ? "default" : caller->name, static_cast<int>(version_), library_,
                     library_version_);
}

std::string Connection::DescribeServer() const {
  const Figures& figures = environment_.figures;
  const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - figures.started);
  return fmt::format(
      "# "
      "Server\r\nredis_version:{}\r\nkvstore_version:{}\r\nredis_mode:standalone\r\nuptime_in_seconds:{}\r\n"
      "\r\n# Clients\r\nconnected_clients:{}\r\n"
      "\r\n# Stats\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{}\r\n"
      "\r\n# Replication\r\nrole:master\r\n",
      kRedisVersion, KV_VERSION, uptime.count(), figures.connections.load(), figures.connected.load(),
      figures.commands.load());
}

}  // namespace kvstore::server::resp
