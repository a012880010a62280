#include "cli/follow_command.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <memory>
#include <string>

#include "assembly/backend_config.h"
#include "blobstore/open_blob_store.h"
#include "cli/backup_place.h"
#include "cli/escape.h"
#include "cli/shard_arguments.h"
#include "cli/shard_operator.h"
#include "fleet_backup/host_follower.h"
#include "server/call/metrics.h"
#include "server/http/http.h"

/// kv backup follow: makes the backups of a pair of MySQL servers and sends its binary log, until it is
/// stopped.
namespace kvstore::cli {
namespace {

void Follow(const Globals& globals, const std::string& host, const std::string& http) {
  spdlog::set_level(spdlog::level::info);
  // Blocked before there are other threads, so that the signals are delivered to sigwait below.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Config config = globals.ReadConfiguration();
  if (!config.backup) {
    throw Failure{absl::InvalidArgumentError(
        "config: backup.to: is missing: say where the backups are (docs/configuration.md)")};
  }
  const BackupConfig& backup = *config.backup;
  const OpenOptions store = globals.StoreOptions();
  const auto fleet = OpenConfiguredFleet(globals);
  fleet_backup::HostFollower follower(**fleet, FindFleet(store)->zookeeper, ParseHost(host),
                                      [&backup] { return OpenBlobStore(backup.to, backup.s3); },
                                      {.every_ms = backup.every_ms,
                                       .keep = backup.keep,
                                       .bytes_per_s = backup.bytes_per_s,
                                       .log = [](bool is_problem, const std::string& line) {
                                         spdlog::log(is_problem ? spdlog::level::err : spdlog::level::info,
                                                     "{}", line);
                                       }});
  const server::Metrics metrics({}, [&follower](MetricsSink& sink) { follower.Describe(sink); });
  std::unique_ptr<server::HttpServer> pages;
  if (!http.empty()) {
    pages = OrFail(server::HttpServer::Start(
        http, {.metrics = [&metrics] { return metrics.Text(); }, .ready = [] { return true; }}));
  }
  const std::string where = pages != nullptr ? fmt::format("; http on port {}", pages->port()) : "";
  // It works even if nobody reads this line.
  if (const absl::Status said = TryOut(Printable(fmt::format("following {}{}\n", host, where), Lines::kMany));
      !said.ok()) {
    spdlog::warn("{}", std::string(said.message()));
  }
  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("{}: stopping", signal == SIGTERM ? "SIGTERM" : "SIGINT");
  pages.reset();
}

}  // namespace

void AddFollowCommand(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string host;
    std::string http;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* follow = group.add_subcommand("follow",
                                          "Make the backups of a pair of MySQL servers from time to time, "
                                          "and send its binary log, until SIGTERM");
  follow->add_option("--host", args->host, "The server of this machine, as it is written in the shard maps")
      ->required()
      ->type_name("HOST");
  follow->add_option("--http", args->http, "host:port of /metrics and /healthz")->type_name("ADDR");
  follow->footer(
      R"(Run it on both hosts of a pair, as a service: it works on the one that is the slave, and waits on the other one, so that
it goes on after a promotion by itself. The configuration is an operator's, and has backup.to; backup.every says how
often a backup is made (without it only the log is sent), backup.keep how many are kept. The log is sent every 5 s, if
anything was written: kv backup restore gives the servers as they were at any second. It must run as a user that can
read the server's files, because mariadb-backup does.

Alarm on kvstore_backup_age_seconds and on kvstore_backup_log_age_seconds, which is what a loss of both hosts would
lose.

Example:
  kv --config /etc/kvstore/operator.json backup follow --host MySQL001B --http 127.0.0.1:7402)");
  globals.without_server[follow] =
      "this command works on MySQL servers, not through a server of KVStore; name the configuration of an "
      "operator "
      "with --config FILE";
  follow->callback([args, &globals] { Follow(globals, args->host, args->http); });
}

}  // namespace kvstore::cli
