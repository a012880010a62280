#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "assembly/open_router.h"
#include "backup/create.h"
#include "backup/log_shipper.h"
#include "backup/schedule.h"
#include "base/end_in_time.h"
#include "blobstore/open_blob_store.h"
#include "cli/backup_place.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/served_backups.h"
#include "cli/served_shards.h"
#include "cli/stop_signals.h"
#include "cli/stored_shard_maps.h"
#include "migration/migrator.h"
#include "reports/maintenance.h"
#include "server/server.h"

/// kv serve: serves the store to other processes and machines.
namespace kvstore::cli {
namespace {

/// The time after limits.drain_ms for work that ends by itself when it is told to: answers that are on their
/// way, the steps that migrations are at.
constexpr std::chrono::milliseconds kToEnd{3'000};
/// How much longer the store may take to close.
constexpr std::chrono::milliseconds kToClose{3'000};

/// Null if reports are not to be maintained.
std::unique_ptr<reports::Maintenance> MaintainReports(KVStore& store, const ServerReports& options) {
  if (options.maintain_ms == 0) return nullptr;
  return std::make_unique<reports::Maintenance>(
      store, reports::MaintenanceOptions{.dataset = options.dataset,
                                         .interval_ms = options.maintain_ms,
                                         .share = options.share,
                                         .quiet_ms = options.quiet_ms,
                                         .log = [](const std::string& line) { spdlog::warn("{}", line); }});
}

/// Null if the configuration does not say how often backups are to be made. Throws Failure.
std::unique_ptr<backup::Schedule> ScheduleBackups(Router& router, const Config& config) {
  if (!config.backup || config.backup->every_ms == 0) return nullptr;
  return std::make_unique<backup::Schedule>(
      [checkpoint = OrFail(CheckpointsOf(router, config.store)), bytes_per_s = config.backup->bytes_per_s](
          BlobStore& blobs, const Progress& progress) {
        return backup::CreateBackup(checkpoint, blobs, progress, bytes_per_s);
      },
      [to = *config.backup] { return OpenBlobStore(to.to, to.s3); },
      backup::ScheduleOptions{.every_ms = config.backup->every_ms,
                              .keep = config.backup->keep,
                              .log = [](bool is_problem, const std::string& line) {
                                spdlog::log(is_problem ? spdlog::level::err : spdlog::level::info, "{}",
                                            line);
                              }});
}

/// Null if the configuration does not say that the log is to be sent. Throws Failure.
std::unique_ptr<backup::LogShipper> ShipLog(Router& router, const Config& config,
                                            backup::Schedule* schedule) {
  if (!config.backup || !config.backup->log) return nullptr;
  const backup::CheckpointMaker checkpoint = OrFail(CheckpointsOf(router, config.store));
  const BackupConfig to = *config.backup;
  return std::make_unique<backup::LogShipper>(
      OrFail(LogOf(router, config.store)), [to] { return OpenBlobStore(to.to, to.s3); },
      [checkpoint, schedule, to](BlobStore& blobs) {
        if (schedule != nullptr) {
          return schedule->MakeNow(blobs, nullptr, backup::Schedule::WhenBusy::kWait);
        }
        return backup::CreateBackup(checkpoint, blobs, nullptr, to.bytes_per_s);
      },
      backup::ShipperOptions{.log = [](bool is_problem, const std::string& line) {
        spdlog::log(is_problem ? spdlog::level::err : spdlog::level::info, "{}", line);
      }});
}

/// Null if the configuration does not say where backups are made.
std::unique_ptr<ServedBackups> ServeBackups(Router& router, const Config& config,
                                            backup::Schedule* schedule) {
  if (!config.backup) return nullptr;
  return std::make_unique<ServedBackups>(router, *config.backup, CheckpointsOf(router, config.store),
                                         schedule);
}

/// Logs that the process ends although something has not ended.
void TellWhatIsLeft(const std::string& left) {
  spdlog::error("limits.drain_ms are over, and this has not ended: {}; the process ends without it", left);
  spdlog::default_logger()->flush();
}

/// Serves until a signal comes, drains, and closes the store.
void ServeUntilSignal(const Config& config, StopSignals& signals, EndInTime& end) {
  end.SetWaitingFor([] { return std::string("the store, which is being opened"); });
  const auto router = OrFail(OpenRouter(config.store));
  Migrator migrator(router->keeper(), config.store.data / "migrations.log");
  migrator.TakeOverAbandoned();
  std::unique_ptr<reports::Maintenance> maintenance = MaintainReports(*router, config.server.reports);
  std::unique_ptr<backup::Schedule> backups = ScheduleBackups(*router, config);
  std::unique_ptr<backup::LogShipper> shipper = ShipLog(*router, config, backups.get());
  const std::unique_ptr<ServedBackups> served_backups = ServeBackups(*router, config, backups.get());
  const std::unique_ptr<ShardMaps> maps = OpenStoredShardMaps(config.store);
  const std::unique_ptr<ShardOperations> shards = ServeShards(config.store);
  const auto describe = [&](MetricsSink& sink) {
    if (maintenance != nullptr) maintenance->Describe(sink);
    if (backups != nullptr) backups->Describe(sink);
    if (shipper != nullptr) shipper->Describe(sink);
  };
  auto server = OrFail(Server::Start(*router, config.server,
                                     {.migrations = &migrator,
                                      .shard_maps = maps.get(),
                                      .shard_operations = shards.get(),
                                      .backups = served_backups.get(),
                                      .describe = describe}));
  std::string where = fmt::format("{}", fmt::join(server->addresses(), ", "));
  if (server->http_port() != 0) where += fmt::format("; http on port {}", server->http_port());
  if (!server->resp_address().empty()) where += fmt::format("; redis on {}", server->resp_address());
  if (server->http_api_port() != 0) where += fmt::format("; http api on port {}", server->http_api_port());
  // The server runs even if nobody reads this line.
  if (const absl::Status said = TryOut(Printable(fmt::format("serving on {}\n", where), Lines::kMany));
      !said.ok()) {
    spdlog::warn("{}; serving on {}", std::string(said.message()), where);
  }
  end.SetWaitingFor([&server] { return server->OpenCalls(); });
  const int signal = signals.Wait();
  const auto orderly =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(config.server.limits.drain_ms);
  spdlog::info("{}: taking no new calls, waiting for {} to end", signal == SIGTERM ? "SIGTERM" : "SIGINT",
               "those that are open");
  // These have as long as calls have for what they are at.
  if (maintenance != nullptr) maintenance->Stop();
  if (backups != nullptr) backups->Stop();
  migrator.Stop();
  server->Drain();
  end.SetWaitingFor([] { return std::string("the end of calls"); });
  server.reset();
  end.SetWaitingFor([] { return std::string("the maintenance of reports"); });
  maintenance.reset();
  end.SetWaitingFor([] { return std::string("the log that is sent to the backups"); });
  shipper.reset();  // sends what the last calls have written
  end.SetWaitingFor([] { return std::string("the backup that was being made"); });
  backups.reset();
  end.SetWaitingFor([&migrator] {
    const std::vector<std::string> datasets = migrator.RunningHere();
    return datasets.empty() ? std::string("the take-over of migrations")
                            : fmt::format("the migration of {}", fmt::join(datasets, ", "));
  });
  migrator.Wait(orderly);
  end.SetWaitingFor([] { return std::string("the store, which is being closed"); });
  end.Extend(kToClose);
}

void Serve(const Config& config, bool verbose) {
  // A server also logs for information. Its standard output has one line, which says where it listens.
  spdlog::set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  EndInTime end;
  // A call may hang in a statement or in a file access that does not observe the call's limits, and so may
  // the opening and the closing of the store. Acknowledged writes are in the log, so the process may end
  // without closing the store. The time begins with the signal, before anything that may hang, such as a line
  // of the log.
  StopSignals signals([&end, drain = std::chrono::milliseconds(config.server.limits.drain_ms)](int) {
    end.Begin(drain + kToEnd, &TellWhatIsLeft);
  });
  ServeUntilSignal(config, signals, end);
  spdlog::info("stopped");
}

}  // namespace

void AddServeCommand(CLI::App& app, Globals& globals) {
  struct Arguments {
    std::vector<std::string> listen;
    std::string http;
    std::string resp;
    std::string http_api;
    bool insecure = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* serve = app.add_subcommand("serve",
                                       "Serve the store over gRPC, and where asked for over HTTP as JSON and "
                                       "over the Redis protocol, until SIGTERM or "
                                       "SIGINT");
  serve->add_option("--listen", args->listen, "host:port or unix:/path; may be repeated [127.0.0.1:7400]")
      ->type_name("ADDR");
  serve->add_option("--http", args->http, "host:port of /metrics, /healthz and /readyz")->type_name("ADDR");
  serve
      ->add_option("--resp", args->resp,
                   "host:port or unix:/path of the Redis protocol; it is not served without")
      ->type_name("ADDR");
  serve
      ->add_option("--http-api", args->http_api,
                   "host:port of the store over HTTP as JSON; TLS and tokens are as for --listen")
      ->type_name("ADDR");
  serve->add_flag("--insecure", args->insecure,
                  "Allow other machines to connect without encryption and without tokens");
  serve->footer(
      R"(The configuration's "server" (docs/configuration.md) sets the rest: TLS, tokens, limits. On SIGTERM the server accepts
no new calls and ends when the open ones have ended. After limits.drain_ms they are cancelled. If some still hang three
seconds later, or the store has not closed six seconds later, the server ends all the same, with exit code 1, and the
log says what hangs. With --verbose, in front of serve, the log also has the calls that failed by their own arguments.

Examples:
  kv --data /var/lib/kvstore serve
  kv --data /var/lib/kvstore serve --http-api 127.0.0.1:7402
  kv --config /etc/kvstore/kv.json serve)");
  globals.without_server[serve] =
      "this command starts a server itself; name its store with --data DIR or --config FILE, and its own "
      "address with --listen ADDR";
  serve->callback([args, &globals] {
    Config config = globals.ReadConfiguration();
    if (globals.use_tls || !globals.tls.cert.empty() || !globals.tls.key.empty()) {
      PrintErr(
          "kv: warning: --tls, --tls-cert and --tls-key are for clients, and have no effect here; server.tls "
          "names the server's certificate and key\n");
    }
    if (!args->listen.empty()) config.server.listen = args->listen;
    if (!args->http.empty()) config.server.http = args->http;
    if (!args->resp.empty()) config.server.resp = args->resp;
    if (!args->http_api.empty()) config.server.http_api = args->http_api;
    config.server.insecure = config.server.insecure || args->insecure;
    Serve(config, globals.verbose);
  });
}

}  // namespace kvstore::cli
