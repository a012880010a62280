#include "server/call.h"

#include <fmt/format.h>
#include <grpcpp/security/auth_context.h>

#include <random>
#include <utility>
#include <vector>

#include "base/thread_number.h"
#include "kvstore_api/in_doubt.h"
#include "kvstore_api/moved.h"
#include "wire/convert.h"

namespace kvstore::server {
namespace {

constexpr size_t kMaxRememberedBytes = size_t{64} << 20;
constexpr char kRefusedPayload[] = "kvstore/refused";

/// How much of the time that a client still waits the work may take, so that the client has the answer, which
/// may say why, before it gives up.
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

/// Where it does not, nobody is there to be protected from a caller.
bool TellsCallersApart(const ServerOptions& options) {
  return !options.tokens.empty() || !options.tls.client_ca.empty();
}

RequestMemory::Bounds RememberedBy(const ServerOptions& options) {
  const size_t callers = TellsCallersApart(options) ? 2 : 1;
  return {.answers = options.limits.remembered,
          .bytes = kMaxRememberedBytes,
          .answers_each = (options.limits.remembered + callers - 1) / callers,
          .bytes_each = kMaxRememberedBytes / callers,
          .age = std::chrono::milliseconds(options.limits.remember_ms)};
}

absl::Status ServerStops() { return Refused(absl::UnavailableError("the server stops")); }

}  // namespace

absl::Status NoRoom() {
  return absl::ResourceExhaustedError(
      "the server has too many calls, or bytes, in flight: of all callers, or of this one");
}

absl::Status Refused(absl::Status status) {
  status.SetPayload(kRefusedPayload, absl::Cord());
  return status;
}

Core::Core(Router& store, Migrations* moving, const ServerOptions& wanted, std::unique_ptr<Access> list)
    : router(store),
      migrations(moving),
      options(wanted),
      instance(RandomInstance()),
      shares_catalog(router.SharesCatalog()),
      access(std::move(list)),
      admission(options.limits, TellsCallersApart(options)),
      memory(RememberedBy(options)),
      metrics(router.BackendNames(),
              [this](MetricsSink& sink) {
                if (migrations != nullptr) migrations->Describe(sink);
                sink.Gauge("kvstore_calls_in_flight", "Calls that are open", {},
                           static_cast<double>(admission.calls()));
                sink.Gauge("kvstore_bytes_in_flight", "Requests and answers in memory", {},
                           static_cast<double>(access->BytesInFlight()));
                sink.Gauge("kvstore_calls_held",
                           "Calls in flight that wait for datasets that move, or for room", {},
                           static_cast<double>(held.size()));
                sink.Counter("kvstore_calls_refused_total", "Calls turned away because there were too many",
                             {}, static_cast<double>(admission.refused()));
                sink.Gauge("kvstore_requests_remembered", "Writes whose answers are kept for a repetition",
                           {}, static_cast<double>(memory.size()));
                router.Describe(sink);
              }),
      log(options.slow_ms),
      workers(options.limits.threads),
      held(router, workers, [this] { return draining.load(std::memory_order_relaxed); }) {}

// ---- open calls ----

void OpenCalls::Add(Call& call) {
  call.stripe_ = ThreadNumber() % kStripes;
  Stripe& stripe = stripes_[call.stripe_];
  const std::lock_guard lock(stripe.mutex);
  call.next_ = stripe.first;
  if (stripe.first != nullptr) stripe.first->previous_ = &call;
  stripe.first = &call;
}

void OpenCalls::Remove(Call& call) {
  Stripe& stripe = stripes_[call.stripe_];
  const std::lock_guard lock(stripe.mutex);
  (call.previous_ != nullptr ? call.previous_->next_ : stripe.first) = call.next_;
  if (call.next_ != nullptr) call.next_->previous_ = call.previous_;
}

void OpenCalls::CancelStalled(std::chrono::steady_clock::time_point before) {
  const auto at = before.time_since_epoch().count();
  for (Stripe& stripe : stripes_) {
    // Held, so that none of them ends meanwhile; what a cancelled call does then, it does on other threads.
    const std::lock_guard lock(stripe.mutex);
    for (Call* call = stripe.first; call != nullptr; call = call->next_) {
      const auto since = call->waiting_since_.load(std::memory_order_relaxed);
      if (since != 0 && since < at) call->Cancel();
    }
  }
}

void OpenCalls::Drain() {
  for (Stripe& stripe : stripes_) {
    const std::lock_guard lock(stripe.mutex);
    for (Call* call = stripe.first; call != nullptr; call = call->next_) call->Drain();
  }
}

// ---- a call ----

Call::Call(Core& core, Operation operation, grpc::CallbackServerContext& context, std::optional<Part> part)
    : core_(core), operation_(operation), context_(context), part_(part) {}

void Call::Track() {
  tracked_ = true;
  core_.open.Add(*this);
}

void Call::Untrack() {
  if (std::exchange(tracked_, false)) core_.open.Remove(*this);
}

Call::~Call() {
  Untrack();
  if (among_ != nullptr) among_->Leave(context_);
  if (entered_) core_.admission.Leave(*share_, current_request_ + held_bytes_);
}

std::string Call::CommonName() const {
  const auto peer = context_.auth_context();
  if (!peer || !peer->IsPeerAuthenticated()) return "";
  const auto names = peer->FindPropertyValues("x509_common_name");
  return names.empty() ? "" : std::string(names.front().data(), names.front().size());
}

absl::Status Call::Identify() {
  if (core_.access->open_to_all()) {
    const std::string name = core_.options.tls.client_ca.empty() ? "" : CommonName();
    share_ = name.empty() ? &core_.access->nobody() : &core_.access->ShareOf(name);
    return absl::OkStatus();
  }
  const auto& metadata = context_.client_metadata();
  const auto header = metadata.find("authorization");
  const std::string_view authorization = header == metadata.end()
                                             ? std::string_view()
                                             : std::string_view(header->second.data(), header->second.size());
  auto principal = core_.access->Identify(authorization, CommonName());
  if (!principal.ok()) return principal.status();
  principal_ = *std::move(principal);
  // What is counted stays where it was counted, whatever the list becomes.
  if (!entered_) share_ = principal_->share;
  return absl::OkStatus();
}

absl::Status Call::CheckCaller() { return core_.access->open_to_all() ? absl::OkStatus() : Identify(); }

absl::Status Call::CheckStillAllowed() {
  if (core_.access->open_to_all()) return absl::OkStatus();
  if (auto status = Identify(); !status.ok()) return status;
  return CheckRight(principal_.get(), dataset_, Traits(operation_).right);
}

absl::Status Call::CheckBackend(std::string_view dataset) const {
  if (!core_.shares_catalog || !IsOnData(operation_) || backend_.empty()) return absl::OkStatus();
  const auto& metadata = context_.client_metadata();
  const auto wanted = metadata.find(wire::kBackend);
  if (wanted == metadata.end()) return absl::OkStatus();
  if (std::string_view(wanted->second.data(), wanted->second.size()) == backend_) return absl::OkStatus();
  // One of the two knows an old catalog. Passed on, the call could go back and forth until that has changed.
  core_.router.LookAgain();
  return MovedError(fmt::format("dataset: '{}' is not on the backend that the call is for", dataset));
}

absl::Status Call::Greet() {
  if (core_.draining.load(std::memory_order_relaxed)) return ServerStops();
  auto status = Identify();
  greeted_ = status.ok();
  return status;
}

absl::Status Call::EnterAmong(BriefCalls& others) {
  if (!others.Enter(context_)) return Refused(NoRoom());
  among_ = &others;
  return absl::OkStatus();
}

absl::Status Call::EnterOfAnybody() {
  const bool known = !core_.access->open_to_all() && Identify().ok();
  return EnterAmong(known ? core_.greetings : core_.anonymous);
}

std::shared_ptr<void> Call::HoldBytes(size_t bytes) {
  if (!core_.admission.Replace(*share_, 0, bytes)) return nullptr;
  return {share_,
          [&admission = core_.admission, bytes](CallerShare* share) { admission.Remove(*share, bytes); }};
}

absl::Status Call::Enter(std::string_view dataset, size_t bytes, bool sync) {
  // A name beyond the limit is no name, and not worth keeping.
  dataset_ = dataset.substr(0, kMaxDatasetNameBytes + 1);
  request_bytes_ = current_request_ = bytes;
  if (const auto where = core_.router.Locate(dataset)) {
    backend_ = where->backend;
    waits_ = where->waits;
    flushes_ = sync || where->durability == Durability::kMachine;
  }
  if (operation_ == Operation::kGetServer) return absl::OkStatus();
  if (core_.draining.load(std::memory_order_relaxed)) {
    return ServerStops();
  }
  if (!greeted_) {
    if (auto status = Identify(); !status.ok()) return status;
  }
  const OperationTraits& traits = Traits(operation_);
  if (auto status = CheckRight(principal_.get(), dataset, traits.right); !status.ok()) return status;
  if (auto status = CheckBackend(dataset); !status.ok()) return status;
  if (operation_ == Operation::kGetMetrics) {
    // Who asks what the server is so full of is to be told.
    if (auto status = EnterAmong(core_.figures); !status.ok()) return status;
    core_.admission.EnterAlways(*share_);
    current_request_ = 0;
  } else if (!core_.admission.Enter(*share_, bytes)) {
    return Refused(NoRoom());
  }
  entered_ = true;
  return absl::OkStatus();
}

const CallLimits& Call::Limits(bool stream) {
  if (limits_) return *limits_;
  // A thread that waited for a dataset that moves would be missed by all others.
  CallLimits& limits = limits_.emplace();
  limits.cancelled = part_ ? part_->cancelled : &cancelled_;
  limits.waits = false;
  const auto now = Clock::now();
  if (part_) {
    if (part_->deadline) limits.deadline = now + TimeToAnswer(*part_->deadline - now);
  } else if (const auto left = context_.deadline() - std::chrono::system_clock::now();
             left < std::chrono::hours(24 * 365)) {
    // No deadline is one in the far future.
    limits.deadline = now + TimeToAnswer(std::chrono::duration_cast<Clock::duration>(left));
  }
  if (!stream) {
    const auto most = now + std::chrono::milliseconds(core_.options.limits.call_ms);
    limits.deadline = limits.deadline ? std::min(*limits.deadline, most) : most;
  }
  return limits;
}

// ---- datasets that move ----

bool Call::TellsMoving() const {
  if (part_ && part_->tells_moving) return true;
  const auto& metadata = context_.client_metadata();
  const auto wanted = metadata.find(wire::kMoving);
  return wanted != metadata.end() &&
         std::string_view(wanted->second.data(), wanted->second.size()) == wire::kTell;
}

bool Call::CanHold(const absl::Status& moving) const {
  return IsOnData(operation_) && IsMoving(moving) && !IsInDoubt(moving);
}

bool Call::Holds(const absl::Status& moving) {
  if (core_.draining.load(std::memory_order_relaxed) || TellsMoving()) return false;
  const auto now = Clock::now();
  if (!held_since_) held_since_ = now;
  held_for_ = std::string(moving.message());
  held_until_ = Router::HeldUntil(*held_since_, moving);
  return now < held_until_;
}

absl::Status Call::CheckLimits() const {
  absl::Status status = CheckCall();
  if (status.ok() || held_for_.empty()) return status;
  return {status.code(), fmt::format("{}; it waited: {}", std::string(status.message()), held_for_)};
}

void Call::HoldBehind() {
  Limits(/*stream=*/false);
  held_since_ = Clock::now();
  held_until_ = *held_since_ + Router::kMaxHold;
}

bool Call::HasRoom() const {
  return !entered_ || operation_ == Operation::kGetMetrics ||
         core_.admission.HasRoom(*share_, current_request_);
}

absl::Status Call::CheckRoom() const {
  if (HasRoom()) return absl::OkStatus();
  core_.admission.CountRefused();
  return Refused(NoRoom());
}

void Call::HoldForRoom(std::function<void()> again) {
  held_until_ = Clock::now() + Router::kMaxHold;
  HoldUntilAgain(std::move(again));
}

void Call::HoldUntilAgain(std::function<void()> again) {
  core_.held.Add({.due = [this](Clock::time_point now) { return IsDue(now); }, .again = std::move(again)});
}

bool Call::IsDue(Clock::time_point now) const {
  return now >= held_until_ || (limits_->deadline && now >= *limits_->deadline) ||
         limits_->cancelled->load(std::memory_order_relaxed);
}

absl::Status Call::WithoutHold(const absl::Status& moving) const {
  return core_.draining.load(std::memory_order_relaxed) && !TellsMoving() ? ServerStops() : moving;
}

void Call::Run(std::function<void()> work) {
  if (RunsHere()) return work();
  core_.workers.Post(std::move(work));
}

void Call::Answered(size_t bytes) {
  response_bytes_ += bytes;
  if (!entered_) return;
  held_bytes_ += bytes;
  core_.admission.Add(*share_, bytes);
}

void Call::Sent(size_t bytes) {
  if (!entered_) return;
  held_bytes_ -= bytes;
  core_.admission.Remove(*share_, bytes);
}

absl::Status Call::Took(size_t bytes) {
  request_bytes_ += bytes;
  if (core_.admission.Replace(*share_, current_request_, bytes)) {
    current_request_ = bytes;
    return absl::OkStatus();
  }
  core_.admission.CountRefused();
  return NoRoom();
}

void Call::End(const absl::Status& status) {
  const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  // The server that holds the call asks for it many times, and counts and logs it as one.
  const bool asks_again = IsMoving(status) && TellsMoving();
  if (!asks_again) {
    core_.metrics.Count(operation_, backend_, seconds, status, entered_ ? request_bytes_ : 0,
                        response_bytes_);
  }
  if (!asks_again && core_.log.Wants(seconds, status)) {
    core_.log.Write({.operation = Traits(operation_).name,
                     .dataset = dataset_,
                     .backend = backend_,
                     .principal = principal_ ? std::string_view(principal_->name) : std::string_view(),
                     .peer = context_.peer(),
                     .seconds = seconds,
                     .request_bytes = request_bytes_,
                     .response_bytes = response_bytes_},
                    status);
  }
  if (!status.ok() && !part_) context_.AddTrailingMetadata(wire::kOutcome, OutcomeOf(status));
}

const char* Call::OutcomeOf(const absl::Status& error) {
  if (error.GetPayload(kRefusedPayload)) return wire::kRefused;
  // Before "moved": a router writes once more what has moved.
  if (IsInDoubt(error)) return wire::kInDoubt;
  return IsMoving(error) && !IsGone(error) ? wire::kMoved : wire::kFailed;
}

}  // namespace kvstore::server
