#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/amounts.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "client/client.h"
#include "kvstore_api/json_text.h"
#include "migration/migrator.h"
#include "registry/open.h"

/// kv migrate: a dataset moves between backends while it serves.
namespace kvstore::cli {
namespace {

/// Who is remembered in the log as having asked.
std::string Who() {
  const char* const user = std::getenv("USER");
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}@{}", user != nullptr ? user : std::to_string(::getuid()), host.data());
}

/// What carries commands out: a server, or this process for as long as the command takes.
class Door {
 public:
  explicit Door(const Globals& globals) {
    if (!globals.server.empty()) {
      client_ = std::make_unique<client::Client>(
          OrFail(client::Caller::Open(globals.server, globals.ServerConnection())));
      return;
    }
    const Config config = globals.ReadConfiguration();
    router_ = OrFail(OpenRouter(config.store));
    migrator_ = std::make_unique<Migrator>(*router_, config.store.data / "migrations.log");
  }

  /// Whether the work ends with this process.
  bool embedded() const { return migrator_ != nullptr; }
  absl::StatusOr<Json> Try(Json command) {
    command["who"] = Who();
    // Numbers as they come over the wire.
    const Json sent = Json::parse(TextOf(command));
    return migrator_ ? migrator_->Command(sent) : client_->Command(sent);
  }

