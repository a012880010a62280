#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "json/json_text.h"
#include "server/call/shard_command.h"
#include "server/grpc/long_work_call.h"
#include "server/grpc/verb_command.h"

/// OperateShards: the commands of operators on the fleet.
namespace kvstore::server {
namespace {

using ShardsResponse = v1::OperateShardsResponse;

/// Answers are to be taken by clients of any kind; docs/server.md has this limit.
constexpr size_t kMaxAnswerBytes = size_t{12} << 20;
/// Returns the command of a request; INVALID_ARGUMENT if it has none, or something that this version does not
/// know and must not leave out.
absl::StatusOr<Json> ShardCommandOf(const v1::OperateShardsRequest& request) {
  if (HasUnknownFields(request)) {
    return absl::InvalidArgumentError(
        "the request has a command, or an option, that this server does not know, whose version "
        "is " KV_VERSION "; nothing was done. Use a kv of that version, or update the server");
  }
  Json command = CommandOfVerb(request);
  if (command.empty()) return absl::InvalidArgumentError("verb: missing; the request says nothing to do");
  if (request.dry_run()) command["dry_run"] = true;
  return command;
}

/// Returns what reports the events of an operation to the client.
ShardEvents EventsOf(const LongWork<ShardsResponse>& work) {
  return {.line =
              [&work](const std::string& line) {
                ShardsResponse message;
                message.set_line(line);
                work.tell(std::move(message));
              },
          .progress =
              [&work](std::string_view step, uint64_t done, uint64_t total) {
                ShardsResponse message;
                message.mutable_progress()->set_step(std::string(step));
                message.mutable_progress()->set_done(done);
                message.mutable_progress()->set_total(total);
                return work.progress(std::move(message));
              }};
}

}  // namespace

std::string DescribeLongWork(const v1::OperateShardsRequest& request) {
  Json command = CommandOfVerb(request);
  if (request.dry_run()) command["dry_run"] = true;
  return DescribeShardCommand(command);
}

absl::StatusOr<std::shared_ptr<void>> AdmitLongWork(Core& core, const Principal* principal,
                                                    const v1::OperateShardsRequest&) {
  return AdmitShardOperation(core, principal);
}

absl::StatusOr<ShardsResponse::Result> DoLongWork(const v1::OperateShardsRequest& request,
                                                  const LongWork<ShardsResponse>& work) {
  auto command = ShardCommandOf(request);
  if (!command.ok()) return command.status();
  (*command)["who"] = WhoAsks(*work.principal, work.peer);
  const auto answer = work.core.parts.shard_operations->Operate(*command, EventsOf(work));
  if (!answer.ok()) {
    // The status of a call is cut where it is long.
    const std::string_view message(answer.status().message().data(), answer.status().message().size());
    if (wire::ToWire(answer.status()).error_message() != message) {
      ShardsResponse problem;
      problem.set_problem(std::string(message));
      work.tell(std::move(problem));
    }
    return answer.status();
  }
  ShardsResponse::Result result;
  result.set_answer(TextOf(*answer));
  if (result.answer().size() > kMaxAnswerBytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "the command has ended, and its answer has {} bytes, more than the {} of a message: run it "
        "with --config on a machine that has the fleet's configuration",
        result.answer().size(), kMaxAnswerBytes));
  }
  return result;
}

}  // namespace kvstore::server
