#include "bench/commands/bench_commands.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "assembly/backend_config.h"
#include "bench/backup/backup_bench.h"
#include "bench/commands/flood_command.h"
#include "bench/commands/load_commands.h"
#include "bench/commands/reports_command.h"
#include "bench/export/export_bench.h"
#include "bench/fleet/mysql_fixture.h"
#include "bench/migration/clients.h"
#include "bench/migration/migrate_bench.h"
#include "bench/rows/routing_bench.h"
#include "bench/rows/rows_bench.h"
#include "bench/rows/server_bench.h"
#include "cli/command.h"
#include "cli/completion_words.h"
#include "cli/escape.h"
#include "cli/table.h"

/// kv bench: measures how fast the store is, and its ratio to the engine alone.
namespace kvstore::bench {

using cli::AddGlobals;
using cli::Failure;
using cli::FinishCommands;
using cli::Globals;
using cli::OrFail;
using cli::PrintJson;
using cli::Table;

namespace {

void PrintReport(const Report& report) {
  cli::Print("workload {}, backend {}, on {} cores, {}\n", report.workload, report.backend, report.cores,
             report.cpu);
  Table table({"PATH", "OURS/S", "RAW/S", "RATIO", "P50 US", "P99 US"});
  for (const PathResult& result : report.results) {
    const bool compared = result.raw_ops_s > 0;
    table.Add({result.path, fmt::format("{:.0f}", result.ours_ops_s),
               compared ? fmt::format("{:.0f}", result.raw_ops_s) : "-",
               compared ? fmt::format("{:.3f}", result.ratio) : "-", fmt::format("{:.1f}", result.p50_us),
               result.p99_us > 0 ? fmt::format("{:.1f}", result.p99_us) : "-"});
  }
  table.Print();
  for (const auto& [name, value] : report.figures) cli::Print("{}: {:.1f}\n", name, value);
  if (report.growth.empty()) return;
  Table growth({"GROWTH", "SMALL US", "LARGE US", "FACTOR"});
  for (const GrowthResult& result : report.growth) {
    growth.Add({result.path, fmt::format("{:.1f}", result.small_us), fmt::format("{:.1f}", result.large_us),
                fmt::format("{:.3f}", result.factor)});
  }
  growth.Print();
  if (report.paged_read_rss_bytes == 0) return;
  cli::Print("resident memory grew by {:.1f} MiB during the full paged read\n",
             static_cast<double>(report.paged_read_rss_bytes) / (1 << 20));
}

/// paths  the paths that were asked for.
void Print(const Report& report, bool json, const std::vector<std::string>& paths = {}) {
  OrFail(CheckPaths(paths, report));
  if (json) {
    PrintJson(ToJson(report));
  } else {
    PrintReport(report);
  }
}

/// Options that the workloads share.
struct Arguments {
  std::string backend = kRocksDb;
  std::string compare = "raw";
  RowsOptions rows;

  void AddTo(CLI::App& command, std::vector<std::string> backends) {
    backend = backends.front();
    command.add_option("--backend", backend, "Where the data is stored; mysql: on the servers of --config")
        ->check(CLI::IsMember(std::move(backends)))
        ->capture_default_str();
    command.add_option("--compare", compare, "What to measure beside the store")
        ->check(CLI::IsMember({"raw", "none"}))
        ->capture_default_str();
    command.add_option("--rounds", rows.rounds, "Interleaved rounds, whose median is reported")
        ->capture_default_str();
    command.add_option("--seconds", rows.seconds, "Seconds of each side of a path in a round")
        ->capture_default_str();
    command.add_option("--paths", rows.paths, "Only these paths")->delimiter(',');
  }

