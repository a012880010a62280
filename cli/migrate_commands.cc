#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "assembly/open_router.h"
#include "base/process.h"
#include "cli/amounts.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/migrate_status.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "client/client.h"
#include "json/json_text.h"
#include "kvstore_api/open.h"
#include "migration/migrator.h"

/// kv migrate: migrates a dataset between backends while it serves.
namespace kvstore::cli {
namespace {

/// Executes commands of migrations: on a server, or in this process for as long as the command takes.
class MigrationService {
 public:
  explicit MigrationService(const Globals& globals) {
    if (!globals.server.empty()) {
      client_ = OrFail(client::Client::Open(globals.server, globals.ServerConnection()));
      return;
    }
    const Config config = globals.ReadConfiguration();
    router_ = OrFail(OpenRouter(config.store));
    migrator_ = std::make_unique<Migrator>(router_->keeper(), config.store.data / "migrations.log");
  }

  /// Returns whether this process does the work, so that the work ends with it.
  bool embedded() const { return migrator_ != nullptr; }
  absl::StatusOr<Json> Execute(Json command) {
    command["who"] = UserAndHost();
    // Makes the numbers the same as if they came over the wire.
    const Json sent = Json::parse(TextOf(command));
    return migrator_ ? migrator_->Command(sent) : client_->Command(sent);
  }

