#include "json/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "json/bytes_json.h"

namespace kvstore {
namespace {

/// Finish looks for the likeliest typo among this many unknown fields at most, because an object from outside
/// may have millions.
constexpr size_t kMaxTypos = 8;

}  // namespace

std::optional<uint64_t> UintFromJson(const Json& json) {
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  if (!json.is_string()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

JsonFields::JsonFields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object()) {
    const std::string_view where =
        path_.empty() ? "request" : std::string_view(path_).substr(0, path_.size() - 1);
    mistakes_.push_back(fmt::format("{}: must be a JSON object, not {}", where, object.type_name()));
    no_object_ = true;
  }
}

std::string JsonFields::Path(std::string_view name) const { return fmt::format("{}{}", path_, name); }

void JsonFields::Fail(std::string_view name, std::string_view problem) {
  mistakes_.push_back(fmt::format("{}{}: {}", path_, name, problem));
}

void JsonFields::Fail(const absl::Status& status) {
  if (!status.ok()) mistakes_.emplace_back(status.message());
}

void JsonFields::FailAll(JsonFields& inner) {
  inner.AddUnknown();
  mistakes_.insert(mistakes_.end(), inner.mistakes_.begin(), inner.mistakes_.end());
}

const Json* JsonFields::Find(std::string_view name) {
  known_.emplace(name);
  if (no_object_) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

const Json* JsonFields::Require(std::string_view name) {
  const Json* field = Find(name);
  if (field == nullptr && !no_object_) {
    if (mistakes_.empty()) missing_first_ = true;
    Fail(name, "missing");
  }
  return field;
}

std::optional<std::string> JsonFields::OptionalString(std::string_view name) {
  const Json* field = Find(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_string()) {
    Fail(name, fmt::format("must be a string, not {}", field->type_name()));
    return std::nullopt;
  }
  return field->get<std::string>();
}

std::string JsonFields::String(std::string_view name) {
  return Require(name) == nullptr ? "" : OptionalString(name).value_or("");
}

std::optional<std::string> JsonFields::OptionalBytes(std::string_view name) {
  const Json* field = Find(name);
  if (field == nullptr) return std::nullopt;
  auto bytes = BytesFromJson(*field);
  if (!bytes.ok()) {
    Fail(name, std::string(bytes.status().message()));
    return std::nullopt;
  }
  return *std::move(bytes);
}

std::string JsonFields::Bytes(std::string_view name) {
  return Require(name) == nullptr ? "" : OptionalBytes(name).value_or("");
}

std::optional<std::vector<std::string>> JsonFields::OptionalBytesList(std::string_view name) {
  if (Find(name) == nullptr) return std::nullopt;
  std::vector<std::string> list;
  const auto& elements = Array(name);
  for (size_t i = 0; i < elements.size(); ++i) {
    auto bytes = BytesFromJson(elements[i]);
    if (!bytes.ok()) {
      Fail(fmt::format("{}[{}]", name, i), std::string(bytes.status().message()));
      return std::nullopt;
    }
    list.push_back(*std::move(bytes));
  }
  return list;
}

std::optional<uint64_t> JsonFields::OptionalUint(std::string_view name, uint64_t min, uint64_t max) {
  const Json* field = Find(name);
  if (field == nullptr) return std::nullopt;
  const auto value = UintFromJson(*field);
  if (!value || *value < min || *value > max) {
    Fail(name, fmt::format("must be a whole number from {} to {}", min, max));
    return std::nullopt;
  }
  return value;
}

uint64_t JsonFields::Uint(std::string_view name, uint64_t min, uint64_t max) {
  return Require(name) == nullptr ? 0 : OptionalUint(name, min, max).value_or(0);
}

std::optional<bool> JsonFields::OptionalBool(std::string_view name) {
  const Json* field = Find(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_boolean()) {
    Fail(name, fmt::format("must be true or false, not {}", field->type_name()));
    return std::nullopt;
  }
  return field->get<bool>();
}

const std::vector<Json>& JsonFields::Array(std::string_view name) {
  static const std::vector<Json> kNone;
  const Json* field = Require(name);
  if (field == nullptr) return kNone;
  if (!field->is_array()) {
    Fail(name, fmt::format("must be an array, not {}", field->type_name()));
    return kNone;
  }
  return field->get_ref<const std::vector<Json>&>();
}

std::vector<JsonFields::Unknown> JsonFields::FindUnknown(size_t most) const {
  std::vector<Unknown> unknown;
  if (no_object_) return unknown;
  for (const auto& [name, value] : object_.items()) {
    if (unknown.size() == most) break;
    if (!known_.contains(name)) unknown.push_back({name, {}});
  }
  if (unknown.empty()) return unknown;
  std::vector<std::string> absent;
  for (const std::string& name : known_) {
    if (!object_.contains(name)) absent.push_back(name);
  }
  for (Unknown& field : unknown) field.meant = Nearest(field.name, absent);
  return unknown;
}

std::string JsonFields::Text(const Unknown& field) const {
  return fmt::format("{}{}: unknown field{}", path_, field.name, DidYouMean(field.meant));
}

void JsonFields::AddUnknown() {
  for (const Unknown& field : FindUnknown(std::numeric_limits<size_t>::max())) {
    mistakes_.push_back(Text(field));
  }
}

absl::Status JsonFields::Finish() {
  if (!mistakes_.empty() && !missing_first_) return FirstMistake();
  const std::vector<Unknown> unknown = FindUnknown(kMaxTypos);
  if (unknown.empty()) return FirstMistake();
  const auto typo =
      std::find_if(unknown.begin(), unknown.end(), [](const Unknown& field) { return !field.meant.empty(); });
  const std::string text = Text(typo == unknown.end() ? unknown.front() : *typo);
  return absl::InvalidArgumentError(mistakes_.empty() ? text
                                                      : fmt::format("{}; {}", mistakes_.front(), text));
}

absl::Status JsonFields::FirstMistake() const {
  return mistakes_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(mistakes_.front());
}

absl::Status JsonFields::FinishAll() {
  AddUnknown();
  return mistakes_.empty() ? absl::OkStatus()
                           : absl::InvalidArgumentError(fmt::format("{}", fmt::join(mistakes_, "\n")));
}

}  // namespace kvstore
