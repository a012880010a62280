#include "server/http/json_operations.h"

#include <fmt/format.h>

#include <utility>

#include "base/nearest.h"
#include "json_api/forms.h"

namespace kvstore::server {

const JsonOperations& AllJsonOperations() {
  static const JsonOperations kAll = [] {
    JsonOperations all;
    const auto add = [&](std::string name, Operation operation) {
      JsonForm form = json_api::Forms().at(name);
      all[name] = {.name = name, .operation = operation, .form = std::move(form), .serve = nullptr};
    };
#define KV_JSON(name, op) add(#op, Operation::k##name);
#define KV_JSON_REPORT(name, op) add(#op, Operation::k##name);
#include "backend_api/operations.def"
    for (JsonOperation& operation : ServerOperations()) {
      std::string name = operation.name;
      all[std::move(name)] = std::move(operation);
    }
    return all;
  }();
  return kAll;
}

absl::Status NoSuchOperationError(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [op, operation] : AllJsonOperations()) names.push_back(op);
  const std::string given(name.substr(0, 100));
  return absl::NotFoundError(
      fmt::format("op: there is no operation '{}'{}", given, DidYouMean(Nearest(given, names))));
}

}  // namespace kvstore::server
