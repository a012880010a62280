#include "server/call/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "backend_api/end_of_wait.h"
#include "backend_api/outcome.h"
#include "kvstore_api/limits.h"
#include "server/call/process_metrics.h"

namespace kvstore::server {
namespace {

/// The calls of a caller that run as they arrive, where they are quick. If it has more in flight, they wait
/// for workers, which serve all callers in turn.
constexpr size_t kFewCalls = 64;

constexpr size_t kMaxRememberedBytes = size_t{64} << 20;
constexpr char kRefusedPayload[] = "kvstore/refused";

/// Returns how much of the time that is left to the client the work may take: a little less, so that an error
/// that says why there is no answer arrives before the client gives up.
std::chrono::steady_clock::duration TimeToAnswer(std::chrono::steady_clock::duration left) {
  constexpr std::chrono::steady_clock::duration kMost = std::chrono::milliseconds(100);
  return left - std::min(left / 10, kMost);
}

std::string RandomInstance() {
  std::random_device device;
  std::string instance;
  while (instance.size() < 16) {
    const uint32_t part = device();
    instance.append(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  return instance;
}

RequestMemory::Bounds RememberedBy(const ServerOptions& options) {
  const size_t callers = options.TellsCallersApart() ? 2 : 1;
  return {.answers = options.limits.remembered,
          .bytes = kMaxRememberedBytes,
          .answers_each = (options.limits.remembered + callers - 1) / callers,
          .bytes_each = kMaxRememberedBytes / callers,
          .age = std::chrono::milliseconds(options.limits.remember_ms)};
}

/// Few enough for the threads that receive calls to have the processors when they need them, and enough to
/// use what these leave, and to wait for the disk.
size_t LongWorkers(size_t threads) {
  return std::min(threads, size_t{2} * std::max(1u, std::thread::hardware_concurrency()));
}
absl::Status ServerStops() { return MarkRefused(absl::UnavailableError("the server stops")); }

}  // namespace

absl::Status TooManyInFlightError() {
  return absl::ResourceExhaustedError(
      "the server has too many calls, or bytes, in flight: of all callers, or of this one");
}

absl::Status MarkRefused(absl::Status status) {
  status.SetPayload(kRefusedPayload, absl::Cord());
  return status;
}

Core::Core(Router& store, const ServerOptions& wanted, std::unique_ptr<Access> list, ServerParts others)
    : router(store),
      parts(std::move(others)),
      options(wanted),
      instance(RandomInstance()),
      shares_catalog(router.keeper().SharesCatalog()),
      access(std::move(list)),
      admission(options.limits, options.TellsCallersApart()),
      memory(RememberedBy(options)),
      metrics(router.keeper().BackendNames(),
              [this](MetricsSink& sink) {
                if (parts.migrations != nullptr) parts.migrations->Describe(sink);
                if (parts.describe) parts.describe(sink);
                access->Describe(sink);
                DescribeProcess(sink);
                sink.Gauge("kvstore_calls_in_flight", "Calls that are open", {},
                           static_cast<double>(admission.calls()));
                sink.Gauge("kvstore_bytes_in_flight", "Requests and answers in memory", {},
                           static_cast<double>(access->BytesInFlight()));
                sink.Gauge("kvstore_calls_held",
                           "Calls in flight that wait for datasets that migrate, or for room", {},
                           static_cast<double>(suspended.size()));
                sink.Gauge("kvstore_followers_waiting",
                           "Calls that follow a dataset and have been told all that was written", {},
                           static_cast<double>(changes.waiting()));
                sink.Gauge("kvstore_change_pages_bytes", "Pages of changes that are kept for other followers",
                           {}, static_cast<double>(changes.kept_bytes()));
                sink.Counter("kvstore_change_pages_read_total", "Pages of changes read for followers", {},
                             static_cast<double>(changes.read()));
                sink.Counter("kvstore_change_pages_shared_total",
                             "Pages of changes that were read for another follower", {},
                             static_cast<double>(changes.shared()));
                sink.Counter("kvstore_calls_refused_total", "Calls turned away because there were too many",
                             {}, static_cast<double>(admission.refused()));
                sink.Counter("kvstore_connections_ended_total",
                             "Connections of strangers that were ended because they sent too much", {},
                             static_cast<double>(connections.ended()));
                sink.Gauge("kvstore_requests_remembered", "Writes whose answers are kept for a repetition",
                           {}, static_cast<double>(memory.size()));
                router.keeper().Describe(sink);
              }),
      log(options.slow_ms),
      workers(options.limits.threads),
      long_workers(LongWorkers(options.limits.threads),
                   options.TellsCallersApart() ? (LongWorkers(options.limits.threads) + 1) / 2 : SIZE_MAX),
      report_workers(options.limits.report_threads,
                     options.TellsCallersApart() ? (options.limits.report_threads + 1) / 2 : SIZE_MAX),
      shard_workers(parts.shard_operations != nullptr ? kMaxShardOperations : 0),
      suspended(router, [this] { return draining.load(std::memory_order_relaxed); }),
      changes(router, [this] { return draining.load(std::memory_order_relaxed); }) {}

Call::Call(Core& core, Operation operation, const CallInfo& info)
    : core_(core), operation_(operation), info_(info) {}

void Call::Track() {
  tracked_ = true;
  core_.open.Add(*this);
}

void Call::Untrack() {
  if (std::exchange(tracked_, false)) core_.open.Remove(*this);
}

Call::~Call() {
  Untrack();
  if (brief_ != nullptr) brief_->Release(info_.transport);
  if (admitted_) core_.admission.Release(*share_, current_request_ + unsent_bytes_);
}

absl::Status Call::Identify() {
  if (core_.access->open_to_all()) {
    const std::string name = core_.options.tls.client_ca.empty() ? "" : info_.transport.CommonName();
    share_ = name.empty() ? &core_.access->nobody() : &core_.access->ShareOf(name);
    return absl::OkStatus();
  }
  auto principal = core_.access->Identify(info_.transport.Authorization(), info_.transport.CommonName());
  if (!principal.ok()) return principal.status();
  principal_ = *std::move(principal);
  // An admitted call stays counted where it was counted, whatever the list becomes.
  if (!admitted_) share_ = principal_->share;
  return absl::OkStatus();
}

absl::Status Call::CheckCaller() { return core_.access->open_to_all() ? absl::OkStatus() : Identify(); }

absl::Status Call::CheckStillAllowed() {
  if (core_.access->open_to_all()) return absl::OkStatus();
  if (auto status = Identify(); !status.ok()) return status;
  quotas_.Find(principal_.get(), dataset_);
  return CheckRight(principal_.get(), dataset_, Traits(operation_).right, report_);
}

bool Call::CallerHasMany() const {
  if (!core_.options.TellsCallersApart() || share_ == nullptr) return false;
  const size_t own = share_->calls.load(std::memory_order_relaxed);
  // One who has the server alone takes turns with nobody.
  return own > kFewCalls && core_.admission.calls() > own;
}

absl::Status Call::CheckStart() {
  if (auto status = CheckLimits(); !status.ok()) return status;
  if (auto status = CheckRoom(); !status.ok()) return status;
  const uint64_t version = core_.access->version();
  const uint64_t by = authenticated_by_.load(std::memory_order_relaxed);
  // Calls that anybody may make are not authenticated.
  if (by == 0 || by == version) return absl::OkStatus();
  auto status = CheckStillAllowed();
  if (status.ok()) authenticated_by_.store(version, std::memory_order_relaxed);
  return status;
}

absl::Status Call::CheckBackend(std::string_view dataset) const {
  if (!core_.shares_catalog || !IsOnData(operation_) || backend_.empty()) return absl::OkStatus();
  const auto expected = info_.transport.ExpectedBackend();
  if (!expected || *expected == backend_) return absl::OkStatus();
  // One of the two servers has an old catalog. Forwarded, the call could go back and forth until that
  // changes.
  core_.router.keeper().RequestRefresh();
  return ServedElsewhereError(
      fmt::format("dataset: '{}' is not on the backend that the call is for", dataset));
}

absl::Status Call::Authenticate() {
  if (core_.draining.load(std::memory_order_relaxed)) return ServerStops();
  const uint64_t version = core_.access->version();
  auto status = Identify();
  authenticated_by_.store(status.ok() ? version : 0, std::memory_order_relaxed);
  if (!status.ok() || core_.connections.has_suspects()) TellConnections(status.ok());
  return status;
}

void Call::TellConnections(bool known) {
  if (info_.door != Door::kGrpc) return;
  if (known) {
    core_.connections.KnownCalled(info_.transport.Peer());
  } else {
    core_.connections.StrangerCalled(info_.transport.Peer());
  }
}

absl::Status Call::AdmitAsBrief(BriefCalls& others) {
  if (!others.Admit(info_.transport)) return MarkRefused(TooManyInFlightError());
  brief_ = &others;
  return absl::OkStatus();
}

absl::Status Call::AdmitAnybody() {
  if (core_.access->open_to_all()) {
    share_ = &core_.access->nobody();
    return AdmitAsBrief(core_.stranger_probes);
  }
  const bool known = Identify().ok();
  // Our clients make this call once over each of their connections.
  TellConnections(known);
  return AdmitAsBrief(known ? core_.caller_probes : core_.stranger_probes);
}

std::shared_ptr<void> Call::ReserveBytes(size_t bytes) {
  // A stranger has no share.
  if (share_ == nullptr || !core_.admission.Replace(*share_, 0, bytes)) return nullptr;
  return {share_,
          [&admission = core_.admission, bytes](CallerShare* share) { admission.Remove(*share, bytes); }};
}

std::shared_ptr<void> Call::HoldBytes(size_t bytes) {
  CallerShare& counted = share_ != nullptr ? *share_ : core_.access->nobody();
  core_.admission.Add(counted, bytes);
  return {&counted,
          [&admission = core_.admission, bytes](CallerShare* share) { admission.Remove(*share, bytes); }};
}

absl::Status Call::Admit(std::string_view dataset, RequestSize size, bool sync, std::string_view report) {
  // A name beyond the limit is refused later; only enough of it is kept for that.
  dataset_ = dataset.substr(0, kMaxDatasetNameBytes + 1);
  report_ = report.substr(0, kMaxRowKeyBytes);
  request_bytes_ = size.bytes;
  current_request_ = size.memory;
  if (const auto where = core_.router.Locate(dataset)) {
    backend_ = where->backend;
    waits_ = where->waits;
    flushes_ = sync || where->durability == Durability::kMachine;
  }
  if (operation_ == Operation::kGetServer) return absl::OkStatus();
  if (core_.draining.load(std::memory_order_relaxed)) {
    return ServerStops();
  }
  // A request may take its time to arrive, and the caller may have lost its rights meanwhile.
  if (const uint64_t version = core_.access->version();
      authenticated_by_.load(std::memory_order_relaxed) != version) {
    if (auto status = Identify(); !status.ok()) return status;
    authenticated_by_.store(version, std::memory_order_relaxed);
  }
  const OperationTraits& traits = Traits(operation_);
  if (auto status = CheckRight(principal_.get(), dataset, traits.right, report_); !status.ok()) return status;
  if (auto status = CheckBackend(dataset); !status.ok()) return status;
  if (operation_ == Operation::kGetMetrics) {
    // Metrics are served even when the server is full, so that an operator can see what fills it.
    if (auto status = AdmitAsBrief(core_.metrics_calls); !status.ok()) return status;
    core_.admission.AdmitAlways(*share_);
    current_request_ = 0;
  } else if (!core_.admission.Admit(*share_, size.memory)) {
    return MarkRefused(TooManyInFlightError());
  } else {
    quotas_.Find(principal_.get(), dataset_);
    if (auto status = quotas_.Admit(size.bytes); !status.ok()) {
      core_.admission.Release(*share_, size.memory);
      return MarkRefused(std::move(status));
    }
  }
  admitted_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> Call::MayGoOn() const {
  const bool may = quotas_.MaySend();
  if (!may && core_.draining.load(std::memory_order_relaxed)) return ServerStops();
  return may;
}

const CallLimits& Call::Limits(bool stream) {
  if (limits_) return *limits_;
  // No thread waits while a dataset migrates (CallLimits::waits), because all other calls would miss it. A
  // call on a report does, on a worker for these: it cannot begin again after some of its calls on data are
  // done.
  CallLimits& limits = limits_.emplace();
  limits.cancelled = info_.cancelled != nullptr ? info_.cancelled : &cancelled_;
  limits.waits = IsOnReports(operation_);
  const auto now = Clock::now();
  if (info_.deadline) limits.deadline = now + TimeToAnswer(*info_.deadline - now);
  if (!stream) {
    const auto most = now + std::chrono::milliseconds(core_.options.limits.call_ms);
    limits.deadline = limits.deadline ? std::min(*limits.deadline, most) : most;
  }
  return limits;
}

// ---- datasets that migrate ----

bool Call::WantsMigrationError() const {
  return info_.wants_migration_errors || info_.transport.WantsMigrationErrors();
}

bool Call::CanRetryAfter(const absl::Status& migrating) const {
  return IsOnData(operation_) && IsMigrating(migrating) && !IsInDoubt(migrating);
}

bool Call::ShouldSuspend(const absl::Status& migrating) {
  if (core_.draining.load(std::memory_order_relaxed) || WantsMigrationError()) return false;
  const auto now = Clock::now();
  if (!suspended_since_) suspended_since_ = now;
  suspended_for_ = std::string(migrating.message());
  suspended_until_ = Router::MigrationWaitDeadline(*suspended_since_, migrating);
  return now < suspended_until_;
}

absl::Status Call::CheckLimits() const {
  absl::Status status = CheckCall();
  return status.ok() ? status : EndOfWait(status, suspended_for_);
}

void Call::SuspendBehind() {
  Limits(/*stream=*/false);
  suspended_since_ = Clock::now();
  suspended_until_ = *suspended_since_ + Router::kMaxMigrationWait;
}

bool Call::HasRoom() const {
  return !admitted_ || operation_ == Operation::kGetMetrics ||
         core_.admission.HasRoom(*share_, current_request_);
}

absl::Status Call::CheckRoom() const {
  if (HasRoom()) return absl::OkStatus();
  core_.admission.CountRefused();
  return MarkRefused(TooManyInFlightError());
}

void Call::SuspendForRoom(Work retry) {
  suspended_until_ = Clock::now() + Router::kMaxMigrationWait;
  SuspendUntilRetry(std::move(retry));
}

void Call::SuspendUntilRetry(Work retry) {
  core_.suspended.Add({.due = [this](Clock::time_point now) { return IsDue(now); },
                       .retry = std::move(retry),
                       .lane = OwnLane()});
}

absl::Status Call::CheckServes() const {
  return core_.draining.load(std::memory_order_relaxed) ? ServerStops() : absl::OkStatus();
}

void Call::SuspendForChanges(const std::string& token, Work retry) {
  suspended_until_ = Clock::now() + ChangeFollower::kTellInterval;
  core_.changes.Wait(dataset_, token,
                     {.due = [this](Clock::time_point now) { return IsDue(now); },
                      .retry = std::move(retry),
                      .lane = OwnLane()});
}

bool Call::IsDue(Clock::time_point now) const {
  return now >= suspended_until_ || (limits_->deadline && now >= *limits_->deadline) ||
         limits_->cancelled->load(std::memory_order_relaxed);
}

absl::Status Call::ErrorWithoutSuspension(const absl::Status& migrating) const {
  return core_.draining.load(std::memory_order_relaxed) && !WantsMigrationError() ? ServerStops() : migrating;
}

void Call::Run(Work work) {
  if (RunsInline()) return work();
  if (operation_ == Operation::kOperateShards) {
    return core_.shard_workers.Post(core_.shard_work, std::move(work));
  }
  OwnLane().Post(std::move(work));
}

Lane Call::WorkerLane() {
  CallerShare& share = share_ != nullptr ? *share_ : core_.strangers;
  // Calls that wait for other machines use little of the processors, and the objects of a join may be
  // elsewhere. Metrics are served whatever other callers do. A follower is told little at a time.
  const bool is_long = Traits(operation_).right == Right::kRead && !IsShort() && !waits_ &&
                       operation_ != Operation::kListObjects && operation_ != Operation::kGetMetrics &&
                       operation_ != Operation::kWatchChanges;
  if (is_long) return {&core_.long_workers, &share.long_queue};
  return {&core_.workers, &share.queue};
}

bool Call::KeepsWorker() {
  // Those of reports begin on workers of their own, and go on with the others.
  return !IsOnReports(operation_) && !WorkerLane().workers->HasQueued();
}

Lane Call::OwnLane() {
  if (IsOnReports(operation_)) return {&core_.report_workers, &share_->report_queue};
  return WorkerLane();
}

void Call::CountResponse(size_t bytes) {
  response_bytes_ += bytes;
  // An error that turns the call away costs nothing.
  if (!admitted_) return;
  TakeFromQuotas(bytes);
  unsent_bytes_ += bytes;
  core_.admission.Add(*share_, bytes);
}

void Call::CountSent(size_t bytes) {
  if (!admitted_) return;
  unsent_bytes_ -= bytes;
  core_.admission.Remove(*share_, bytes);
}

absl::Status Call::ReplaceRequest(RequestSize size) {
  request_bytes_ += size.bytes;
  if (core_.admission.Replace(*share_, current_request_, size.memory)) {
    current_request_ = size.memory;
    return absl::OkStatus();
  }
  core_.admission.CountRefused();
  return TooManyInFlightError();
}

CallRecord Call::Record() const {
  return {.operation = Traits(operation_).name,
          .dataset = dataset_,
          .backend = backend_,
          .principal = principal_ ? std::string_view(principal_->name) : std::string_view(),
          .peer = info_.transport.Peer(),
          .door = Name(info_.door),
          .request_bytes = request_bytes_,
          .response_bytes = response_bytes_,
          .what = what_,
          .is_audited = IsOnShards(operation_) && admitted_};
}

void Call::LogBegin() {
  if (!IsOnShards(operation_)) return;
  CallRecord record = Record();
  record.begins = true;
  core_.log.Write(record, absl::OkStatus());
}

void Call::End(const absl::Status& status) {
  const double seconds = std::chrono::duration<double>(Clock::now() - info_.begun).count();
  // Its client may make the next one as soon as it has the answer.
  quotas_.End();
  // The server in front of this one retries such a call many times, and counts and logs all of it as one
  // call.
  const bool is_retried = IsMigrating(status) && WantsMigrationError();
  if (!is_retried) {
    core_.metrics.Count(operation_, backend_, info_.door, seconds, status, admitted_ ? request_bytes_ : 0,
                        response_bytes_);
    core_.history.Count(operation_, backend_.empty() ? "" : std::string_view(dataset_), seconds,
                        !status.ok());
  }
  // One that lasts as long as its client likes is never slow.
  const double slowness = operation_ == Operation::kWatchChanges ? 0 : seconds;
  if (!is_retried && (IsOnShards(operation_) || core_.log.Wants(slowness, status))) {
    CallRecord record = Record();
    record.seconds = seconds;
    core_.log.Write(record, status);
  }
  if (!status.ok() && !info_.is_part_of_stream) info_.transport.SendOutcome(OutcomeOf(status));
}

CallOutcome Call::OutcomeOf(const absl::Status& error) {
  // This comes before kRefused and kMoved, which promise that nothing was done: a client, or a router, would
  // make the write once more. The error of a stream can have both marks, because one of its requests was
  // refused after others were carried out.
  if (IsInDoubt(error)) return CallOutcome::kInDoubt;
  if (error.GetPayload(kRefusedPayload)) return CallOutcome::kRefused;
  return IsMigrating(error) && !IsGone(error) ? CallOutcome::kMoved : CallOutcome::kFailed;
}

}  // namespace kvstore::server
