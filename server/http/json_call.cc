#include "server/http/json_call.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "backend_api/outcome.h"
#include "backend_api/scan_budget.h"
#include "base/fail_point.h"
#include "json/json_fields.h"
#include "json/json_text.h"
#include "json_api/answers.h"
#include "json_api/execute.h"
#include "server/call/shard_command.h"
#include "server/http/caller_reports.h"

namespace kvstore::server {
namespace {

/// A page of a scan ends when so many cells were looked at, also without rows. So a scan that finds nothing
/// takes turns with other calls.
constexpr uint64_t kScanPageCells = 500'000;
/// The answer to an update is kept without a larger object, because a few of those would push out all other
/// answers.
constexpr size_t kMaxKeptDocument = 1024;

/// Returns whether a field of the request is a number of entries that takes long.
bool IsMany(const Json& request, const char* name) {
  if (!request.is_object()) return false;
  const auto found = request.find(name);
  return found != request.end() && found->is_number_unsigned() && found->get<uint64_t>() > kMaxQuickEntries;
}

/// Returns the string that a field of the request has; empty if it is none. The operation itself reports
/// mistakes.
std::string StringIn(const Json& request, const char* name) {
  if (!request.is_object()) return "";
  const auto found = request.find(name);
  return found != request.end() && found->is_string() ? found->get<std::string>() : "";
}

bool HasDataset(const JsonForm& form) {
  return std::any_of(form.request.begin(), form.request.end(),
                     [](const JsonFormField& field) { return field.name == "dataset"; });
}

bool IsScan(Operation operation) {
  return operation == Operation::kScanRows || operation == Operation::kScanObjects ||
         operation == Operation::kScanMappings;
}

}  // namespace

JsonCall::JsonCall(Core& core, const JsonOperation& operation, const CallInfo& info, Repetition repetition)
    : Call(core, operation.operation, info),
      served_(operation),
      repetition_(std::move(repetition)),
      store_(core.router, memory_),
      attempt_(core, operation.operation, info.door) {
  Track();
}

absl::Status JsonCall::Identify() {
  return operation_ == Operation::kGetServer ? AdmitAnybody() : Authenticate();
}

absl::Status JsonCall::Admit(RequestSize size) {
  // A dataset that the operation does not read must not decide about the right to it.
  std::string dataset = HasDataset(served_.form) ? StringIn(request_, "dataset") : "";
  if (dataset.empty() && IsOnReports(operation_)) dataset = reports::kDefaultDataset;
  std::string report = IsOnReports(operation_) ? StringIn(request_, "report") : "";
  // A question about no report, with which tools ask whether anybody answers: who may read one may ask it.
  if (report.empty() && served_.read && IsOnReports(operation_))
    report = ReadableReport(principal_.get(), dataset);
  const bool operates_shards = operation_ == Operation::kOperateShards;
  if (operates_shards) SetWhat(DescribeShardCommand(request_));
  if (IsMany(request_, "limit") || IsMany(request_, "offset")) MarkAskingForMuch();
  if (auto status = Call::Admit(dataset, size, /*sync=*/false, report); !status.ok()) return status;
  if (operates_shards) {
    auto kept = AdmitShardOperation(core_, principal_.get());
    if (!kept.ok()) return kept.status();
    kept_ = *std::move(kept);
    LogBegin();
  }
  store_.SetPrincipal(principal_);
  store_.SetRequestId(repetition_.request_id);
  store_.SetProgress([this](uint64_t, uint64_t) { return MayGoOn(); });
  return absl::OkStatus();
}

bool JsonCall::Execute() {
  absl::Status status;
  Json answer;
  {
    // An operation on shards is stopped by its progress alone, where that leaves nothing unusable.
    std::optional<CallScope> scope;
    if (operation_ != Operation::kOperateShards) scope.emplace(Limits(IsLong()));
    // A batch that has begun goes on, because some of it may be done.
    status = store_.has_begun() ? absl::OkStatus() : CheckStart();
    store_.SetPrincipal(principal_);
    const bool known = status.ok() && !attempt_.begun() && IsKnown(status, answer);
    if (status.ok() && !known) {
      Reached(Traits(operation_).name);
      store_.BeginAgain();
      auto result = CarryOut();
      const absl::Status& migrating = result.ok() ? store_.migrating() : result.status();
      if (CanRetryAfter(migrating)) {
        if (ShouldSuspend(migrating)) return false;
        if (!result.ok()) result = ErrorWithoutSuspension(migrating);
      }
      status = result.status();
      if (result.ok()) answer = *std::move(result);
    }
  }
  if (attempt_.begun()) Remember(status, answer);
  status_ = status;
  SetText(status.ok() ? absl::StatusOr<Json>(std::move(answer)) : status);
  memory_.Release();
  request_ = Json();
  CountResponse(text_.size());
  End(status);
  return true;
}

void JsonCall::Refuse(const absl::Status& error) {
  status_ = error;
  SetText(error);
  // A refused request is not counted, and its client may take its time to receive the error.
  request_ = Json();
  End(error);
}

void JsonCall::SetText(absl::StatusOr<Json> result) {
  Json answer = served_.wrap  ? served_.wrap(result)
                : result.ok() ? json_api::WithOk(*std::move(result))
                              : json_api::ErrorToJson(result.status());
  if (info_.is_part_of_stream && request_.is_object()) {
    if (const auto id = request_.find("id"); id != request_.end()) answer["id"] = *id;
  }
  text_ = TextOf(answer);
  text_ += '\n';
}

bool JsonCall::IsLong() const {
  switch (operation_) {
    case Operation::kCompact:
    case Operation::kCreateBackup:
    case Operation::kVerifyBackup:
    case Operation::kQueryReport:
    case Operation::kCompactReport:
    case Operation::kMakeRollups:
      return true;
    default:
      return false;
  }
}

bool JsonCall::MayGoOn() {
  const auto& gone = info_.cancelled != nullptr ? *info_.cancelled : cancelled();
  // Most work has its deadline in the scope of its call.
  if (operation_ == Operation::kOperateShards && info_.deadline && Clock::now() >= *info_.deadline)
    return false;
  return !core_.draining.load(std::memory_order_relaxed) && !gone.load(std::memory_order_relaxed) &&
         CheckCall().ok() && CheckStillAllowed().ok();
}

absl::StatusOr<Json> JsonCall::CarryOut() {
  std::optional<ScanBudget> budget;
  if (IsScan(operation_)) budget.emplace(kScanPageCells);
  JsonFields fields(request_, "");
  if (info_.is_part_of_stream) {
    fields.Find("op");
    fields.Find("id");
  }
  const std::function reports_of = [this](const std::string& dataset) {
    return ReportsOfCaller(core_, principal_, dataset, memory_);
  };
  if (served_.serve) {
    const auto principal = principal_;  // MayGoOn may set another one
    return served_.serve({.core = core_,
                          .principal = principal.get(),
                          .peer = info_.transport.Peer(),
                          .request = request_,
                          .fields = fields,
                          .progress = [this](uint64_t, uint64_t) { return MayGoOn(); },
                          .reports_of = reports_of});
  }
  return json_api::ExecuteOperation(served_.name, fields, store_, reports_of);
}

// ---- attempts ----

bool JsonCall::IsKnown(absl::Status& status, Json& answer) {
  // Reads have nothing to remember, whatever their clients send with all calls.
  if (repetition_.request_id.empty() || Traits(operation_).right < Right::kWrite) return false;
  RequestMemory::Answer kept;
  const auto known = attempt_.Begin(
      CallerName(),
      {.request_id = repetition_.request_id, .instance = repetition_.first_instance, .sent = {}}, kept);
  if (!known) return false;
  status = *known;
  if (!status.ok()) return true;
  auto whole = kept.partial ? MakeWhole(kept.response) : ParseStoredJson(kept.response, kMaxEnvelopeDepth);
  status = whole.status();
  if (whole.ok()) answer = *std::move(whole);
  return true;
}

void JsonCall::Remember(const absl::Status& status, const Json& answer) {
  RequestMemory::Answer kept;
  if (status.ok()) {
    const auto& updated = store_.updated();
    kept.partial = updated && updated->data.size() > kMaxKeptDocument;
    kept.response =
        kept.partial ? TextOf(Json{{"id", updated->id}, {"timestamp", updated->timestamp}}) : TextOf(answer);
  }
  attempt_.Remember(status, std::move(kept));
}

absl::StatusOr<Json> JsonCall::MakeWhole(std::string_view kept) {
  const auto json = ParseJson(kept);
  if (!json.ok()) return absl::InternalError("an answer that was kept does not decode");
  const auto read =
      core_.router.GetObject(dataset_, (*json)["id"].get<uint64_t>(), {.include_inactive = true});
  if (read.ok() && read->timestamp == (*json)["timestamp"].get<uint64_t>()) {
    auto object = json_api::ObjectToJson(*read);
    if (object.ok()) return Json{{"data", std::move((*object)["data"])}};
  }
  return MarkInDoubt(
      absl::UnavailableError("an earlier attempt was carried out, and its answer cannot be given again: "
                             "the object is too large to be "
                             "kept, and was changed since or cannot be read now"));
}

}  // namespace kvstore::server
