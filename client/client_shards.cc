#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "client/caller.h"
#include "client/cancel_watch.h"
#include "client/client.h"
#include "client/outcome.h"
#include "client/verb_request.h"
#include "json/json.h"

/// The shard maps and the operation of the fleet, through a server.
namespace kvstore::client {
namespace {

/// Returns whether a command changes nothing, so that it may just be given again.
bool OnlyInspects(const Json& command) {
  static const std::set<std::string> kInspections = {"check",  "moves",          "operations",
                                                     "status", "operate_status", "operate_journal"};
  return command.value("dry_run", false) || kInspections.contains(command.value("command", ""));
}

/// Returns the error of a server that is older than OperateShards.
absl::Status TooOldError(const std::string& address) {
  return absl::UnimplementedError(
      fmt::format("server {}: is of a version that does not operate shards: update it, or run the command "
                  "with --config on a machine that has the fleet's configuration",
                  address));
}

}  // namespace

absl::StatusOr<std::string> Client::GetShardMap(ShardSpace space) {
  v1::GetShardMapRequest request;
  request.set_space(space == ShardSpace::kMod ? v1::MOD_SHARDS : v1::ID_SHARDS);
  v1::GetShardMapResponse response;
  if (auto status = caller_->Read(request, response); !status.ok()) return status;
  return std::move(*response.mutable_map());
}

absl::StatusOr<std::vector<ShardMaps::Kept>> Client::ListShardMaps(ShardSpace space) {
  v1::ListShardMapsRequest request;
  request.set_space(space == ShardSpace::kMod ? v1::MOD_SHARDS : v1::ID_SHARDS);
  v1::ListShardMapsResponse response;
  if (auto status = caller_->Read(request, response); !status.ok()) return status;
  std::vector<Kept> maps;
  for (v1::ListShardMapsResponse::Kept& kept : *response.mutable_maps()) {
    maps.push_back(
        {std::move(*kept.mutable_name()), kept.at_ms(), std::move(*kept.mutable_who()), std::nullopt});
    if (kept.has_map()) maps.back().map = std::move(*kept.mutable_map());
  }
  return maps;
}

absl::StatusOr<Json> Client::Operate(const Json& command, const ShardEvents& events) {
  const auto request = OperateShardsRequestOf(command);
  if (!request.ok()) return request.status();
  // A server that is not there is waited for now: once the command may have begun, it is not sent again.
  v1::GetServerRequest anybody;
  v1::GetServerResponse server;
  if (auto status = caller_->Call(anybody, server); !status.ok()) return status;
  grpc::ClientContext context;
  const CallLimits& limits = CallScope::Current();
  caller_->Prepare(context, limits.deadline);
  const CancelWatch watch(context, limits.cancelled);
  const auto stream = caller_->Shards().OperateShards(&context, *request);
  std::optional<std::string> answer;
  std::string problem;
  bool stopped = false;
  for (v1::OperateShardsResponse response; stream->Read(&response);) {
    if (response.has_result()) {
      answer = std::move(*response.mutable_result()->mutable_answer());
    } else if (response.has_line()) {
      if (events.line) events.line(response.line());
    } else if (response.has_problem()) {
      problem = std::move(*response.mutable_problem());
    } else if (response.has_progress() && events.progress && !stopped) {
      const auto& progress = response.progress();
      stopped = !events.progress(progress.step(), progress.done(), progress.total());
      if (stopped) context.TryCancel();
    }
  }
  const grpc::Status status = stream->Finish();
  if (status.ok() && answer) return ParseJson(*answer);
  if (status.ok()) return caller_->InvalidAnswerError("ended the command without its answer");
  if (stopped) return absl::CancelledError("the command was stopped; what it has done stays done");
  const std::string outcome = OutcomeOf(context);
  if (status.error_code() == grpc::UNIMPLEMENTED && outcome.empty()) return TooOldError(caller_->address());
  const Caller::Verdict verdict = caller_->Classify(status, outcome, /*writes=*/false);
  if (verdict.lost && !OnlyInspects(command)) {
    return absl::Status(
        verdict.status.code(),
        fmt::format(
            "{}; the command may have done all, a part or nothing: kv shards operations, kv shards move "
            "status and kv shards status say how far it came. Then give it again",
            std::string(verdict.status.message())));
  }
  return problem.empty() ? verdict.status : absl::Status(verdict.status.code(), problem);
}

}  // namespace kvstore::client
