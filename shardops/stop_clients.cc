#include "shardops/stop_clients.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

namespace kvstore::shardops {
namespace {

/// How often a host is made read-only while clients that were ended connect again, and write.
constexpr int kAttempts = 10;
/// How long a connection waits for the lock that makes a host read-only while its clients are ended, and how
/// long of that no commit waits for a slave.
constexpr std::chrono::seconds kStopWaiting{10};
constexpr std::chrono::seconds kLetGo{5};
constexpr std::chrono::milliseconds kPollInterval{10};

/// Asks a host until `condition`, an expression of SQL about its connections, holds for none of them, or for
/// one if `wanted`. Gives up when `may_end` says so.
template <typename MayEnd>
absl::Status AwaitConnections(HostAdmin& admin, const std::string& condition, bool wanted,
                              const MayEnd& may_end) {
  return admin.WithConnection([&](mysql::Connection& connection) {
    for (;;) {
      mysql::Rows rows = connection.Ask(
          fmt::format("SELECT COUNT(*) FROM performance_schema.processlist WHERE {}", condition));
      if ((rows.Next() && rows.Uint(1) > 0) == wanted || may_end()) return absl::OkStatus();
      std::this_thread::sleep_for(kPollInterval);
    }
  });
}

/// On MySQL a commit that waits for a slave goes on waiting when its connection has ended. It is let go by a
/// host that waits for no slave; but no client may be told of a commit then. Therefore another connection
/// asks for the lock that makes the host read-only: while it waits nothing new can be written. All clients
/// are ended, and only then those commits are let go.
absl::StatusOr<uint64_t> StopWaitingClients(HostAdmin& admin, const Access& access) {
  const auto stopper = HostAdmin::Open(admin.host(), access);
  if (!stopper.ok()) return stopper.status();
  const auto id = (*stopper)->ConnectionId();
  if (!id.ok()) return id.status();
  const std::future<absl::Status> stopping =
      std::async(std::launch::async, [&] { return (*stopper)->StopWrites(kStopWaiting); });
  const auto stopped = [&] {
    return stopping.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  absl::Status status = AwaitConnections(
      admin, fmt::format("id = {} AND state LIKE 'Waiting for % lock'", *id), /*wanted=*/true, stopped);
  if (!status.ok()) return status;
  const auto ended = admin.EndClients(*id);
  if (!ended.ok() || stopped()) {
    stopping.wait();
    return ended;
  }
  status = admin.EnableSemiSync(false);
  if (!status.ok()) return status;
  const auto deadline = std::chrono::steady_clock::now() + kLetGo;
  status = AwaitConnections(admin, "state LIKE 'Waiting for semi-sync ACK%'", /*wanted=*/false,
                            [&] { return stopped() || std::chrono::steady_clock::now() > deadline; });
  // Before the lock may be given up: if the host stays writable, its commits must wait again.
  if (auto enabled = admin.EnableSemiSync(true); !enabled.ok()) return enabled;
  stopping.wait();
  return ended;
}

}  // namespace

absl::StatusOr<uint64_t> StopClients(HostAdmin& admin, const Access& access) {
  uint64_t all = 0;
  for (int attempt = 1;; ++attempt) {
    const absl::Status stopped = admin.StopWrites(kStopWrites);
    if (!stopped.ok() && (!absl::IsUnavailable(stopped) || attempt == kAttempts)) return stopped;
    if (!stopped.ok() && admin.engine() == Engine::kMySql) {
      const auto ended = StopWaitingClients(admin, access);
      if (!ended.ok()) return ended;
      all += *ended;
      continue;
    }
    // On MariaDB, commits that wait for a slave end with their connections.
    const auto ended = admin.EndClients();
    if (!ended.ok()) return ended.status();
    all += *ended;
    if (stopped.ok()) return all;
  }
}

}  // namespace kvstore::shardops