 private:
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Migrator> migrator_;
};

/// Whether it waits for an operator, or is at its end.
bool Rests(const Json& status) {
  const std::string phase = status.value("phase", "");
  if (phase == "finished" || phase == "aborted") return true;
  if (status.value("paused", false) || !status.value("doubt", "").empty()) return true;
  return (phase == "ready" && !status.value("automatic", false)) || phase == "reversible"
             ? status.value("wanted", "nothing") == "nothing"
             : false;
}

/// A command of `kv migrate` as one types it; what only the operator can know is in capitals.
std::string WithArguments(const std::string& command, const std::string& dataset) {
  const char* more = "";
  if (command == "resolve") more = " --keep BACKEND";
  if (command == "abandon") more = " --gone BACKEND";
  if (command == "throttle") more = " --share PERCENT";
  return fmt::format("{} {}{}", command, dataset, more);
}

void PrintStatus(const Json& status, const Globals& globals) {
  if (globals.json) {
    Json line = status;
    line["ok"] = true;
    PrintJson(line);
    return;
  }
  const auto number = [&](const char* name) { return status.value(name, uint64_t{0}); };
  const auto text = [&](const char* name) { return status.value(name, std::string()); };
  Print("dataset       {}\n", text("dataset"));
  Print("phase         {}{}{}\n", text("phase"), status.value("paused", false) ? ", paused" : "",
        text("wanted") == "nothing" ? "" : ", " + text("wanted") + " asked for");
  Print("moves         {} -> {}; {} is the truth\n", text("source"), text("target"), text("truth"));
  Print("copied        {} units, {:.1f} MB; {} of {} partitions; {} units/s{}\n", number("units_done"),
        static_cast<double>(number("bytes_done")) / 1e6, number("partitions_done"), number("partitions"),
        number("units_per_s"),
        number("units_left") == 0
            ? ""
            : fmt::format("; about {} left, {} s", number("units_left"), number("seconds_left")));
  Print("again         {} units that were written meanwhile\n", number("drained_units"));
  if (status.contains("lag")) {
    Print("lag           {} units, the oldest {} ms\n", status["lag"].value("units", 0),
          status["lag"].value("ms", 0));
  }
  Print("verified      {} passes; {} units compared, {} differed, {} copied again\n", number("verify_passes"),
        number("compared_units"), number("differences"), number("repaired"));
  if (number("write_pause_ms") > 0) {
    Print("last cutover  writes were held for {} ms, reads for {} ms\n", number("write_pause_ms"),
          number("read_pause_ms"));
  }
  if (!text("problem").empty()) Print("problem       {}\n", text("problem"));
  if (!text("doubt").empty()) {
    Print(
        "doubt         {}\n              kv migrate resolve {} --keep BACKEND says which side is right; see "
        "docs/runbook.md\n",
        text("doubt"), text("dataset"));
  }
  if (!status.contains("next")) return;
  const char* title = "next";
  for (const Json& command : status["next"]) {
    Print("{:<14}kv migrate {}\n", title, WithArguments(command.get<std::string>(), text("dataset")));
    title = "";
  }
}

/// Waits until it rests; the last status.
Json Watch(Door& door, const std::string& dataset, const Globals& globals) {
  ProgressBar bar("migrate " + dataset, "units");
  std::string phase;
  for (;;) {
    auto status = door.Try({{"command", "status"}, {"dataset", dataset}});
    // Its record is gone when it is at its end.
    if (absl::IsNotFound(status.status()) && !phase.empty()) {
      return {{"dataset", dataset}, {"phase", phase == "aborting" ? "aborted" : "finished"}};
    }
    Json now = OrFail(std::move(status));
    phase = now.value("phase", "");
    if (Rests(now)) return now;
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
  std::optional<uint64_t> threads;
  std::optional<uint64_t> freeze_ms;
  std::optional<uint64_t> units_per_s;
  std::optional<uint64_t> bytes_per_s;
  std::optional<uint64_t> share;
  std::optional<uint64_t> max_read_us;

  void AddLimits(CLI::App& command) {
    command.add_option("--units-per-s", units_per_s, "Units copied a second at most; 0: no limit");
    command.add_option("--bytes-per-s", bytes_per_s, "Bytes copied a second at most; 0: no limit");
    command.add_option(
        "--max-read-us", max_read_us,
        "Copy less while a read of the side that serves takes longer than so many us; 0: do not "
        "look [0]");
    command.add_option("--share", share, "Percent of its time that each copying thread works [50]")
        ->check(CLI::Range(1, 100));
  }
  Json ToJson(const std::string& command) const {
    Json json = {{"command", command}, {"dataset", dataset}};
    if (!target.empty()) json["target"] = target;
    if (!engine.empty()) json["engine"] = engine;
    if (automatic) json["auto"] = true;
    if (!keep.empty()) json["keep"] = keep;
    if (!gone.empty()) json["gone"] = gone;
    if (dry_run) json["dry_run"] = true;
    if (threads) json["threads"] = *threads;
    if (freeze_ms) json["freeze_ms"] = *freeze_ms;
    if (units_per_s) json["units_per_s"] = *units_per_s;
    if (bytes_per_s) json["bytes_per_s"] = *bytes_per_s;
    if (share) json["share"] = *share;
    if (max_read_us) json["max_read_us"] = *max_read_us;
    return json;
  }
};

void Do(const std::string& command, const Arguments& args, const Globals& globals) {
  Door door(globals);
  Json status = OrFail(door.Try(args.ToJson(command)));
  const bool works = command != "create" && command != "throttle" && command != "pause" && !args.dry_run;
  // An embedded store has nobody else who would do it.
  if (works && (args.wait || door.embedded())) status = Watch(door, args.dataset, globals);
  PrintStatus(status, globals);
  const std::string problem = status.value("problem", "");
  if (works && args.wait && !problem.empty()) throw Failure{absl::UnavailableError(problem)};
}

void List(const Globals& globals) {
  Door door(globals);
  const Json list = OrFail(door.Try({{"command", "list"}}));
  if (globals.json) {
    Json line = list;
    line["ok"] = true;
    PrintJson(line);
    return;
  }
  Table table({"DATASET", "PHASE", "SOURCE", "TARGET", "TRUTH", "COPIED", "PROBLEM"});
  for (const Json& one : list.at("migrations")) {
    table.Add({one.value("dataset", ""), one.value("phase", ""), one.value("source", ""),
               one.value("target", ""), one.value("truth", ""),
               std::to_string(one.value("units_done", uint64_t{0})), one.value("problem", "")});
  }
  table.Print();
}

/// more  of its example, behind the dataset.
CLI::App* Add(CLI::App& group, const std::string& command, const std::string& about, Globals& globals,
              const std::shared_ptr<Arguments>& args, const std::string& more = "") {
  CLI::App* const added = group.add_subcommand(command, about);
  added->add_option("dataset", args->dataset)->required();
  added->add_flag("--dry-run", args->dry_run, "Only say whether it is possible, and how things stand");
  added->footer(fmt::format("Example: kv migrate {} events{}", command, more));
  added->callback([command, args, &globals] { Do(command, *args, globals); });
  return added;
}

}  // namespace

void AddMigrateCommands(CLI::App& app, Globals& globals) {
  CLI::App* const group =
      app.add_subcommand("migrate", "Move a dataset to another backend while it serves, and back");
  group->require_subcommand(1);
  {
    auto args = std::make_shared<Arguments>();
    CLI::App* const create = Add(*group, "create", "Look at both sides, and write down what is to be done",
                                 globals, args, " --to mysql");
    create->add_option("--to", args->target, "The backend to move to")->required()->type_name("BACKEND");
    create->add_option("--engine", args->engine, "Its storage engine, where it has several");
    create->add_flag("--auto", args->automatic, "Cut over as soon as both sides are the same");
    create->add_option("--threads", args->threads, "Partitions copied at a time [4]")
        ->check(CLI::Range(1, 64));
    TakeDuration(create
                     ->add_option("--freeze-ms", args->freeze_ms,
                                  "How long a cutover may hold writes before it is given up [1000]")
                     ->check(CLI::Range(10, 60'000)));
    args->AddLimits(*create);
  }
  struct Simple {
    const char* name;
    const char* about;
  };
  for (const Simple& one : std::array<Simple, 8>{{
           {"start", "Copy, keep the copy current, and compare: up to phase ready"},
           {"resume", "Go on where a process before stopped, or after a pause"},
           {"verify", "Compare both sides again"},
           {"cutover", "Let the target serve; the source is kept current"},
           {"reverse", "Let the source serve again; the target is kept current"},
           {"rollback", "Let the source serve again, and remove the target"},
           {"finish", "Remove the source: there is no way back any more"},
           {"cancel", "Before the cutover: remove the target, and leave all as it was"},
       }}) {
    auto args = std::make_shared<Arguments>();
    Add(*group, one.name, one.about, globals, args)
        ->add_flag("--wait", args->wait, "Return when it is done; exit code 1 if it met a problem");
  }
  {
    auto args = std::make_shared<Arguments>();
    CLI::App* const resolve =
        Add(*group, "resolve", "Say which side is right, when both differ and one may have lost writes",
            globals, args, " --keep mysql");
    resolve
        ->add_option(
            "--keep", args->keep,
            "The backend that is right. The one that serves: the copy is made like it. The other one: it "
            "serves again, with what it has")
        ->required()
        ->type_name("BACKEND");
    resolve->add_flag("--wait", args->wait, "Return when it is done; exit code 1 if it met a problem");
  }
  {
    auto args = std::make_shared<Arguments>();
    CLI::App* const abandon =
        Add(*group, "abandon", "End the migration without a side whose hosts will never be back", globals,
            args, " --gone mysql");
    abandon
        ->add_option(
            "--gone", args->gone,
            "That backend. The other one serves, with what it has; refused while this one answers. Its hosts "
            "must not come back: clients that know of no change would use them")
        ->required()
        ->type_name("BACKEND");
    abandon->add_flag("--wait", args->wait, "Return when it is done; exit code 1 if it met a problem");
  }
  {
    auto args = std::make_shared<Arguments>();
    Add(*group, "pause", "Copy nothing until resume; what is written meanwhile is remembered", globals, args);
  }
  {
    auto args = std::make_shared<Arguments>();
    args->AddLimits(*Add(*group, "throttle", "Change how fast it copies, at once", globals, args,
                         " --units-per-s 10000"));
  }
  {
    auto args = std::make_shared<Arguments>();
    CLI::App* const status =
        group->add_subcommand("status", "How a migration stands, and what may be done next");
    status->add_option("dataset", args->dataset)->required();
    status->footer("Example: kv migrate status events");
    status->callback([args, &globals] {
      Door door(globals);
      PrintStatus(OrFail(door.Try({{"command", "status"}, {"dataset", args->dataset}})), globals);
    });
    CLI::App* const watch =
        group->add_subcommand("watch", "Wait until it needs an operator or is at its end");
    watch->add_option("dataset", args->dataset)->required();
    watch->footer("Example: kv migrate watch events");
    watch->callback([args, &globals] {
      Door door(globals);
      if (door.embedded()) OrFail(door.Try({{"command", "resume"}, {"dataset", args->dataset}}));
      if (OrFail(door.Try({{"command", "status"}, {"dataset", args->dataset}})).value("phase", "") ==
          "created") {
        throw Failure{absl::FailedPreconditionError("it was not started yet")};
      }
      const Json last = Watch(door, args->dataset, globals);
      PrintStatus(last, globals);
      if (!last.value("problem", "").empty()) {
        throw Failure{absl::UnavailableError(last.value("problem", ""))};
      }
    });
  }
  group->add_subcommand("list", "All migrations")->footer("Example: kv migrate list")->callback([&globals] {
    List(globals);
  });
  group->footer(
      R"(With --server the server does the work, and goes on when this command has ended. An embedded store is worked on by the
command itself, which therefore waits. docs/migrating.md tells the whole story, and what to do when something dies.

Exit codes: 0 done; 1 refused, or with --wait and watch: it met a problem; 2 wrong usage.

Example:
  kv --server 127.0.0.1:7400 migrate create events --to mysql
  kv --server 127.0.0.1:7400 migrate start events --wait
  kv --server 127.0.0.1:7400 migrate cutover events --wait
  kv --server 127.0.0.1:7400 migrate finish events --wait)");
}

}  // namespace kvstore::cli
