#include "shardops/stop_clients.h"

#include <fmt/format.h>

#include <string>

namespace kvstore::shardops {
namespace {

/// How often a host is made read-only while clients that were ended connect again, and write.
constexpr int kAttempts = 10;

/// What a host that stays closed to clients needs.
absl::Status StaysClosed(const Host& host, const absl::Status& why) {
  return {why.code(),
          fmt::format("{}; {} is closed to clients (offline_mode) and may be writable: run the command again",
                      std::string(why.message()), host.ToString())};
}

/// On MySQL a commit that waits for a slave goes on waiting when its connection has ended. It is let go by a
/// host that waits for no slave; but no client may be told of a commit then. So the host is closed to clients
/// first, and all that are there are ended. If this process dies on the way, it stays closed.
absl::StatusOr<uint64_t> StopWaitingClients(HostAdmin& admin) {
  const auto state = admin.Read();
  if (!state.ok()) return state.status();
  if (auto status = admin.CloseToClients(); !status.ok()) return status;
  const auto ended = admin.EndAllClients();
  absl::Status status = ended.status();
  // If it was off, none waits; a slave that is fenced must not begin to wait for slaves of its own. A master
  // on which this was cut short before is closed, and its setting says nothing.
  const bool waits = state->semi_sync_master || (state->closed && !state->following);
  if (status.ok() && waits) status = admin.EnableSemiSync(false);
  if (status.ok()) status = admin.StopWrites(kStopWrites);
  if (waits) {
    if (auto enabled = admin.EnableSemiSync(true); !enabled.ok()) return StaysClosed(admin.host(), enabled);
  }
  if (auto opened = admin.OpenToClients(); !opened.ok()) return StaysClosed(admin.host(), opened);
  if (!status.ok()) return status;
  return ended;
}

}  // namespace

absl::StatusOr<uint64_t> StopClients(HostAdmin& admin) {
  uint64_t all = 0;
  for (int attempt = 1;; ++attempt) {
    absl::Status stopped = admin.StopWrites(kStopWrites);
    if (absl::IsUnavailable(stopped) && admin.engine() == Engine::kMySql) {
      const auto ended = StopWaitingClients(admin);
      stopped = ended.status();
      all += ended.value_or(0);
    }
    if (!stopped.ok() && (!absl::IsUnavailable(stopped) || attempt == kAttempts)) return stopped;
    // On MariaDB, commits that wait for a slave end with their connections.
    const auto ended = admin.EndClients();
    if (!ended.ok()) return ended.status();
    all += *ended;
    if (stopped.ok()) return all;
  }
}

}  // namespace kvstore::shardops
