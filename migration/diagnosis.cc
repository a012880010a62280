#include "migration/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "migration/contradiction.h"

namespace kvstore::migration {
namespace {

using State = EndpointState;

constexpr std::array<std::pair<RepairStep, std::string_view>, 5> kStepNames = {{
    {RepairStep::kRebuildRecord, "rebuild_record"},
    {RepairStep::kTurnRecord, "turn_record"},
    {RepairStep::kCompareAgain, "compare_again"},
    {RepairStep::kRouteCatalog, "route_catalog"},
    {RepairStep::kResume, "resume"},
}};

std::string TextOfStatus(const absl::Status& status) { return std::string(status.message()); }

bool ServesAnywhere(const SideFacts& side) { return migration::ServesAnywhere(side.status); }

uint32_t CountOf(const SideFacts& side, State state) {
  const auto found = side.status.partitions.find(state);
  return found == side.status.partitions.end() ? 0 : found->second;
}

std::string StatesText(const SideFacts& side) { return migration::StatesText(side.status); }

/// Whether the record's phase is one in which the truth serves and the copy is only kept current.
bool IsResting(Phase phase) {
  return phase == Phase::kBackfill || phase == Phase::kVerify || phase == Phase::kReady ||
         phase == Phase::kReversible;
}

/// Collects the diagnosis of one migration.
class Examination {
 public:
  explicit Examination(const RepairFacts& facts) : facts_(facts) {}

  Diagnosis Examine() {
    if (!facts_.entry_problem.ok()) {
      ExamineLostEntry();
    } else if (absl::IsNotFound(facts_.record_problem)) {
      ExamineLostRecord();
    } else if (!facts_.record_problem.ok()) {
      ExamineDamagedRecord();
    } else {
      ExamineRecord();
    }
    return std::move(found_);
  }

