#include "server/call/migration_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace kvstore::server {

absl::StatusOr<Json> CommandMigration(Core& core, const Principal* principal, const std::string& dataset,
                                      Json command) {
  if (core.parts.migrations == nullptr) return absl::UnimplementedError("this server migrates no datasets");
  // The caller's right was checked for this dataset, whatever the command itself names.
  if (dataset != "*") command["dataset"] = dataset;
  if (dataset == "*" && command.value("command", Json()) != "list") {
    return absl::InvalidArgumentError("dataset: only a list may be about all datasets ('*')");
  }
  if (principal != nullptr) command["who"] = principal->name;
  const auto status = core.parts.migrations->Command(command);
  if (!status.ok()) return status.status();
  Json about = *status;
  // A list has the migrations of all datasets, and the right was checked for one of them only.
  if (const auto list = about.find("migrations"); list != about.end() && list->is_array()) {
    const auto hidden = [principal](const Json& one) {
      return !CheckRight(principal, one.value("dataset", ""), Right::kAdmin).ok();
    };
    list->erase(std::remove_if(list->begin(), list->end(), hidden), list->end());
  }
  return about;
}

}  // namespace kvstore::server
