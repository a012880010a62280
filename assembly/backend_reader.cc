#include "assembly/backend_reader.h"

#include <utility>

#include "assembly/config_fields.h"

namespace kvstore {

std::optional<BackendConfig> BackendReader::Read(std::string name, JsonFields& fields,
                                                 BackendReaderContext& context) {
  const std::string type = fields.String("type");
  // fields.String has already recorded that the field is missing, or is not a string.
  if (const Json* given = fields.Find("type"); given == nullptr || !given->is_string()) return std::nullopt;
  if (context.types.Find(type) == nullptr) {
    fields.Fail("type", context.types.UnknownTypeMessage(type));
    return std::nullopt;
  }
  return ReadAs(type, std::move(name), fields, context);
}

BackendConfig BackendReader::ReadAs(const std::string& type, std::string name, JsonFields& fields,
                                    BackendReaderContext& context) {
  const BackendType& known = *context.types.Find(type);
  if (known.only_one && !context.seen.insert(type).second) {
    fields.Fail("type", BackendTypes::SecondOfTypeMessage(type));
  }
  BackendReader reader(fields, context);
  BackendConfig config{.name = std::move(name), .type = type};
  if (known.available.ok()) {
    config.options = known.read(reader);
  } else {
    fields.Fail(known.available);
  }
  config.inner = std::move(reader.inner_);
  return config;
}

void BackendReader::ReadInner(std::string_view name) {
  if (fields_.Require(name) == nullptr) return;
  OptionalObject(fields_, name, [&](JsonFields& inner) {
    if (auto config = Read(std::string(name), inner, context_)) inner_.push_back(*std::move(config));
  });
}

}  // namespace kvstore
