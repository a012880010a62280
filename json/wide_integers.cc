#include "json/wide_integers.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace kvstore {
namespace {

using Json = nlohmann::json;

/// Messages are bounded, names of fields are not.
constexpr size_t kMaxPathBytes = 200;

/// Follows the path through a text, and stops at the first integer that was rounded.
class WideIntegerFinder : public nlohmann::json_sax<Json> {
 public:
  /// The path of the integer; empty if none was found.
  std::string Take() && { return std::move(found_); }

  bool null() override { return Next(); }
  bool boolean(bool) override { return Next(); }
  bool number_integer(number_integer_t) override { return Next(); }
  bool number_unsigned(number_unsigned_t) override { return Next(); }
  bool number_float(number_float_t, const string_t& text) override {
    if (text.find_first_of(".eE") != string_t::npos) return Next();
    found_ = Path();
    return false;
  }
  bool string(string_t&) override { return Next(); }
  bool binary(binary_t&) override { return Next(); }
  bool key(string_t& name) override {
    place_.back().key = name;
    return true;
  }
  bool start_object(size_t) override { return Open(/*is_array=*/false); }
  bool end_object() override { return CloseOne(); }
  bool start_array(size_t) override { return Open(/*is_array=*/true); }
  bool end_array() override { return CloseOne(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  /// The place in an object or an array that is open.
  struct Place {
    bool is_array = false;
    size_t index = 0;
    std::string key;
  };

  bool Open(bool is_array) {
    place_.push_back({.is_array = is_array, .index = 0, .key = {}});
    return true;
  }
  bool CloseOne() {
    place_.pop_back();
    return Next();
  }
  /// A value has ended.
  bool Next() {
    if (!place_.empty()) ++place_.back().index;
    return true;
  }

  std::string Path() const {
    std::string path;
    for (const Place& place : place_) {
      if (place.is_array) {
        path += fmt::format("[{}]", place.index);
      } else {
        path += path.empty() ? place.key : "." + place.key;
      }
    }
    if (path.size() > kMaxPathBytes) return fmt::format("a field whose path has {} bytes", path.size());
    return path.empty() ? "it" : path;
  }

  std::vector<Place> place_;
  std::string found_;
};

}  // namespace

std::string FindWideInteger(std::string_view text) {
  WideIntegerFinder finder;
  Json::sax_parse(text, &finder);
  return std::move(finder).Take();
}

}  // namespace kvstore
