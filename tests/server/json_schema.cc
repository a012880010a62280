#include "tests/server/json_schema.h"

#include <regex>
#include <set>

namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

bool IsOfType(const std::string& type, const Json& value) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == value.type_name();
}

std::string CheckType(const Json& types, const Json& value, const std::string& path) {
  for (const Json& type : types.is_array() ? types : Json::array({types})) {
    if (IsOfType(type, value)) return "";
  }
  return path + ": is " + value.type_name() + ", not " + types.dump();
}

std::string CheckObject(const Json& document, const Json& schema, const Json& value,
                        const std::string& path) {
  if (!value.is_object()) return "";
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name)) return path + ": lacks " + name.get<std::string>();
  }
  const Json properties = schema.value("properties", Json::object());
  const Json others = schema.value("additionalProperties", Json(true));
  for (const auto& [name, field] : value.items()) {
    if (!properties.contains(name) && others == false) return path + ": has a field " + name;
    const Json& of = properties.contains(name) ? properties[name] : others;
    if (of.is_boolean()) continue;
    if (auto problem = Mismatch(document, of, field, path + "." + name); !problem.empty()) return problem;
  }
  return "";
}

std::string CheckArray(const Json& document, const Json& schema, const Json& value, const std::string& path) {
  if (!value.is_array()) return "";
  if (value.size() < schema.value("minItems", size_t{0})) return path + ": has too few elements";
  if (value.size() > schema.value("maxItems", SIZE_MAX)) return path + ": has too many elements";
  if (!schema.contains("items")) return "";
  for (size_t i = 0; i < value.size(); ++i) {
    auto problem = Mismatch(document, schema["items"], value[i], path + "[" + std::to_string(i) + "]");
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string CheckAny(const Json& document, const Json& choices, const Json& value, const std::string& path) {
  std::string problems;
  for (const Json& choice : choices) {
    const std::string problem = Mismatch(document, choice, value, path);
    if (problem.empty()) return "";
    problems += "\n  " + problem;
  }
  return path + ": is none of what it may be:" + problems;
}

}  // namespace

std::string Mismatch(const Json& document, const Json& schema, const Json& value, const std::string& path) {
  static const std::set<std::string> kKnown = {
      "$ref",           "type",     "properties", "required", "additionalProperties",
      "items",          "minItems", "maxItems",   "minimum",  "maximum",
      "pattern",        "enum",     "const",      "anyOf",    "description",
      "contentEncoding"};
  for (const auto& [keyword, argument] : schema.items()) {
    if (!kKnown.contains(keyword)) return path + ": the schema has an unknown keyword " + keyword;
  }
  if (const auto reference = schema.find("$ref"); reference != schema.end()) {
    const Json::json_pointer at(reference->get<std::string>().substr(1));
    if (!document.contains(at)) return path + ": there is no " + reference->dump();
    return Mismatch(document, document[at], value, path);
  }
  if (schema.contains("const") && value != schema["const"])
    return path + ": is not " + schema["const"].dump();
  if (schema.contains("enum")) {
    bool found = false;
    for (const Json& choice : schema["enum"]) found = found || choice == value;
    if (!found) return path + ": " + value.dump() + " is none of " + schema["enum"].dump();
  }
  if (schema.contains("type")) {
    if (auto problem = CheckType(schema["type"], value, path); !problem.empty()) return problem;
  }
  // As doubles: the library compares a signed with an unsigned number as signed ones.
  const double number = value.is_number() ? value.get<double>() : 0;
  if (value.is_number() &&
      (number < schema.value("minimum", number) || number > schema.value("maximum", number)))
    return path + ": " + value.dump() + " is out of range";
  if (value.is_string() && schema.contains("pattern") &&
      !std::regex_search(value.get<std::string>(), std::regex(schema["pattern"].get<std::string>()))) {
    return path + ": " + value.dump() + " does not match " + schema["pattern"].dump();
  }
  if (auto problem = CheckObject(document, schema, value, path); !problem.empty()) return problem;
  if (auto problem = CheckArray(document, schema, value, path); !problem.empty()) return problem;
  return schema.contains("anyOf") ? CheckAny(document, schema["anyOf"], value, path) : "";
}

}  // namespace kvstore::testing
