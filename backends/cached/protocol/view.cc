#include "backends/cached/protocol/view.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "json/json.h"
#include "json/json_fields.h"

namespace kvstore::cached {
namespace {

std::vector<std::string> ReadList(JsonFields& fields, std::string_view name) {
  std::vector<std::string> list;
  for (const Json& one : fields.Array(name)) {
    if (one.is_string()) {
      list.push_back(one.get<std::string>());
    } else {
      fields.Fail(name, "must be a list of texts \"host:port\"");
    }
  }
  return list;
}

}  // namespace

std::string GuardKey(const View& view) { return fmt::format("kv:guard:{:x}", view.id); }

std::string ToText(const View& view) {
  return Json{{"version", 1},
              {"id", view.id},
              {"list", view.list},
              {"memcached", view.memcached},
              {"redis", view.redis},
              {"lease_ms", view.lease_ms},
              {"quarantine_s", view.quarantine_s},
              {"suspended", view.suspended},
              {"changing", view.changing},
              {"before", view.before}}
      .dump(2);
}

absl::StatusOr<View> ParseView(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return json.status();
  JsonFields fields(*json, "");
  View view;
  fields.Uint("version", 1, 1);
  view.id = fields.Uint("id", 0, UINT64_MAX);
  view.list = fields.Uint("list", 1, UINT64_MAX);
  view.memcached = ReadList(fields, "memcached");
  view.redis = ReadList(fields, "redis");
  view.lease_ms = fields.Uint("lease_ms", 1, 3'600'000);
  view.quarantine_s = fields.Uint("quarantine_s", 1, 86'400);
  if (const Json* suspended = fields.Require("suspended"); suspended != nullptr && suspended->is_object()) {
    JsonFields inner(*suspended, "suspended.");
    for (const auto& server : suspended->items()) {
      view.suspended[server.key()] = inner.Uint(server.key(), 0, UINT64_MAX);
    }
    fields.FailAll(inner);
  }
  view.changing = fields.Uint("changing", 0, UINT64_MAX);
  view.before = ReadList(fields, "before");
  if (auto status = fields.Finish(); !status.ok()) return status;
  return view;
}

}  // namespace kvstore::cached
