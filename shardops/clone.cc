#include "shardops/clone.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace kvstore::shardops {
namespace {

using mysql::Connection;
using mysql::Rows;
using Clock = std::chrono::steady_clock;

/// ER_RESTART_SERVER_FAILED: the copy is complete, and nobody starts the server again.
constexpr int kNotRestarted = 3707;
/// How often the server is asked how far it is.
constexpr std::chrono::milliseconds kPoll{200};
/// How long a server may take to start with its copy.
constexpr std::chrono::minutes kStart{10};

struct Plugin {
  bool active = false;
  std::string version;  ///< The version of the server.
};

absl::StatusOr<Plugin> ReadPlugin(HostAdmin& host) {
  return host.WithConnection([](Connection& connection) -> absl::StatusOr<Plugin> {
    Rows rows = connection.Ask(
        "SELECT COUNT(*), @@version FROM information_schema.plugins WHERE plugin_name = 'clone' AND "
        "plugin_status = 'ACTIVE'");
    rows.Next();
    return Plugin{rows.Uint(1) == 1, rows.Bytes(2)};
  });
}

/// Returns how many bytes the running copy has received; 0 if that cannot be found out.
uint64_t ReadProgress(HostAdmin& host) {
  return host
      .WithConnection([](Connection& connection) -> absl::StatusOr<uint64_t> {
        Rows rows = connection.Ask("SELECT COALESCE(SUM(data), 0) FROM performance_schema.clone_progress");
        return rows.Next() ? rows.Uint(1) : 0;
      })
      .value_or(0);
}

absl::StatusOr<uint64_t> ReadConnectionId(HostAdmin& host) {
  return host.WithConnection([](Connection& connection) -> absl::StatusOr<uint64_t> {
    Rows rows = connection.Ask("SELECT CONNECTION_ID()");
    rows.Next();
    return rows.Uint(1);
  });
}

/// Has the server copy the source. Returns when it is about to restart.
absl::Status Copy(HostAdmin& target, const Host& source, const Access& access) {
  return target.WithConnection([&](Connection& connection) -> absl::Status {
    connection.Run("SET GLOBAL clone_valid_donor_list = " + Quoted(source.ToString()));
    // The server drops what it has, and super_read_only would forbid it that. It stays read-only, and starts
    // with its configuration's setting.
    connection.Run("SET GLOBAL super_read_only = OFF");
    try {
      connection.Run(fmt::format("CLONE INSTANCE FROM {}@{}:{} IDENTIFIED BY {}",
                                 Quoted(access.replication_user), Quoted(source.name), source.port,
                                 Quoted(access.replication_password)));
    } catch (const sql::SQLException& error) {
      constexpr int kClientFirst = 2000;
      constexpr int kClientLast = 2999;
      const int code = error.getErrorCode();
      // The connection is lost when the server restarts, or before. AwaitCopied finds out which.
      if (code != kNotRestarted && (code < kClientFirst || code > kClientLast)) {
        connection.Run("SET GLOBAL super_read_only = ON");
        throw;
      }
    }
    return absl::OkStatus();
  });
}

/// Returns how the copy ended that the server was last told to make: "Completed", or "Failed: " and the
/// error.
absl::StatusOr<std::string> ReadOutcome(HostAdmin& host) {
  return host.WithConnection([](Connection& connection) -> absl::StatusOr<std::string> {
    Rows rows = connection.Ask("SELECT state, error_message FROM performance_schema.clone_status");
    if (!rows.Next()) return std::string();
    const std::string state = rows.Bytes(1);
    return state == "Failed" ? "Failed: " + rows.Bytes(2) : state;
  });
}

/// Waits until the server has started with its copy, and claims it.
absl::StatusOr<std::unique_ptr<HostAdmin>> AwaitCopied(FleetOperator& fleet, const Host& host) {
  const auto begin = Clock::now();
  bool told = false;
  for (;;) {
    auto admin = HostAdmin::OpenClaimed(host, fleet.access);
    if (admin.ok()) {
      const auto outcome = ReadOutcome(**admin);
      if (outcome.ok() && *outcome == "Completed") return admin;
      if (outcome.ok() && outcome->starts_with("Failed")) {
        return absl::InternalError(fmt::format("{}: the copy ended early. {}", host.ToString(), *outcome));
      }
    } else if (!absl::IsUnavailable(admin.status()) && Clock::now() - begin > kStart) {
      return admin.status();
    }
    const auto waited = Clock::now() - begin;
    if (waited > kStart) {
      return absl::UnavailableError(
          fmt::format("{}: has copied everything, and has not started with the copy: start it, then run the "
                      "command again with "
                      "--discard",
                      host.ToString()));
    }
    if (!told && waited > std::chrono::seconds(5)) {
      told = true;
      fleet.report(
          fmt::format("{}: has the copy, and is to start with it: start it, unless its service manager "
                      "does",
                      host.ToString()));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

absl::Status CheckClone(HostAdmin& source, HostAdmin& target) {
  std::string version;
  for (HostAdmin* const host : {&source, &target}) {
    const auto plugin = ReadPlugin(*host);
    if (!plugin.ok()) return plugin.status();
    if (!plugin->active) {
      return Refuse(fmt::format(
          "{}: lacks the plugin clone, by which a MySQL server is copied: INSTALL PLUGIN clone SONAME "
          "'mysql_clone.so' there, or plugin_load_add = 'mysql_clone.so' in its configuration",
          host->host().ToString()));
    }
    if (version.empty()) version = plugin->version;
    if (version != plugin->version) {
      return Refuse(
          fmt::format("{} is of version {}, {} of {}: a MySQL server can be copied to one of the same "
                      "version only",
                      source.host().ToString(), version, host->host().ToString(), plugin->version));
    }
  }
  return absl::OkStatus();
}

absl::Status CloneHost(FleetOperator& fleet, const Host& source, std::unique_ptr<HostAdmin>& target,
                       const std::function<bool(uint64_t)>& progress) {
  const Host host = target->host();
  const auto id = ReadConnectionId(*target);
  if (!id.ok()) return id.status();
  auto observer = HostAdmin::Open(host, fleet.access);
  if (!observer.ok()) return observer.status();
  std::atomic<bool> ended{false};
  absl::Status copied;
  std::thread copy([&] {
    copied = Copy(*target, source, fleet.access);
    ended = true;
  });
  bool stopped = false;
  while (!ended) {
    std::this_thread::sleep_for(kPoll);
    if (!progress || stopped || progress(ReadProgress(**observer))) continue;
    stopped = true;
    (*observer)
        ->WithConnection([&](Connection& connection) {
          connection.Run(fmt::format("KILL QUERY {}", *id));
          return absl::OkStatus();
        })
        .IgnoreError();
  }
  copy.join();
  if (stopped) {
    return absl::CancelledError(
        fmt::format("{}: the copy was stopped: run the command again, with --discard, to begin it again",
                    host.ToString()));
  }
  if (!copied.ok()) return copied;
  auto again = AwaitCopied(fleet, host);
  if (!again.ok()) return again.status();
  target = *std::move(again);
  return absl::OkStatus();
}

}  // namespace kvstore::shardops
