#include "json_api/put_items.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kvstore_api/limits.h"

namespace kvstore::json_api {

PutItems ReadItems(JsonFields& fields) {
  PutItems items;
  const auto& list = fields.Array("items");
  items.bytes.reserve(list.size() * 2);  // the cells point into it
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields inner(list[i], fields.Path(fmt::format("items[{}].", i)));
    const std::string& column = items.bytes.emplace_back(inner.Bytes("column"));
    const std::string& value = items.bytes.emplace_back(inner.Bytes("value"));
    const auto timestamp = inner.OptionalUint("timestamp", 0, kMaxTimestamp);
    items.cells.push_back({column, value, timestamp});
    fields.Fail(inner.Finish());
  }
  return items;
}

}  // namespace kvstore::json_api
