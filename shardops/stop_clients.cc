#include "shardops/stop_clients.h"

#include <fmt/format.h>

#include <string>

namespace kvstore::shardops {
namespace {

/// How often a host is made read-only while clients that were ended connect again, and write.
constexpr int kAttempts = 10;

/// Undoes what keeps a MySQL host closed to clients, and has the commits of a master wait for slaves again.
///
/// waits  whether they did before. FAILED_PRECONDITION, which is not tried again, if the host stays closed.
absl::Status Reopen(HostAdmin& admin, bool waits) {
  absl::Status status = waits ? admin.EnableSemiSync(true) : absl::OkStatus();
  if (status.ok()) status = admin.OpenToClients();
  if (status.ok()) return status;
  return absl::FailedPreconditionError(
      fmt::format("{}; the host stays closed to clients (offline_mode) and may be writable: run the command "
                  "again",
                  std::string(status.message())));
}

/// Whether commits of a host wait for slaves, or did before this was cut short: then a master is closed, and
/// its setting says nothing. A slave that is fenced must not begin to wait for slaves of its own.
bool Waits(const HostState& state) { return state.semi_sync_master || (state.closed && !state.following); }

/// On MySQL a commit that waits for a slave goes on waiting when its connection has ended. It is let go by a
/// host that waits for no slave; but no client may be told of a commit then. So the host is closed to clients
/// first, and all that are there are ended. If this process dies on the way, it stays closed.
absl::StatusOr<uint64_t> StopWaitingClients(HostAdmin& admin) {
  const auto state = admin.Read();
  if (!state.ok()) return state.status();
  if (auto status = admin.CloseToClients(); !status.ok()) return status;
  const auto ended = admin.EndAllClients();
  absl::Status status = ended.status();
  const bool waits = Waits(*state);
  if (status.ok() && waits) status = admin.EnableSemiSync(false);
  if (status.ok()) status = admin.StopWrites(kStopWrites);
  if (auto reopened = Reopen(admin, waits); !reopened.ok()) return reopened;
  if (!status.ok()) return status;
  return ended;
}

/// Opens a host on which StopWaitingClients was cut short. To be called when it is read-only.
absl::Status ReopenIfClosed(HostAdmin& admin) {
  const auto state = admin.Read();
  if (!state.ok() || !state->closed) return state.status();
  return Reopen(admin, Waits(*state));
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
    if (!stopped.ok()) continue;
    if (auto reopened = ReopenIfClosed(admin); !reopened.ok()) return reopened;
    return all;
  }
}

}  // namespace kvstore::shardops
