#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace kvstore {

/// A value in FlatJson.
struct FlatValue {
  enum class Kind : uint8_t {
    kNull,
    kBool,
    kInteger,
    kLargeInteger,  ///< Above those of int64_t; `real` is the nearest real number.
    kReal,
    kString,
    kArray,   ///< Its elements are neither arrays nor objects.
    kObject,  ///< Its fields may have values of any kind.
    kOther,   ///< An array that has arrays or objects, of which nothing is kept.
  };
  Kind kind = Kind::kNull;
  bool boolean = false;  ///< The value of kBool.
  // There are many at a time, so that what only one kind has takes no room in the others.
  union {
    int64_t integer = 0;  ///< The value of kInteger.
    double real;          ///< The value of kReal and kLargeInteger.
    size_t begin;         ///< The place of kArray and kObject: see FlatJson::Elements and FlatJson::Fields.
  };
  size_t end = 0;         ///< Likewise.
  std::string_view text;  ///< The value of kString; it points into the text from which it was read.
};

struct FlatField {
  std::string_view name;  ///< As FlatValue::text.
  FlatValue value;
};

/// Many JSON values in two lists, in place of a tree with an allocation for each value. Values are added by
/// PlainJson (plain_json.h) or Add, and read through what these return. Externally synchronised.
class FlatJson {
 public:
  /// The elements of an array.
  std::span<const FlatValue> Elements(const FlatValue& array) const {
    return std::span(elements_).subspan(array.begin, array.end - array.begin);
  }
  /// The fields of an object, by the bytes of their names.
  std::span<const FlatField> Fields(const FlatValue& object) const {
    return std::span(fields_).subspan(object.begin, object.end - object.begin);
  }
  /// The field of an object; null if it has none of that name.
  const FlatValue* Find(const FlatValue& object, std::string_view name) const;

  /// Adds a value of a tree, which must outlive what is read of it here.
  FlatValue Add(const Json& json);
  /// Removes all values.
  void Clear();

 private:
  friend class PlainJson;

  /// The sizes of the lists at some moment, for ReturnTo.
  struct Mark {
    size_t elements = 0;
    size_t fields = 0;
    size_t open = 0;
  };
  Mark mark() const { return {elements_.size(), fields_.size(), open_.size()}; }
  /// Removes what was added since.
  void ReturnTo(const Mark& mark);
  /// Makes an object of the fields of open_ from `begin` on; false if two have the same name.
  bool Close(size_t begin, FlatValue& object);

  std::vector<FlatValue> elements_;
  std::vector<FlatField> fields_;
  std::vector<FlatField> open_;  // of objects whose end was not read yet
  std::vector<uint32_t> order_;  // of Close, kept for its memory
};

}  // namespace kvstore
