#include "server/call/shard_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/process.h"
#include "json/json_text.h"

namespace kvstore::server {
namespace {

/// Longer options are cut in the log.
constexpr size_t kMaxDescribedBytes = 100;

}  // namespace

absl::StatusOr<std::shared_ptr<void>> AdmitShardOperation(Core& core, const Principal* principal) {
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

std::string DescribeShardCommand(const Json& command) {
  if (!command.is_object()) return "";
  std::string text;
  if (const auto name = command.find("command"); name != command.end() && name->is_string())
    text = name->get_ref<const std::string&>().substr(0, kMaxDescribedBytes);
  if (const auto dry = command.find("dry_run"); dry != command.end() && *dry == true) text += " dry_run";
  for (const auto& [name, value] : command.items()) {
    if (name == "command" || name == "dry_run") continue;
    const std::string shown = name.substr(0, kMaxDescribedBytes);
    if (!value.is_string()) {
      text += fmt::format(" {}={}", shown, TextOf(value).substr(0, kMaxDescribedBytes));
    } else if (const auto& option = value.get_ref<const std::string&>(); name == "map") {
      text += fmt::format(" map=({} bytes)", option.size());  // the history has the map itself
    } else {
      text += fmt::format(" {}={}", shown, option.substr(0, kMaxDescribedBytes));
    }
  }
  return text;
}

std::string WhoAsks(const Principal& principal, std::string_view peer) {
  return fmt::format("{} from {}, by the server {}", principal.name, peer, ProcessName());
}

}  // namespace kvstore::server