  MySqlBenchOptions MySql(const Globals& globals) const {
    const OpenOptions options = globals.StoreOptions();
    const MySqlFleetOptions* fleet = FindFleet(options);
    if (fleet == nullptr) {
      throw Failure{
          absl::InvalidArgumentError("--config: name a configuration with MySQL servers; ./dev up starts "
                                     "some, and prints the path of their configuration")};
    }
    std::optional<BenchCaches> caches;
    if (const auto cached = FindBackendOfType(options, kCached)) {
      caches = BenchCaches{.options = OrFail(OptionsOf<CacheOptions>(*cached)),
                           .coordination = *options.coordination};
    }
    return {.fleet = *fleet,
            .caches = std::move(caches),
            .rounds = rows.rounds,
            .seconds = rows.seconds,
            .compare = compare == "raw",
            .paths = rows.paths};
  }
};

/// A workload that runs on MySQL servers only.
void AddMySqlWorkload(CLI::App& group, Globals& globals, const std::string& name,
                      const std::string& description,
                      absl::StatusOr<Report> (*run)(const MySqlBenchOptions&)) {
  auto args = std::make_shared<Arguments>();
  CLI::App* command = group.add_subcommand(name, description);
  args->AddTo(*command, {kMySql});
  command->footer(fmt::format("Example: kv --config /etc/kvstore/kv.json bench {}", name));
  command->callback(
      [args, run, &globals] { Print(OrFail(run(args->MySql(globals))), globals.json, args->rows.paths); });
}

void AddRowsBench(CLI::App& group, Globals& globals) {
  auto server = std::make_shared<ServerBenchOptions>();
  auto rows = std::make_shared<Arguments>();
  CLI::App* rows_command =
      group.add_subcommand("rows",
                           "Compare rows through the store with the same cells through RocksDB or MySQL "
                           "Connector/C++ alone; with --server it does what the workload server does");
  rows->AddTo(*rows_command, {kRocksDb, kMySql});
  rows_command->add_option("--cells", rows->rows.cells, "RocksDB: cells of 100 bytes to load, ten a row")
      ->capture_default_str();
  rows_command
      ->add_option(
          "--counted", rows->rows.counted,
          "RocksDB: execute this many operations of each path, for a profiler that counts instructions")
      ->group("");
  rows_command->add_flag("--growth", rows->rows.growth,
                         "RocksDB: also measure how costs grow with versions, columns and datasets");
  rows_command->footer("Example: kv bench rows --compare raw");
  rows_command->callback([rows, server, &globals] {
    if (!globals.server.empty()) {
      server->address = globals.server;
      server->connection = globals.ServerConnection();
      server->rounds = rows->rows.rounds;
      server->seconds = rows->rows.seconds;
      server->paths = rows->rows.paths;
      Print(OrFail(BenchServer(*server)), globals.json, server->paths);
      return;
    }
    if (rows->backend == kMySql) {
      Print(OrFail(BenchMySqlRows(rows->MySql(globals))), globals.json, rows->rows.paths);
      return;
    }
    rows->rows.compare = rows->compare == "raw";
    rows->rows.dir = globals.data;
    Print(OrFail(BenchRows(rows->rows)), globals.json, rows->rows.paths);
  });
}

void AddMigrateBench(CLI::App& group, Globals& globals) {
  auto migrate = std::make_shared<MigrateBenchOptions>();
  CLI::App* command = group.add_subcommand(
      "migrate",
      "Migrate a dataset from an embedded store to the MySQL servers of --config and back, under load");
  command->add_option("--cells", migrate->cells, "Cells of 100 bytes")->capture_default_str();
  command->add_option("--seconds", migrate->seconds, "Seconds of load between the steps")
      ->capture_default_str();
  command->add_option("--svg", migrate->svg, "File for a picture of what clients saw");
  command->add_flag("--tell", migrate->tell, "Print what happens");
  command->add_flag("!--clients-only", migrate->raw, "Leave out the comparison with the engines alone");
  command->footer("Example: kv --config /etc/kvstore/kv.json bench migrate --cells 1000000 --tell");
  command->callback([migrate, &globals] {
    migrate->fleet = Arguments().MySql(globals).fleet;
    Print(OrFail(BenchMigrate(*migrate)), globals.json);
  });
}

void AddClientsBench(CLI::App& group, Globals& globals) {
  auto clients = std::make_shared<ClientsOptions>();
  CLI::App* command =
      group.add_subcommand("clients",
                           "Run clients that read, write and delete until standard input ends, while you "
                           "do something to the store; then check that their answers are consistent: "
                           "nothing lost, nothing resurrected, no time gone back. Exit code 1 if not");
  command->add_option("--dataset", clients->dataset, "Dataset that is created, and dropped at the end")
      ->capture_default_str();
  command->add_option("--threads", clients->threads, "Threads that call the server at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->footer("Example: kv --server 127.0.0.1:7400 bench clients; end it by Ctrl-D");
  command->callback([clients, &globals] {
    const auto store = globals.OpenStore(/*create_if_missing=*/true);
    const auto report = OrFail(BenchClients(*store, *clients, [] {
      std::string line;
      while (std::getline(std::cin, line)) continue;
    }));
    Print(report, globals.json);
    if (!globals.json)
      cli::Print("nothing lost, nothing resurrected: there is an order that explains every answer\n");
  });
}

void AddServerBench(CLI::App& group, Globals& globals) {
  auto server = std::make_shared<ServerBenchOptions>();
  CLI::App* server_command = group.add_subcommand(
      "server",
      "Compare a server with a bare gRPC service; without --server it starts one, on a store of its own");
  server_command->add_option("--rounds", server->rounds, "Interleaved rounds, whose median is reported")
      ->capture_default_str();
  server_command->add_option("--seconds", server->seconds, "Seconds of each side of a path in a round")
      ->capture_default_str();
  server_command->add_option("--rows", server->rows, "Rows of 1 KiB to load")->capture_default_str();
  server_command->add_option("--connections", server->connection.connections, "Connections of the client")
      ->capture_default_str();
  server_command->add_option("--paths", server->paths, "Only these paths")->delimiter(',');
  const auto bench_server = [server, &globals] {
    server->address = globals.server;
    const size_t connections = server->connection.connections;
    server->connection = globals.ServerConnection();
    server->connection.connections = connections;
    Print(OrFail(BenchServer(*server)), globals.json, server->paths);
  };
  server_command->footer("Example: kv bench server");
  server_command->callback(bench_server);
}

void AddBackupBench(CLI::App& group, Globals& globals) {
  auto options = std::make_shared<BackupBenchOptions>();
  CLI::App* command = group.add_subcommand(
      "backup",
      "Back up and restore an embedded store and a dataset, beside a copy of the files and a scan of the "
      "rows; rates are bytes a second");
  command->add_option("--rows", options->rows, "Rows of 1 KiB to load")
      ->check(CLI::Range(1000, 1'000'000'000))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "Seconds of reads, alone and beside a backup")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_option(
      "--bucket", options->bucket,
      "A bucket, \"s3://BUCKET/PREFIX\" with nothing below PREFIX: a restore from there is compared "
      "with curl, and the backup is left there. AWS_ENDPOINT_URL_S3, AWS_ACCESS_KEY_ID and "
      "AWS_SECRET_ACCESS_KEY say how to reach it");
  command->footer("Example: kv bench backup --rows 1000000");
  command->callback([options, &globals] {
    options->dir = globals.data;
    Print(OrFail(BenchBackup(*options)), globals.json);
  });
}

void AddExportBench(CLI::App& group, Globals& globals) {
  auto options = std::make_shared<ExportBenchOptions>();
  CLI::App* command = group.add_subcommand(
      "export",
      "Export an embedded dataset as Parquet, beside a raw scan of its cells; rates are bytes a second");
  command->add_option("--rows", options->rows, "Rows of one cell to load")
      ->check(CLI::Range(1000, 1'000'000'000))
      ->capture_default_str();
  command->add_option("--value-bytes", options->value_bytes, "Bytes of each cell")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Exports of each kind, of which the median counts")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--parallel", options->lanes, "Files that are written at a time")
      ->check(CLI::Range(size_t{1}, exports::kMaxLanes))
      ->capture_default_str();
  command->footer("Example: kv bench export --rows 10000000 --value-bytes 20");
  command->callback([options, &globals] {
    options->dir = globals.data;
    Print(OrFail(BenchExport(*options)), globals.json);
  });
}

void AddRoutingBench(CLI::App& group, Globals& globals) {
  auto routing = std::make_shared<Arguments>();
  CLI::App* routing_command =
      group.add_subcommand("routing", "Measure what the router adds to a call in process");
  routing_command
      ->add_option("--rounds", routing->rows.rounds, "Interleaved rounds, whose median is reported")
      ->capture_default_str();
  routing_command->add_option("--seconds", routing->rows.seconds, "Seconds of each side in a round")
      ->capture_default_str();
  routing_command->footer("Example: kv bench routing");
  routing_command->callback([routing, &globals] {
    Print(OrFail(BenchRouting(routing->rows.rounds, routing->rows.seconds)), globals.json);
  });
}

}  // namespace

void AddBenchCommands(CLI::App& app, Globals& globals) {
  app.description("Measure the store on this machine, in a directory of its own that is removed again");
  AddGlobals(app, globals);
  // A benchmark of a server may compare it with the MySQL servers of a configuration.
  globals.server_and_config.insert(&app);
  AddRowsBench(app, globals);
  AddMySqlWorkload(app, globals, "objects", "Objects: gets, creates, batches", &BenchObjects);
  AddMySqlWorkload(app, globals, "mappings", "Pages of a board of 100,000 pins", &BenchMappings);
  AddMigrateBench(app, globals);
  AddClientsBench(app, globals);
  AddLoadCommands(app, globals);
  AddReportsCommand(app, globals);
  AddBackupBench(app, globals);
  AddExportBench(app, globals);
  AddMySqlWorkload(app, globals, "linkbench", "LinkBench's mix of operations on objects and mappings",
                   &BenchLinks);
  AddServerBench(app, globals);
  app.add_subcommand("echo-server", "The bare service, for the measurement of a server")
      ->group("")
      ->callback([] { RunEchoServer(); });
  AddFloodingProcess(app);
  AddRoutingBench(app, globals);
  cli::AddCompletionWordsCommand(app, "kv bench");
  app.footer("Example: kv bench rows");
  FinishCommands(app);
}

}  // namespace kvstore::bench
