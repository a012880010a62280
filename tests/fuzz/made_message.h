#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvstore::testing {

/// Turns the bytes of an input into decisions, one after the other; zeros when they are used up.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool empty() const { return at_ == end_; }
  uint8_t Byte() { return empty() ? 0 : *at_++; }
  size_t Below(size_t bound) { return Byte() % bound; }
  /// Returns a number that is small, near an end of the range, or anything.
  uint64_t Number() {
    const uint8_t kind = Byte();
    if (kind < 128) return kind;
    if (kind < 160) return ~uint64_t{0} - (kind - 128U);
    if (kind < 192) return (uint64_t{1} << (kind - 128U)) - 1;
    uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number = number << 8 | Byte();
    return number;
  }
  /// Returns a known name, or some bytes.
  ///
  /// utf8  whether the bytes must be UTF-8, as in a string of protobuf.
  std::string Text(bool utf8) {
    static constexpr std::array<std::string_view, 16> kKnown = {"",
                                                                "r",
                                                                "o",
                                                                "m",
                                                                "row",
                                                                "row2",
                                                                "c",
                                                                "c2",
                                                                "{}",
                                                                R"({"a":1})",
                                                                R"({"a":null})",
                                                                "v",
                                                                "*",
                                                                "default",
                                                                "refused",
                                                                "0123456789abcdef"};
    const uint8_t kind = Byte();
    if (kind < 128) return std::string(kKnown.at(kind % kKnown.size()));
    std::string text;
    for (int i = kind % 32; i > 0; --i) {
      const uint8_t byte = Byte();
      text += static_cast<char>(utf8 ? byte & 0x7f : byte);
    }
    return text;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

/// Sets fields of a message and of its nested messages as the input decides: any message can be made.
inline void Fill(google::protobuf::Message& message, Choices& choices, int depth = 0) {
  using google::protobuf::FieldDescriptor;
  constexpr int kMostDepth = 6;
  const auto& type = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  if (type.field_count() == 0) return;
  for (int sets = choices.Byte() % 8; sets > 0; --sets) {
    const FieldDescriptor* field =
        type.field(static_cast<int>(choices.Below(static_cast<size_t>(type.field_count()))));
#ifdef __SANITIZE_THREAD__
    // In programs with ThreadSanitizer protobuf's headers give a map more members than its library, which
    // fills maps here, knows of.
    if (field->is_map()) continue;
#endif
    const bool listed = field->is_repeated();
    const auto set = [&](auto add, auto one, auto value) {
      if (listed) {
        (reflection.*add)(&message, field, std::move(value));
      } else {
        (reflection.*one)(&message, field, std::move(value));
      }
    };
    using google::protobuf::Reflection;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        set(&Reflection::AddInt32, &Reflection::SetInt32, static_cast<int32_t>(choices.Number()));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        set(&Reflection::AddInt64, &Reflection::SetInt64, static_cast<int64_t>(choices.Number()));
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        set(&Reflection::AddUInt32, &Reflection::SetUInt32, static_cast<uint32_t>(choices.Number()));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        set(&Reflection::AddUInt64, &Reflection::SetUInt64, choices.Number());
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        set(&Reflection::AddBool, &Reflection::SetBool, choices.Below(2) == 1);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        // Numbers that no enum value has are made, too.
        set(&Reflection::AddEnumValue, &Reflection::SetEnumValue, static_cast<int>(choices.Below(6)) - 1);
        break;
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string text = choices.Text(field->type() == FieldDescriptor::TYPE_STRING);
        set(&Reflection::AddString, &Reflection::SetString, std::move(text));
        break;
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth < kMostDepth) {
          Fill(listed ? *reflection.AddMessage(&message, field) : *reflection.MutableMessage(&message, field),
               choices, depth + 1);
        }
        break;
      default:
        break;
    }
  }
}

}  // namespace kvstore::testing