 private:
  template <typename... Args>
  void Find(fmt::format_string<Args...> format, Args&&... args) {
    found_.findings.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) {
    found_.notes.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  /// How a side is called: with its engine where its backend is that of the other side, too.
  std::string NameOf(const SideFacts& side) const {
    if (facts_.source.backend != facts_.target.backend) return side.backend;
    return fmt::format("{} ({})", side.backend, side.engine.empty() ? "default engine" : side.engine);
  }
  bool RoutesTo(const SideFacts& side) const {
    return facts_.entry.spec.backend == side.backend && facts_.entry.spec.engine == side.engine;
  }
  void Do(RepairStep step, std::string text) {
    if (!found_.Has(step)) found_.steps.push_back({step, std::move(text)});
  }
  void Decide(std::string why, std::string command) {
    found_.decisions.push_back({std::move(why), std::move(command)});
  }
  std::string Command(const char* command) const {
    return fmt::format("kv migrate {} {}", command, facts_.dataset);
  }

  void ExamineLostEntry() {
    Find("the catalog's entry of '{}' is not known: {}", facts_.dataset, TextOfStatus(facts_.entry_problem));
    if (!absl::IsNotFound(facts_.entry_problem)) return;
    Decide("if the dataset was dropped on purpose, this forgets its migration", Command("cancel"));
  }

  void ExamineDamagedRecord() {
    Find("{}", TextOfStatus(facts_.record_problem));
    Decide(
        "put the record back, or, if that is impossible, save it and remove it: docs/runbook.md, 'The record "
        "of a migration cannot be read'; without a record this makes one from what both sides have",
        Command("repair") + " --yes");
  }

  /// Finds sides that do not answer. Returns whether both do.
  bool BothAnswer(const std::string& abandon) {
    bool both = true;
    for (const SideFacts* const side : {&facts_.source, &facts_.target}) {
      if (side->problem.ok()) continue;
      both = false;
      Find("'{}' cannot be asked: {}", side->backend, TextOfStatus(side->problem));
      if (facts_.source.backend == facts_.target.backend) continue;
      Decide(
          fmt::format("bring the hosts of '{}' back, or promote their slaves; only if it will never be back, "
                      "this ends the migration without it",
                      side->backend),
          abandon.empty() ? Command("repair") : fmt::format("{} --gone {}", abandon, side->backend));
    }
    return both;
  }

  // ---- without a record ----

  void ExamineLostRecord() {
    const SideFacts& routed = facts_.source;
    const SideFacts& other = facts_.target;
    Find(
        "the catalog says that '{}' migrates, from or to '{}', but the migration has no record: it was "
        "removed, "
        "or ZooKeeper was restored from a backup",
        facts_.dataset, other.backend);
    if (!BothAnswer("")) return;
    if (routed.status.Any(State::kAbsent) && other.status.All(State::kServing) && !ServesAnywhere(routed)) {
      Find(
          "'{0}', to which the catalog routes clients, is {1}, and '{2}' serves everywhere: the migration "
          "had "
          "moved the truth there, and the catalog is older. Do not restore the tables of '{0}' from a "
          "backup: "
          "both sides would serve then",
          NameOf(routed), StatesText(routed), NameOf(other));
    } else if (routed.status.Any(State::kAbsent)) {
      Find("'{}', to which the catalog routes clients, is {}", routed.backend, StatesText(routed));
      Decide("some of its tables are gone: restore them, then ask again", Command("repair"));
      return;
    }
    if (ServesAnywhere(routed) && ServesAnywhere(other)) {
      Find("both sides serve: '{}' is {}, and '{}' is {}", routed.backend, StatesText(routed), other.backend,
           StatesText(other));
      Decide(
          "clients may have written to both, and nobody can say which one is right: docs/runbook.md, 'A "
          "migration "
          "died badly'",
          Command("repair"));
      return;
    }
    if (ServesAnywhere(other) && !other.status.All(State::kServing)) {
      Find("'{}' serves in part: it is {}; '{}', to which the catalog routes clients, is {}", NameOf(other),
           StatesText(other), NameOf(routed), StatesText(routed));
      Decide(
          "a cutover was cut short while it opened or closed a side, and clients may have written to either: "
          "docs/runbook.md, 'A migration died badly'",
          Command("repair"));
      return;
    }
    if (!ServesAnywhere(other) && routed.status.Any(State::kImporting)) {
      Find("neither side serves, and '{}', to which the catalog routes clients, is {}", NameOf(routed),
           StatesText(routed));
      Decide("nobody can say which side has everything: docs/runbook.md, 'A migration died badly'",
             Command("repair"));
      return;
    }
    Record& record = found_.rebuilt;
    record.dataset = facts_.dataset;
    record.incarnation = facts_.entry.spec.incarnation;
    record.epoch = std::max(routed.status.epoch, other.status.epoch);
    const auto name = [&](const SideFacts& source, const SideFacts& target) {
      record.source = source.backend;
      record.source_engine = source.engine;
      record.target = target.backend;
      record.target_engine = target.engine;
    };
    name(routed, other);
    found_.truth = NameOf(routed);
    if (other.status.All(State::kServing) && routed.status.All(State::kAbsent)) {
      record.on_target = true;
      record.crossed = true;
      record.phase = Phase::kFinishing;
      found_.truth = NameOf(other);
      Do(RepairStep::kRebuildRecord,
         fmt::format("make a record by which the migration ends: '{}' serves, and '{}' has nothing left",
                     NameOf(other), NameOf(routed)));
      Do(RepairStep::kRouteCatalog, fmt::format("route clients to '{}'", NameOf(other)));
    } else if (other.status.All(State::kServing)) {
      record.on_target = true;
      record.crossed = true;
      record.phase = Phase::kVerify;
      found_.truth = NameOf(other);
      Do(RepairStep::kRebuildRecord,
         fmt::format(
             "make a record which says that '{}' is the truth, because it serves everywhere, and that both "
             "sides are to be compared",
             other.backend));
      Do(RepairStep::kRouteCatalog, fmt::format("route clients to '{}'", other.backend));
    } else if (routed.status.All(State::kServing) && other.status.All(State::kAbsent)) {
      record.phase = Phase::kAborting;
      Do(RepairStep::kRebuildRecord,
         fmt::format("make a record by which what is left of the migration is removed: '{}' has no copy",
                     other.backend));
    } else if (routed.status.All(State::kServing) && !other.status.Any(State::kMoved)) {
      record.phase = Phase::kPrepare;
      Do(RepairStep::kRebuildRecord,
         fmt::format("make a record by which '{}' is copied to '{}' anew, with the usual limits",
                     routed.backend, other.backend));
    } else if (routed.status.All(State::kServing)) {
      name(other, routed);
      record.on_target = true;
      record.crossed = true;
      record.phase = Phase::kVerify;
      Do(RepairStep::kRebuildRecord,
         fmt::format(
             "make a record which says that '{}' serves and '{}' has moved, and that both sides are to be "
             "compared before one is changed",
             routed.backend, other.backend));
    } else {
      record.crossed = true;
      record.phase = Phase::kVerify;
      Do(RepairStep::kRebuildRecord,
         fmt::format(
             "make a record which says that '{}', to which the catalog routes clients, is the truth: a "
             "cutover was cut short before '{}' was opened",
             routed.backend, other.backend));
    }
    Do(RepairStep::kResume, "let a worker of this process go on from there");
  }

  // ---- with a record ----

  void ExamineRecord() {
    const Record& record = facts_.record;
    if (record.phase == Phase::kFinished || record.phase == Phase::kAborted) return;
    const SideFacts& truth = record.on_target ? facts_.target : facts_.source;
    const SideFacts& copy = record.on_target ? facts_.source : facts_.target;
    found_.truth = NameOf(truth);
    if (facts_.entry.spec.incarnation != record.incarnation) {
      Find("the dataset was dropped, and there is another one of the same name");
      found_.truth.clear();
      Decide("the record is of the dataset that is gone; this forgets it", Command("cancel"));
      return;
    }
    if (record.phase == Phase::kCreated) return;
    const bool works = facts_.runs_here || facts_.runs_elsewhere;
    if (!works) Find("no process works on it: that of the last worker is gone");
    if (works && !record.problem.empty()) Find("its worker retries a step that fails: {}", record.problem);
    const bool both = BothAnswer(Command("abandon"));
    if (!record.doubt.empty()) {
      Find("both sides differ: {}", record.doubt);
      Decide(
          "only a person can know which side is right; the one that is kept gets what was written to the "
          "side "
          "that serves since",
          fmt::format("kv migrate resolve {} --keep BACKEND", facts_.dataset));
    }
    if (both) {
      for (const SideFacts* const side : {&truth, &copy}) ExamineReplaced(*side, side == &facts_.source);
      // While its worker lives, a step is in any state.
      if ((IsResting(record.phase) || !works) && !ExamineContradiction(truth, copy)) return;
      if (IsResting(record.phase) && !ExamineResting(truth, copy)) return;
      if (record.phase == Phase::kCutover) ExamineCutover(truth, copy);
    }
    if (IsResting(record.phase)) ExamineRoute();
    if (!works || found_.Has(RepairStep::kTurnRecord) || found_.Has(RepairStep::kCompareAgain)) {
      Do(RepairStep::kResume, ResumeText());
    }
  }

  /// Finds that a side was restarted or replaced since both were last found the same.
  void ExamineReplaced(const SideFacts& side, bool source) {
    const std::string& verified = facts_.record.verified;
    const size_t bar = verified.find('|');
    if (bar == std::string::npos) return;
    if (side.boot == (source ? verified.substr(0, bar) : verified.substr(bar + 1))) return;
    Note("a host of '{}' was restarted or replaced since both sides were last found the same{}", side.backend,
         side.status.epoch < facts_.record.epoch
             ? fmt::format(
                   "; it knows worker {}, and the record worker {}: it may have come back with older data",
                   side.status.epoch, facts_.record.epoch)
             : "");
  }

  /// Finds that a worker must not go on as the record says. Returns false if so: then a person must decide.
  bool ExamineContradiction(const SideFacts& truth, const SideFacts& copy) {
    // For this a record can be turned.
    if (IsResting(facts_.record.phase) && copy.status.All(State::kServing) && !ServesAnywhere(truth) &&
        (RoutesTo(copy) || IsOutdated(facts_.record, truth.status, &copy.status))) {
      return true;
    }
    const std::string why =
        FindContradiction(facts_.record, facts_.entry.spec.backend, truth.status, &copy.status);
    if (why.empty()) return true;
    Find("{}", why);
    found_.truth.clear();
    Decide(
        "no worker goes on with this record, because it could remove or close the side that has everything. "
        "Put "
        "the newest record back; or, if that is impossible, save this one and remove it: docs/runbook.md, "
        "'The "
        "record of a migration cannot be read'. Without a record this says what both sides have",
        Command("repair"));
    return false;
  }

  /// Finds that the record is an old one. Returns whether it is.
  bool ExamineAge(const SideFacts& truth, const SideFacts& copy) {
    const Record& record = facts_.record;
    const uint64_t newest = std::max(truth.status.epoch, copy.status.epoch);
    // It says that a cutover was begun before the first side is closed.
    const bool before_cutover = !record.crossed && truth.status.Any(State::kMoved);
    if (!before_cutover && !IsOutdated(record, truth.status, &copy.status)) return false;
    Find(
        "the record is older than what both sides have: {}; ZooKeeper, or the record, was restored from a "
        "backup",
        before_cutover ? fmt::format("it knows of no cutover, and '{}' has moved", NameOf(truth))
                       : fmt::format("it knows worker {}, and they know worker {}", record.epoch, newest));
    found_.crossed = ShowsCutover(truth.status, copy.status);
    return true;
  }

  /// Examines a migration between two steps, both of whose sides answer. Returns false if a person must
  /// decide before a worker may go on.
  bool ExamineResting(const SideFacts& truth, const SideFacts& copy) {
    const Record& record = facts_.record;
    const bool outdated = ExamineAge(truth, copy);
    if (copy.status.All(State::kServing) && !ServesAnywhere(truth)) {
      Find("'{}' serves everywhere, and '{}', which the record takes for the truth, nowhere: it is {}",
           copy.backend, truth.backend, StatesText(truth));
      if (outdated || RoutesTo(copy)) {
        found_.truth = NameOf(copy);
        found_.on_target = !record.on_target;
        Do(RepairStep::kTurnRecord,
           fmt::format(
               "make the record say that '{}' is the truth; both sides are compared before one is changed",
               copy.backend));
        return true;
      }
      return Refuse(truth, copy);
    }
    if (ServesAnywhere(copy)) {
      Find("'{}' serves although the record takes '{}' for the truth: it is {}", copy.backend, truth.backend,
           StatesText(copy));
      if (outdated) return Refuse(truth, copy);
    }
    if (truth.status.Any(State::kAbsent)) {
      Find("'{}', which is the truth, has no dataset on {} of its partitions: their tables are gone",
           truth.backend, CountOf(truth, State::kAbsent));
      found_.truth.clear();
      Decide(fmt::format("restore them first: a worker that goes on makes them anew, empty{}",
                         record.crossed ? "" : ", and removes from the copy what it does not find there"),
             Command("resume"));
      return false;
    }
    if (outdated) CompareAgain("what was written since the record is found");
    if (!truth.status.All(State::kServing)) {
      Find("'{}', which is the truth, does not serve everywhere: it is {}", truth.backend, StatesText(truth));
    }
    if (copy.status.Any(State::kAbsent)) {
      Find("'{}', which is the copy, has no dataset on {} of its partitions: their tables are gone",
           copy.backend, CountOf(copy, State::kAbsent));
      CompareAgain("what is missing there is found, and copied");
    }
    if (!truth.status.capture) {
      Find(
          "'{}' does not record which units are written: its dirty log is lost, and what was written since "
          "is not "
          "known",
          truth.backend);
      CompareAgain("what was written meanwhile is found");
    } else if (!truth.log_problem.ok()) {
      Find("the dirty log of '{}' cannot be read: {}", truth.backend, TextOfStatus(truth.log_problem));
      if (!record.crossed) {
        Decide("this removes the copy, and loses nothing; then create the migration again",
               Command("cancel"));
        return false;
      }
      Decide("restore the log's table, empty, as it is on another shard; then both sides must be compared",
             Command("verify"));
      return false;
    }
    return true;
  }

  bool Refuse(const SideFacts& truth, const SideFacts& copy) {
    found_.truth.clear();
    Decide(fmt::format(
               "nobody can say whether the record is right; this lets '{}' serve and closes '{}', of which "
               "nothing is removed: what clients wrote there is shown as a doubt",
               truth.backend, copy.backend),
           Command("resume"));
    return false;
  }

  void CompareAgain(const char* by_which) {
    // The phases before the comparison lead to it anyway.
    if (facts_.record.phase == Phase::kBackfill && !found_.crossed) {
      Do(RepairStep::kResume, ResumeText());
      return;
    }
    Do(RepairStep::kCompareAgain,
       fmt::format("compare both sides again, with writes being recorded: by that {}", by_which));
  }

  void ExamineCutover(const SideFacts& from, const SideFacts& to) {
    // While its worker lives, a cutover is in any state.
    if (facts_.runs_here || facts_.runs_elsewhere) return;
    Find("a cutover from '{}' to '{}' was cut short: '{}' is {}, and '{}' is {}", from.backend, to.backend,
         from.backend, StatesText(from), to.backend, StatesText(to));
    const bool outdated = ExamineAge(from, to);
    if ((facts_.record.complete && !outdated) || RoutesTo(to) || to.status.Any(State::kServing)) {
      found_.truth = NameOf(to);
    }
    if (to.status.Any(State::kAbsent)) {
      Find("'{}', to which the truth was to move, has no dataset on {} of its partitions", NameOf(to),
           CountOf(to, State::kAbsent));
    }
    if (outdated || to.status.Any(State::kAbsent)) {
      CompareAgain("what it lacks is found before the next cutover");
    }
  }

  /// Finds that the catalog does not name the sides as the record does.
  void ExamineRoute() {
    const Record& record = facts_.record;
    const bool on_target = found_.Has(RepairStep::kTurnRecord) ? !record.on_target : record.on_target;
    const SideFacts& truth = on_target ? facts_.target : facts_.source;
    const SideFacts& copy = on_target ? facts_.source : facts_.target;
    const CatalogEntry& entry = facts_.entry;
    const bool routed = entry.spec.backend == truth.backend && entry.spec.engine == truth.engine;
    if (routed && entry.other_backend == copy.backend && entry.other_engine == copy.engine) return;
    if (!routed) {
      Find("the catalog routes clients to '{}'{}, which does not serve: they find no side",
           entry.spec.backend,
           entry.spec.engine.empty() ? "" : fmt::format(" (engine '{}')", entry.spec.engine));
    } else {
      Find(
          "the catalog does not say that the dataset migrates, so that it could be altered or dropped "
          "meanwhile");
    }
    // Without that nobody knows where clients should go.
    if (!truth.problem.ok() || !truth.status.All(State::kServing)) return;
    Do(RepairStep::kRouteCatalog,
       fmt::format("make the catalog route clients to '{}', and name '{}' as the other side", truth.backend,
                   copy.backend));
  }

  std::string ResumeText() const {
    const Record& record = facts_.record;
    const std::string& from = record.on_target ? record.target : record.source;
    const std::string& to = record.on_target ? record.source : record.target;
    if (record.phase != Phase::kCutover) {
      return "let a worker of this process take the migration over; it brings both sides to the states that "
             "the "
             "record says";
    }
    return fmt::format(
        "let a worker of this process take the cutover over: it is finished if '{}' was opened, or "
        "was about to be, and given up otherwise, so that '{}' goes on serving",
        to, from);
  }

  const RepairFacts& facts_;
  Diagnosis found_;
};

}  // namespace

std::string_view Name(RepairStep step) {
  for (const auto& [one, name] : kStepNames) {
    if (one == step) return name;
  }
  return "unknown";
}

bool Diagnosis::Has(RepairStep step) const {
  return std::any_of(steps.begin(), steps.end(), [step](const Step& one) { return one.step == step; });
}

Diagnosis Diagnose(const RepairFacts& facts) { return Examination(facts).Examine(); }

}  // namespace kvstore::migration
