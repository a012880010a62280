#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/process.h"
#include "json/json_text.h"
#include "server/grpc/long_work_call.h"
#include "server/grpc/verb_command.h"

/// OperateShards: the commands of operators on the fleet.
namespace kvstore::server {
namespace {

using ShardsResponse = v1::OperateShardsResponse;

/// Answers are to be taken by clients of any kind; docs/server.md has this limit.
constexpr size_t kMaxAnswerBytes = size_t{12} << 20;
/// Longer options are cut in the log.
constexpr size_t kMaxDescribedBytes = 100;

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

/// Returns in whose name a command is recorded: by what the server knows of its caller, and not by what the
/// caller says.
std::string WhoAsks(const Principal& principal, std::string_view peer) {
  return fmt::format("{} from {}, by the server {}", principal.name, peer, ProcessName());
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
  const Json command = CommandOfVerb(request);
  std::string text = command.value("command", "");
  if (request.dry_run()) text += " dry_run";
  for (const auto& [name, value] : command.items()) {
    if (name == "command") continue;
    if (!value.is_string()) {
      text += fmt::format(" {}={}", name, TextOf(value));
    } else if (const auto& option = value.get_ref<const std::string&>(); name == "map") {
      text += fmt::format(" map=({} bytes)", option.size());  // the history has the map itself
    } else {
      text += fmt::format(" {}={}", name, option.substr(0, kMaxDescribedBytes));
    }
  }
  return text;
}

absl::StatusOr<std::shared_ptr<void>> AdmitLongWork(Core& core, const Principal* principal,
                                                    const v1::OperateShardsRequest&) {
  if (core.parts.shard_operations == nullptr) {
    return absl::UnimplementedError(
        "this server operates no shards: its configuration names no ZooKeeper that has shard maps");
  }
  if (principal == nullptr) {
    return absl::PermissionDeniedError(
        "this server does not tell its callers apart, so it cannot know who is an operator: name the file "
        "with "
        "the callers and their rights in its configuration (server.tokens; docs/security.md), with the right "
        "admin on \"*\" for operators, or run the command with --config on a machine that has the fleet's "
        "configuration");
  }
  if (core.shard_operations.fetch_add(1) >= Core::kMaxShardOperations) {
    core.shard_operations.fetch_sub(1);
    return MarkRefused(absl::ResourceExhaustedError(
        fmt::format("this server carries out {} operations on shards already: wait until one has ended (kv "
                    "shards operations), ask another server, or run the command with --config on a machine "
                    "that has the fleet's configuration",
                    Core::kMaxShardOperations)));
  }
  return std::shared_ptr<void>(
      &core, [](void* counted) { static_cast<Core*>(counted)->shard_operations.fetch_sub(1); });
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
