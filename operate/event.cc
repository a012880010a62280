#include "operate/event.h"

#include <nlohmann/json.hpp>

namespace kvstore::operate {

Json ToJson(const Event& event) {
  Json json = {{"kind", event.kind},
               {"subject", event.subject},
               {"text", event.text},
               {"at_ms", event.at_ms},
               {"by", event.by}};
  if (!event.page.empty()) json["page"] = event.page;
  return json;
}

Event EventFromJson(const Json& json) {
  const auto text = [&](const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  Event event{.kind = text("kind"),
              .subject = text("subject"),
              .text = text("text"),
              .page = text("page"),
              .by = text("by")};
  if (json.is_object() && json.contains("at_ms") && json["at_ms"].is_number_unsigned()) {
    event.at_ms = json["at_ms"].get<uint64_t>();
  }
  return event;
}

}  // namespace kvstore::operate
