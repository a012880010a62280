#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>

#include "cli/command.h"
#include "cli/escape.h"
#include "migration/migrator.h"
#include "registry/open.h"
#include "server/server.h"

/// kv serve: the store for other processes and machines.
namespace kvstore::cli {
namespace {

void Serve(const Config& config) {
  // The log goes to standard error, whose reader it is that has the time.
  spdlog::set_default_logger(spdlog::stderr_color_mt("kv"));
  // Before there are threads, so that the signals come here and nowhere else.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const auto router = OrFail(OpenRouter(config.store));
  Migrator migrator(*router, config.store.data / "migrations.log");
  migrator.TakeOverAbandoned();
  const auto server = OrFail(Server::Start(*router, config.server, &migrator));
  std::string where = fmt::format("{}", fmt::join(server->addresses(), ", "));
  if (server->http_port() != 0) where += fmt::format("; http on port {}", server->http_port());
  // Clients do not depend on somebody reading this.
  if (const absl::Status said = TryOut(Printable(fmt::format("serving on {}\n", where), Lines::kMany));
      !said.ok()) {
    spdlog::warn("{}; serving on {}", std::string(said.message()), where);
  }
  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("{}: taking no new calls, waiting for {} to end", signal == SIGTERM ? "SIGTERM" : "SIGINT",
               "those that are open");
  server->Drain();
  spdlog::info("stopped");
}

}  // namespace

void AddServeCommand(CLI::App& app, Globals& globals) {
  struct Arguments {
    std::vector<std::string> listen;
    std::string http;
    bool insecure = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* serve = app.add_subcommand("serve", "Serve the store over gRPC until SIGTERM or SIGINT");
  serve
      ->add_option("--listen", args->listen,
                   "host:port or unix:/path, more than once if wanted [127.0.0.1:7400]")
      ->type_name("ADDR");
  serve->add_option("--http", args->http, "host:port of /metrics, /healthz and /readyz")->type_name("ADDR");
  serve->add_flag("--insecure", args->insecure,
                  "Listen also beyond this machine without encryption and without knowing who calls");
  serve->footer(
      R"(The rest is said by the configuration's "server" (docs/configuration.md): TLS, tokens, limits. On SIGTERM the
server takes no new calls and ends when those that are open have ended, at the latest after limits.drain_ms.

Examples:
  kv --data /var/lib/kvstore serve
  kv --config /etc/kvstore/kv.json serve)");
  serve->callback([args, &globals] {
    Config config = globals.ReadConfiguration();
    if (!args->listen.empty()) config.server.listen = args->listen;
    if (!args->http.empty()) config.server.http = args->http;
    config.server.insecure = config.server.insecure || args->insecure;
    Serve(config);
  });
}

}  // namespace kvstore::cli