 private:
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Migrator> migrator_;
};

void PrintStatus(const Json& status, const Globals& globals) {
  if (globals.json) {
    Json line = status;
    line["ok"] = true;
    PrintJson(line);
    return;
  }
  Print("{}", StatusText(status));
}

/// Waits until the migration needs an operator or has ended; returns its last status.
Json Watch(MigrationService& service, const std::string& dataset, const Globals& globals) {
  ProgressBar bar("migrate " + dataset, "units");
  std::string phase;
  for (;;) {
    auto status = service.Execute({{"command", "status"}, {"dataset", dataset}});
    // The record of a migration that has ended is removed.
    if (absl::IsNotFound(status.status()) && !phase.empty()) {
      return {{"dataset", dataset}, {"phase", phase == "aborting" ? "aborted" : "finished"}};
    }
    Json now = OrFail(std::move(status));
    phase = now.value("phase", "");
    if (WaitsForOperator(now)) return now;
    const uint64_t done =
        phase == "verify" ? now.value("compared_units", uint64_t{0}) : now.value("units_done", uint64_t{0});
    const std::string problem = now.value("problem", "");
    bar.Show(done, now.value("units_done", uint64_t{0}) + now.value("units_left", uint64_t{0}),
             problem.empty() ? phase : phase + ": " + problem);
    if (!globals.json && !problem.empty() && ::isatty(STDERR_FILENO) == 0) PrintErr("{}\n", problem);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

struct Arguments {
  std::string dataset;
  std::string target;
  std::string engine;
  std::string keep;
  std::string gone;
  bool automatic = false;
  bool dry_run = false;
  bool wait = false;
  bool yes = false;
  bool accept_differences = false;
  std::string shadow_reads;
  std::optional<uint64_t> threads;
  std::optional<uint64_t> freeze_ms;
  std::optional<uint64_t> units_per_s;
  std::optional<uint64_t> bytes_per_s;
  std::optional<uint64_t> share;
  std::optional<uint64_t> max_read_us;

  void AddLimits(CLI::App& command) {
    command.add_option("--units-per-s", units_per_s, "Units copied a second at most; 0: no limit");
    command.add_option("--bytes-per-s", bytes_per_s, "Bytes copied a second at most; 0: no limit");
    command.add_option("--max-read-us", max_read_us,
                       "Copy less while a read of the side that serves takes longer than this many us; 0: do "
                       "not measure [0]");
    command.add_option("--share", share, "Percent of its time that each copying thread works [50]")
        ->check(CLI::Range(1, 100));
  }
  void AddShadowReads(CLI::App& command) {
    command
        .add_option("--shadow-reads", shadow_reads,
                    "Make this share of the reads of the process that does the work on both sides, before "
                    "the cutover, "
                    "and compare them; 0%: none [0%]")
        ->type_name("PERCENT")
        ->check(CLI::Validator(
            [](const std::string& text) {
              return ParseShare(text) ? std::string()
                                      : "must be a share from 0% to 100%, such as 1% or 0.05%";
            },
            ""));
  }
  Json ToJson(const std::string& command) const {
    Json json = {{"command", command}, {"dataset", dataset}};
    if (!target.empty()) json["target"] = target;
    if (!engine.empty()) json["engine"] = engine;
    if (automatic) json["auto"] = true;
    if (!keep.empty()) json["keep"] = keep;
    if (!gone.empty()) json["gone"] = gone;
    if (dry_run) json["dry_run"] = true;
    if (yes) json["yes"] = true;
    if (accept_differences) json["accept_differences"] = true;
    if (!shadow_reads.empty()) json["shadow_share"] = *ParseShare(shadow_reads);
    if (threads) json["threads"] = *threads;
    if (freeze_ms) json["freeze_ms"] = *freeze_ms;
    if (units_per_s) json["units_per_s"] = *units_per_s;
    if (bytes_per_s) json["bytes_per_s"] = *bytes_per_s;
    if (share) json["share"] = *share;
    if (max_read_us) json["max_read_us"] = *max_read_us;
    return json;
  }
};

/// Prints what a command would do that was given with --dry-run. `status` is that of the migration as it is,
/// or, for create, as it would be recorded.
void PrintDryRun(const std::string& command, Json status, const Globals& globals) {
  if (globals.json) {
    status["dry_run"] = true;
    return PrintStatus(status, globals);
  }
  const std::string dataset = status.value("dataset", "");
  if (command != "create") {
    Print("nothing was changed; kv migrate {} is possible, and this is the migration now:\n",
          WithArguments(command, dataset));
    return PrintStatus(status, globals);
  }
  Print(
      "nothing was created; without --dry-run a migration of {} from {} to {} would be recorded, and "
      "kv migrate start {} would begin it\n",
      dataset, status.value("source", ""), status.value("target", ""), dataset);
}

void RunCommand(const std::string& command, const Arguments& args, const Globals& globals) {
  MigrationService service(globals);
  Json status = OrFail(service.Execute(args.ToJson(command)));
  if (args.dry_run) return PrintDryRun(command, std::move(status), globals);
  const bool works = command != "create" && command != "throttle" && command != "pause";
  // Nobody else works on an embedded store.
  if (works && (args.wait || service.embedded())) status = Watch(service, args.dataset, globals);
  PrintStatus(status, globals);
  const std::string problem = status.value("problem", "");
  if (!works || !args.wait) return;
  if (!problem.empty()) throw Failure{absl::UnavailableError(problem)};
  if (WaitsForResume(status)) {
    throw Failure{absl::FailedPreconditionError(
        fmt::format("copying was paused before this was done; kv migrate resume {} goes on", args.dataset))};
  }
}

/// Lists all migrations. Throws Failure after the list if a record in it cannot be read.
void List(const Globals& globals) {
  MigrationService service(globals);
  const Json list = OrFail(service.Execute({{"command", "list"}}));
  std::vector<std::string> unreadable;
  for (const Json& one : list.at("migrations")) {
    if (one.value("phase", "") == "unreadable") unreadable.push_back(one.value("dataset", ""));
  }
  if (globals.json) {
    Json line = list;
    line["ok"] = unreadable.empty();
    PrintJson(line);
  } else {
    Table table({"DATASET", "PHASE", "SOURCE", "TARGET", "TRUTH", "COPIED", "PROBLEM"});
    for (const Json& one : list.at("migrations")) {
      const bool readable = one.contains("units_done");
      table.Add({one.value("dataset", ""), one.value("phase", ""), one.value("source", ""),
                 one.value("target", ""), one.value("truth", ""),
                 readable ? std::to_string(one.value("units_done", uint64_t{0})) : "",
                 one.value("problem", "")});
    }
    table.Print();
  }
  if (unreadable.empty()) return;
  throw Failure{absl::DataLossError(
      fmt::format("records of migrations that cannot be read: {}; the others are listed, and not affected: "
                  "docs/runbook.md, 'The record of a migration cannot be read'",
                  fmt::join(unreadable, ", ")))};
}

constexpr char kWaitHelp[] =
    "Return when it is done; exit code 1 if it met a problem, or if copying was paused before it was done";

/// more  the arguments of the example after the dataset.
CLI::App* Add(CLI::App& group, const std::string& command, const std::string& about, Globals& globals,
              const std::shared_ptr<Arguments>& args, const std::string& more = "") {
  CLI::App* const added = group.add_subcommand(command, about);
  added->add_option("dataset", args->dataset, kDatasetHelp)->required();
  added->add_flag("--dry-run", args->dry_run,
                  "Only say whether the command is possible, and print the status");
  added->footer(fmt::format("Example: kv migrate {} events{}", command, more));
  added->callback([command, args, &globals] { RunCommand(command, *args, globals); });
  return added;
}

void AddCreate(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* const create =
      Add(group, "create", "Check both sides, and record the migration", globals, args, " --to mysql");
  create->add_option("--to", args->target, "The backend to migrate to")->required()->type_name("BACKEND");
  create->add_option("--engine", args->engine, "Its storage engine, where it has several");
  create->add_flag("--auto", args->automatic, "Cut over as soon as both sides are the same");
  create->add_option("--threads", args->threads, "Partitions copied at a time [4]")->check(CLI::Range(1, 64));
  TakeDuration(create
                   ->add_option("--freeze-ms", args->freeze_ms,
                                "How long a cutover may hold writes before it is given up [1000]")
                   ->check(CLI::Range(10, 60'000)));
  args->AddShadowReads(*create);
  args->AddLimits(*create);
}

/// Adds the commands that have no arguments but the dataset.
void AddSimple(CLI::App& group, Globals& globals) {
  struct Simple {
    const char* name;
    const char* about;
  };
  for (const Simple& one : std::array<Simple, 8>{{
           {"start",
            "Copy the dataset, keep the copy current, and compare both sides, up to the phase ready"},
           {"resume", "Continue after a pause, or where a process that died has stopped"},
           {"verify", "Compare both sides again"},
           {"cutover", "Let the target serve; the source is kept current"},
           {"reverse", "Let the source serve again; the target is kept current"},
           {"rollback", "Let the source serve again, and remove the target"},
           {"finish", "Remove the source: there is no way back any more"},
           {"cancel", "Before the cutover: remove the target, and leave everything as it was"},
       }}) {
    auto args = std::make_shared<Arguments>();
    CLI::App* const added = Add(group, one.name, one.about, globals, args);
    added->add_flag("--wait", args->wait, kWaitHelp);
    if (one.name != std::string_view("cutover")) continue;
    added->add_flag("--accept-differences", args->accept_differences,
                    "Cut over although shadow reads have found units that differ on the two sides");
  }
}

void AddResolve(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* const resolve =
      Add(group, "resolve", "Say which side is right, when both differ and one may have lost writes", globals,
          args, " --keep mysql");
  resolve
      ->add_option("--keep", args->keep,
                   "The backend that is right. If it is the one that serves, the copy is made like it; if "
                   "it is the other one, that one serves again, with its own data")
      ->required()
      ->type_name("BACKEND");
  resolve->add_flag("--wait", args->wait, kWaitHelp);
}

void AddAbandon(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* const abandon =
      Add(group, "abandon", "End the migration without a side whose hosts will never be back", globals, args,
          " --gone mysql");
  abandon
      ->add_option("--gone", args->gone,
                   "The backend that is gone; refused while it answers. The other one serves, with its own "
                   "data. The hosts that are gone must not come back as they were: clients that have not "
                   "heard of the change would use them")
      ->required()
      ->type_name("BACKEND");
  abandon->add_flag("--wait", args->wait, kWaitHelp);
}

/// Prints how a migration stands, and throws Failure if something is left to be done.
void Repair(const Arguments& args, const Globals& globals) {
  MigrationService service(globals);
  Json answer = OrFail(service.Execute(args.ToJson("repair")));
  const bool done = answer.value("done", false);
  const bool goes_on = done && (args.wait || service.embedded());
  const std::string problem = RepairProblem(answer);
  if (globals.json) {
    Json line = answer;
    line["ok"] = problem.empty();
    if (goes_on) line["status"] = Watch(service, args.dataset, globals);
    if (!problem.empty()) line["problem"] = problem;
    PrintJson(line);
  } else {
    Print("{}", RepairText(answer));
    if (goes_on) PrintStatus(Watch(service, args.dataset, globals), globals);
  }
  if (!problem.empty()) throw Failure{absl::FailedPreconditionError(problem)};
}

void AddRepair(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* const repair = group.add_subcommand(
      "repair",
      "Say how a migration that died badly stands, from what both sides and the catalog have, and mend it");
  repair->add_option("dataset", args->dataset, kDatasetHelp)->required();
  repair->add_flag("--yes", args->yes, "Do what it says; without this nothing is changed");
  repair->add_flag("--wait", args->wait,
                   "With --yes: return when the migration needs an operator or has ended");
  repair->footer(
      R"(Asks the catalog, the migration's record, and each side for itself: which partitions are in which state, whether they
record writes, which worker they have seen, and whether a host was restarted or replaced. It then says which side has
all acknowledged writes, what does not fit together, what would mend it, and what a person must decide, with the command
for that. Clients and servers go on meanwhile.

With --yes it takes only steps that lose no acknowledged write: it makes a record that was lost anew, turns a record
that is older than what both sides have, has the catalog route clients to the side that serves, has both sides compared
again where writes were not recorded, and lets a worker take the migration over. Nothing is copied over a side that may
have writes which the other one lacks: kv migrate status shows such a doubt.

With --server the server does it, also while its own worker retries a step that fails; if the worker is in another
process, give the command to that one.

Examples:
  kv --server 127.0.0.1:7400 migrate repair events          says what it finds; exit code 1 if something is to be done
  kv --server 127.0.0.1:7400 migrate repair events --yes    does it

Exit codes: 0 there is nothing to do, or it was done; 1 refused, or without --yes something is to be done, or a person
must decide; 2 wrong usage.)");
  repair->callback([args, &globals] { Repair(*args, globals); });
}

void AddPause(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  Add(group, "pause", "Suspend copying until resume; writes are recorded meanwhile", globals, args);
}

void AddThrottle(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* const throttle = Add(group, "throttle", "Change the limits of copying, with immediate effect",
                                 globals, args, " --units-per-s 10000");
  args->AddLimits(*throttle);
  args->AddShadowReads(*throttle);
}

void AddStatus(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* const status = group.add_subcommand(
      "status", "Show the state of a migration, and the commands that are possible next");
  status->add_option("dataset", args->dataset, kDatasetHelp)->required();
  status->footer("Example: kv migrate status events");
  status->callback([args, &globals] {
    MigrationService service(globals);
    PrintStatus(OrFail(service.Execute({{"command", "status"}, {"dataset", args->dataset}})), globals);
  });
}

void AddWatch(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* const watch =
      group.add_subcommand("watch", "Wait until the migration needs an operator or has ended");
  watch->add_option("dataset", args->dataset, kDatasetHelp)->required();
  watch->footer("Example: kv migrate watch events");
  watch->callback([args, &globals] {
    MigrationService service(globals);
    if (service.embedded()) OrFail(service.Execute({{"command", "resume"}, {"dataset", args->dataset}}));
    if (OrFail(service.Execute({{"command", "status"}, {"dataset", args->dataset}})).value("phase", "") ==
        "created") {
      throw Failure{absl::FailedPreconditionError(
          fmt::format("the migration of '{0}' was not started yet: kv migrate start {0}", args->dataset))};
    }
    const Json last = Watch(service, args->dataset, globals);
    PrintStatus(last, globals);
    if (!last.value("problem", "").empty()) {
      throw Failure{absl::UnavailableError(last.value("problem", ""))};
    }
  });
}

}  // namespace

void AddMigrateCommands(CLI::App& app, Globals& globals) {
  CLI::App* const group =
      app.add_subcommand("migrate", "Migrate a dataset to another backend while it serves, and back");
  group->require_subcommand(1);
  AddCreate(*group, globals);
  AddSimple(*group, globals);
  AddResolve(*group, globals);
  AddAbandon(*group, globals);
  AddRepair(*group, globals);
  AddPause(*group, globals);
  AddThrottle(*group, globals);
  AddStatus(*group, globals);
  AddWatch(*group, globals);
  group->add_subcommand("list", "List all migrations")
      ->footer("Example: kv migrate list")
      ->callback([&globals] { List(globals); });
  group->footer(
      R"(With --server the server does the work, and continues when this command has ended. On an embedded store the command
itself does the work, and therefore waits. docs/migrating.md describes every step, and what to do when something dies.

Exit codes: 0 done; 1 refused, or, with --wait and watch, the migration met a problem, or, with --wait, copying was
paused before it was done, or, with list, a record cannot be read; 2 wrong usage.

Example:
  kv --server 127.0.0.1:7400 migrate create events --to mysql
  kv --server 127.0.0.1:7400 migrate start events --wait
  kv --server 127.0.0.1:7400 migrate cutover events --wait
  kv --server 127.0.0.1:7400 migrate finish events --wait)");
}

}  // namespace kvstore::cli
