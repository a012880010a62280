#include "operate/orchestrator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "operate/leader.h"
#include "operate/verdict.h"
#include "shardops/maps.h"

namespace kvstore::operate {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// How often all hosts are inspected. The findings on masters are recorded, so that an emergency promotion
/// knows whether it loses anything.
constexpr std::chrono::seconds kInspectEvery{5};
/// For how long a problem of a host must last before a person is told; a master that does not answer is given
/// up, or replaced, by then.
constexpr std::chrono::seconds kSettle{10};
/// The findings of an inspection that began longer ago than this are not acted upon.
constexpr uint64_t kInspectionHoldsMs = 8'000;
/// A look that is older than this says nothing any more.
constexpr std::chrono::seconds kReadyWithin{10};

}  // namespace

Orchestrator::Orchestrator(Setup setup)
    : setup_(std::move(setup)),
      session_(setup_.fleet, setup_.who, [](const std::string& line) { spdlog::info("{}", line); }),
      inspected_(setup_.fleet, setup_.who, /*report=*/nullptr),
      membership_((*session_).zookeeper, setup_.fleet.root, setup_.who),
      pairs_((*session_).zookeeper, setup_.fleet.root),
      journal_((*session_).zookeeper, setup_.fleet.root, setup_.who, setup_.options),
      alarms_([this](Event event) { journal_.Add(std::move(event)); }),
      lookout_(*setup_.fleet.access),
      inspection_(kInspectEvery, [this](const std::atomic<bool>&) -> Reports {
        const uint64_t began_ms = BootClockMs();
        auto reports = shardops::InspectFleet(*inspected_);
        if (!reports.ok()) return reports.status();
        return Inspected{.reports = *std::move(reports), .began_ms = began_ms};
      }) {
  for (const Check& check : setup_.checks) {
    checks_.push_back({check.source, std::make_unique<Periodic<Found>>(check.every, check.find)});
  }
  // A host that is gone is not waited for; but a slave may take long to let go of its master.
  (*session_).access.admin.pool.connect_timeout_s = Lookout::kTimeoutS;
}

Orchestrator::~Orchestrator() = default;

void Orchestrator::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

bool Orchestrator::ready() const {
  const MutexLock lock(mutex_);
  return figures_.looks > 0 && Clock::now() - figures_.at < kReadyWithin;
}

void Orchestrator::Run() {
  for (;;) {
    const auto begin = Clock::now();
    LookSafely();
    MutexLock lock(mutex_);
    figures_.look_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    // Other masters may be dead, too.
    const auto next = dead_masters_.has_more() ? Clock::now() : begin + milliseconds(setup_.options.look_ms);
    while (!stopping_ && !lock.WaitUntil(changed_, next)) {
    }
    if (stopping_) break;
  }
  inspection_.SetActive(false);
  for (const Running& one : checks_) one.check->SetActive(false);
  membership_.Leave();
}

void Orchestrator::LookSafely() {
  try {
    Look();
  } catch (const std::exception& error) {
    spdlog::error("this look at the fleet was cut short: {}", error.what());
  }
}

void Orchestrator::Look() {
  shardops::FleetOperator& fleet = *session_;
  const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  const auto disagreements = maps.ok() ? maps->Disagreements() : std::map<Host, std::string>();
  std::vector<shardops::Pair> pairs;
  if (maps.ok()) {
    for (const shardops::Pair& pair : maps->Pairs()) {
      // Which of the hosts is the master is not known where the maps contradict each other.
      if (!disagreements.contains(pair.master) && !disagreements.contains(pair.slave)) pairs.push_back(pair);
    }
  }
  const uint64_t looked_ms = BootClockMs();
  const std::vector<Silence> silences = lookout_.Look(pairs);
  const auto meeting = maps.ok() ? membership_.Meet(Says(silences)) : maps.status();
  if (!meeting.ok()) {
    spdlog::warn("nothing is done before ZooKeeper and the shard maps can be read: {}",
                 std::string(meeting.status().message()));
    SetLeads({});
    const MutexLock lock(mutex_);
    figures_.leads = false;
    figures_.alarms.clear();
    return;
  }
  SetLeads(*meeting);
  if (leads_) Lead(*meeting, pairs, silences, looked_ms);
  const MutexLock lock(mutex_);
  figures_ = {.leads = leads_,
              .looks = figures_.looks + 1,
              .silent = silences.size(),
              .members = meeting->others.size() + 1,
              .promoted = dead_masters_.promoted(),
              .failed = dead_masters_.failed(),
              .look_seconds = figures_.look_seconds,
              .alarms = leads_ ? alarms_.Told() : std::vector<Alarms::Alarm>(),
              .at = Clock::now()};
}

void Orchestrator::SetLeads(const Meeting& meeting) {
  shardops::FleetOperator& fleet = *session_;
  const bool begins = meeting.leads && (!leads_ || meeting.still_leads.version != leads_since_);
  if (!begins && meeting.leads == leads_) return;
  leads_ = meeting.leads;
  // Earlier findings do not hold in another leadership.
  inspection_.SetActive(leads_);
  for (const Running& one : checks_) one.check->SetActive(leads_);
  if (!leads_) {
    spdlog::warn("this process does not lead any more");
    return;
  }
  leads_since_ = meeting.still_leads.version;
  loaded_ = false;
  dead_masters_.Forget();
  repairs_ = Repairs();
  // Another one for each leadership: one that has ended must not begin anything.
  fleet.ledger = std::make_shared<ZooKeeperLedger>(fleet.zookeeper, fleet.root, setup_.who,
                                                   std::vector<ZooKeeperStep>{meeting.still_leads});
  journal_.Add(
      {.kind = "lead",
       .subject = "kv operate",
       .text = fmt::format("leads from now on{}", setup_.dry_run ? ", and only says what it would do" : "")});
}

