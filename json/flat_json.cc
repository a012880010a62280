#include "json/flat_json.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>

namespace kvstore {
namespace {

using FlatKind = FlatValue::Kind;

/// The order of names by their bytes, which mostly differ in the first one.
bool NameBefore(std::string_view a, std::string_view b) {
  if (!a.empty() && !b.empty() && a.front() != b.front()) {
    return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front());
  }
  return a < b;
}

}  // namespace

const FlatValue* FlatJson::Find(const FlatValue& object, std::string_view name) const {
  for (const FlatField& field : Fields(object)) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

FlatValue FlatJson::Add(const Json& json) {
  FlatValue value;
  switch (json.type()) {
    case Json::value_t::boolean:
      value.kind = FlatKind::kBool;
      value.boolean = json.get<bool>();
      return value;
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        value.kind = FlatKind::kLargeInteger;
        value.real = json.get<double>();
        return value;
      }
      [[fallthrough]];
    case Json::value_t::number_integer:
      value.kind = FlatKind::kInteger;
      value.integer = json.get<int64_t>();
      return value;
    case Json::value_t::number_float:
      value.kind = FlatKind::kReal;
      value.real = json.get<double>();
      return value;
    case Json::value_t::string:
      value.kind = FlatKind::kString;
      value.text = json.get_ref<const std::string&>();
      return value;
    case Json::value_t::array: {
      const bool nested =
          std::any_of(json.begin(), json.end(), [](const Json& element) { return element.is_structured(); });
      value.kind = nested ? FlatKind::kOther : FlatKind::kArray;
      value.begin = elements_.size();
      if (!nested) {
        for (const Json& element : json) elements_.push_back(Add(element));
      }
      value.end = elements_.size();
      return value;
    }
    case Json::value_t::object: {
      const size_t begin = open_.size();
      for (auto field = json.begin(); field != json.end(); ++field) {
        const FlatValue inner = Add(*field);
        open_.push_back({field.key(), inner});
      }
      // A tree has each name once.
      Close(begin, value);
      return value;
    }
    default:
      return value;
  }
}

void FlatJson::Clear() { ReturnTo({}); }

void FlatJson::ReturnTo(const Mark& mark) {
  elements_.resize(mark.elements);
  fields_.resize(mark.fields);
  open_.resize(mark.open);
}

bool FlatJson::Close(size_t begin, FlatValue& object) {
  const std::span<const FlatField> open = std::span(open_).subspan(begin);
  // Numbers are sorted in place of the fields, which are large.
  order_.resize(open.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(),
            [&](uint32_t a, uint32_t b) { return NameBefore(open[a].name, open[b].name); });
  const auto twice = std::adjacent_find(order_.begin(), order_.end(),
                                        [&](uint32_t a, uint32_t b) { return open[a].name == open[b].name; });
  const bool sound = twice == order_.end();
  object.kind = FlatKind::kObject;
  object.begin = fields_.size();
  if (sound) {
    for (const uint32_t field : order_) fields_.push_back(open[field]);
  }
  object.end = fields_.size();
  open_.resize(begin);
  return sound;
}

}  // namespace kvstore
