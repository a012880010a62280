#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics_sink.h"
#include "base/mutex.h"
#include "operate/alarms.h"
#include "operate/checks.h"
#include "operate/dead_masters.h"
#include "operate/journal.h"
#include "operate/lookout.h"
#include "operate/membership.h"
#include "operate/options.h"
#include "operate/pair_records.h"
#include "operate/periodic.h"
#include "operate/repairs.h"
#include "shardops/fleet_session.h"
#include "shardops/status.h"

namespace kvstore::operate {

/// Operates a fleet as the runbook says, as one of several processes: each watches all masters and says what
/// it sees, and one, the leader, acts. docs/operate.md describes it.
class Orchestrator {
 public:
  struct Setup {
    shardops::FleetOptions fleet;  ///< With the operator's logins.
    OperateOptions options;
    /// Whether it changes nothing, and says what it would do.
    bool dry_run = false;
    std::string who;  ///< Names this process to people.
    /// The checks that the leader makes besides those of masters and replication.
    std::vector<Check> checks;
  };

  explicit Orchestrator(Setup setup);
  ~Orchestrator();
  Orchestrator(const Orchestrator&) = delete;
  Orchestrator& operator=(const Orchestrator&) = delete;

  /// Looks after the fleet until Stop is called. Call once.
  void Run();
  /// Thread-safe; may be called before Run.
  void Stop();

  /// Whether within the last ten seconds a look was made and told to the others, or, after the first look,
  /// this process has told them that it is busy (SayBusy). Thread-safe.
  bool ready() const;
  /// Thread-safe.
  void Describe(MetricsSink& sink) const;

 private:
  /// The findings of an inspection, and when it was begun (BootClockMs).
  struct Inspected {
    std::vector<shardops::HostReport> reports;
    uint64_t began_ms = 0;
  };
  using Reports = absl::StatusOr<Inspected>;
  using Found = absl::StatusOr<std::vector<Finding>>;
  struct Running {
    std::string source;
    std::unique_ptr<Periodic<Found>> check;
  };

  /// Looks at all masters, meets the others, and acts if this process leads.
  void Look();
  /// The same; logs what it throws.
  void LookSafely();
  /// Begins or ends to lead.
  void SetLeads(const Meeting& meeting);
  void Lead(const Meeting& meeting, const std::vector<shardops::Pair>& pairs,
            const std::vector<Silence>& silences, uint64_t looked_ms);
  /// Keeps the leadership during a step that takes long.
  void SayBusy();
  /// Takes over what the thread that inspects hosts, and the checks, have found.
  void TakeFindings(Leader& leader);
  /// Brings alarms and journal to ZooKeeper.
  void Publish(const Meeting& meeting);
  /// All sources of alarms.
  std::set<std::string> Sources() const;

  const Setup setup_;
  shardops::FleetSession session_;
  shardops::FleetSession inspected_;  // of the thread that inspects hosts
  Membership membership_;
  PairRecords pairs_;
  Journal journal_;
  Alarms alarms_;
  Lookout lookout_;
  DeadMasters dead_masters_;
  Repairs repairs_;
  Periodic<Reports> inspection_;
  std::vector<Running> checks_;
  bool leads_ = false;
  int32_t leads_since_ = 0;  // the version of the leader's node, of the last leadership
  bool loaded_ = false;      // the alarms of the leader before are known

  mutable Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  /// The figures of the last look, which Describe tells.
  struct Figures {
    bool leads = false;
    uint64_t looks = 0;
    uint64_t silent = 0;
    uint64_t members = 0;
    uint64_t promoted = 0;
    uint64_t failed = 0;
    double look_seconds = 0;
    std::vector<Alarms::Alarm> alarms;
    std::chrono::steady_clock::time_point at;
  };
  Figures figures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::operate