std::set<std::string> Orchestrator::Sources() const {
  std::set<std::string> sources = {"masters", "repairs", "hosts", "hosts check", "operate"};
  for (const Running& one : checks_) {
    sources.insert(one.source);
    sources.insert(one.source + " check");
  }
  return sources;
}

void Orchestrator::Lead(const Meeting& meeting, const std::vector<shardops::Pair>& pairs,
                        const std::vector<Silence>& silences, uint64_t looked_ms) {
  shardops::FleetOperator& fleet = *session_;
  if (!loaded_) {
    // Without them a person would be told again.
    if (auto status = alarms_.Load(fleet.zookeeper, fleet.root, Sources()); !status.ok()) return;
    loaded_ = true;
  }
  Leader leader{.fleet = fleet,
                .pairs = pairs_,
                .journal = journal_,
                .options = setup_.options,
                .meeting = meeting,
                .dry_run = setup_.dry_run,
                .looked_ms = looked_ms,
                .is_busy = [this] { SayBusy(); }};
  alarms_.Set("masters", dead_masters_.Handle(leader, pairs, silences), kSettle, Alarms::Same::kSubject);
  TakeFindings(leader);
  std::vector<Finding> alone;
  if (meeting.others.empty()) {
    alone.push_back(
        {"kv operate",
         "only one process of kv operate runs: no dead master is replaced without a second observer, "
         "and nobody would notice if this one ended. Run it on another machine, too",
         page::kHost});
  }
  alarms_.Set("operate", alone, kSettle);
  Publish(meeting);
}

void Orchestrator::SayBusy() {
  if (auto said = membership_.SayBusy(); !said.ok()) {
    spdlog::warn("the other processes cannot be told that this one is busy: {}", std::string(said.message()));
    return;
  }
  const MutexLock lock(mutex_);
  figures_.at = Clock::now();
}

void Orchestrator::TakeFindings(Leader& leader) {
  // Says that something could not be looked at; what was found of it before holds on.
  const auto say = [&](const std::string& source, const absl::Status& status, const char* page) {
    std::vector<Finding> findings;
    if (!status.ok()) findings = {{source, "could not be checked: " + std::string(status.message()), page}};
    alarms_.Set(source + " check", findings, kSettle, Alarms::Same::kSubject);
  };
  if (const auto inspected = inspection_.Take()) {
    say("hosts", inspected->status(), page::kZooKeeper);
    if (inspected->ok()) {
      std::vector<Finding> findings;
      for (const shardops::HostReport& report : (*inspected)->reports) {
        // Masters that do not answer have alarms of their own.
        if (report.master && absl::IsUnavailable(report.status)) continue;
        for (const std::string& problem : report.problems) {
          findings.push_back({report.host.ToString(), problem, page::kHost});
        }
      }
      alarms_.Set("hosts", findings, kSettle);
      // Somebody may have changed since what was seen long ago.
      if (BootClockMs() - (*inspected)->began_ms < kInspectionHoldsMs) {
        alarms_.Set("repairs", repairs_.Handle(leader, (*inspected)->reports), milliseconds(0),
                    Alarms::Same::kSubject);
      }
    }
  }
  for (const Running& one : checks_) {
    const auto found = one.check->Take();
    if (!found) continue;
    say(one.source, found->status(), page::kHost);
    if (found->ok()) alarms_.Set(one.source, **found, milliseconds(0));
  }
}

void Orchestrator::Publish(const Meeting& meeting) {
  shardops::FleetOperator& fleet = *session_;
  for (const absl::Status& status :
       {alarms_.Publish(fleet.zookeeper, fleet.root, meeting.still_leads), journal_.Publish()}) {
    if (!status.ok()) {
      spdlog::warn("alarms and events cannot be brought to ZooKeeper now: {}", std::string(status.message()));
    }
  }
}

void Orchestrator::Describe(MetricsSink& sink) const {
  journal_.Describe(sink);
  const MutexLock lock(mutex_);
  const Figures& now = figures_;
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    sink.Gauge(name, help, {}, value);
  };
  const auto count = [&](std::string_view name, std::string_view help, double value) {
    sink.Counter(name, help, {}, value);
  };
  gauge("kvstore_operate_leads", "Whether this process leads", now.leads ? 1 : 0);
  gauge("kvstore_operate_members", "Processes of kv operate", static_cast<double>(now.members));
  gauge("kvstore_operate_silent_masters", "Masters that do not answer this process",
        static_cast<double>(now.silent));
  gauge("kvstore_operate_look_seconds", "How long the last look at all masters took", now.look_seconds);
  count("kvstore_operate_looks_total", "Looks at all masters", static_cast<double>(now.looks));
  count("kvstore_operate_promotions_total", "Slaves that this process has put in the place of a dead master",
        static_cast<double>(now.promoted));
  count("kvstore_operate_promotions_failed_total", "Promotions that failed, or were refused",
        static_cast<double>(now.failed));
  std::map<std::string, uint64_t> by_source;
  for (const Alarms::Alarm& alarm : now.alarms) ++by_source[alarm.source];
  for (const auto& [source, alarms] : by_source) {
    sink.Gauge("kvstore_operate_alarms", "What is wrong now, by what has found it", {{"source", source}},
               static_cast<double>(alarms));
  }
}

}  // namespace kvstore::operate
