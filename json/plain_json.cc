#include "json/plain_json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>

#include "json/bytes_json.h"

namespace kvstore {
namespace {

using PlainKind = FlatValue::Kind;

/// No whole number with so many digits is beyond int64_t.
constexpr size_t kMaxDigits = 18;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// How many bytes at the front of eight are ASCII, and neither a quotation mark, a backslash nor a control
/// character.
size_t PlainBytes(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighs = kOnes << 7;
  // The highest bit of a byte of `others` is 0 for each byte before the first one that is not plain, and 1
  // for that one.
  const auto zeros = [](uint64_t value) { return (value - kOnes) & ~value; };
  const uint64_t others =
      zeros(word ^ kOnes * '"') | zeros(word ^ kOnes * '\\') | ((word - kOnes * 0x20) & ~word) | word;
  return static_cast<size_t>(std::countr_zero(others & kHighs)) / 8;
}

}  // namespace

void PlainJson::Fail() {
  failed_ = true;
  at_ = end_;
}

void PlainJson::SkipSpaces() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
}

bool PlainJson::Take(char mark) {
  SkipSpaces();
  if (at_ == end_ || *at_ != mark) return false;
  ++at_;
  return true;
}

bool PlainJson::IsWhole() {
  SkipSpaces();
  return at_ == end_ && !failed_;
}

std::string_view PlainJson::String() {
  Expect('"');
  const char* const begin = at_;
  unsigned char seen = 0;  // the bits of all bytes that are looked at one by one
  if (std::endian::native == std::endian::little) {
    size_t plain = 8;
    for (; plain == 8 && end_ - at_ >= 8; at_ += plain) plain = PlainBytes(at_);
  }
  for (; at_ != end_ && *at_ != '"'; ++at_) {
    const auto byte = static_cast<unsigned char>(*at_);
    if (byte < 0x20 || byte == '\\') break;
    seen |= byte;
  }
  if (at_ == end_ || *at_ != '"') {
    Fail();
    return {};
  }
  const std::string_view text(begin, static_cast<size_t>(at_ - begin));
  ++at_;
  if (seen < 0x80 || IsUtf8(text)) return text;
  Fail();
  return {};
}

bool PlainJson::Bool() {
  SkipSpaces();
  if (Word("true")) return true;
  if (!Word("false")) Fail();
  return false;
}

bool PlainJson::Word(std::string_view word) {
  if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

FlatValue PlainJson::Number() {
  FlatValue value;
  const char* const begin = at_;
  const char* next = at_;
  const bool negative = next != end_ && *next == '-';
  if (negative) ++next;
  const auto skip_digits = [&] {
    const char* const first = next;
    while (next != end_ && IsDigit(*next)) ++next;
    return static_cast<size_t>(next - first);
  };
  const char* const digits = next;
  const size_t count = skip_digits();
  bool sound = count > 0 && !(count > 1 && *digits == '0');
  const bool has_point = next != end_ && *next == '.';
  if (has_point) {
    ++next;
    sound = skip_digits() > 0 && sound;
  }
  const bool has_exponent = next != end_ && (*next == 'e' || *next == 'E');
  if (has_exponent) {
    ++next;
    if (next != end_ && (*next == '+' || *next == '-')) ++next;
    sound = skip_digits() > 0 && sound;
  }
  if (!has_point && !has_exponent) {
    if (!sound || count > kMaxDigits) {
      Fail();
      return value;
    }
    value.kind = PlainKind::kInteger;
    for (const char* digit = digits; digit != next; ++digit)
      value.integer = value.integer * 10 + (*digit - '0');
    if (negative) value.integer = -value.integer;
  } else {
    value.kind = PlainKind::kReal;
    const auto [end, error] = std::from_chars(begin, next, value.real);
    // Numbers that are too great, or so small that digits are lost, are left to ParseJson.
    if (!sound || error != std::errc() || end != next || !std::isfinite(value.real)) {
      Fail();
      return {};
    }
  }
  at_ = next;
  return value;
}

FlatValue PlainJson::Single() {
  FlatValue value;
  SkipSpaces();
  const char first = at_ == end_ ? '\0' : *at_;
  if (first == '"') {
    value.kind = PlainKind::kString;
    value.text = String();
  } else if (first == '-' || IsDigit(first)) {
    return Number();
  } else if (first == 't' || first == 'f') {
    value.kind = PlainKind::kBool;
    value.boolean = Bool();
  } else if (!Word("null")) {
    Fail();
  }
  return value;
}

FlatValue PlainJson::Value(FlatJson& flat) {
  const FlatJson::Mark before = flat.mark();
  const FlatValue value = Nested(flat, 0);
  if (!failed_) return value;
  flat.ReturnTo(before);
  return {};
}

FlatValue PlainJson::Nested(FlatJson& flat, int depth) {
  if (Take('{')) return Object(flat, depth + 1);
  if (Take('[')) return Array(flat);
  return Single();
}

FlatValue PlainJson::Array(FlatJson& flat) {
  FlatValue array{.kind = PlainKind::kArray};
  array.begin = flat.elements_.size();
  if (!Take(']')) {
    do {
      flat.elements_.push_back(Single());
    } while (Take(','));
    Expect(']');
  }
  array.end = flat.elements_.size();
  return array;
}

FlatValue PlainJson::Object(FlatJson& flat, int depth) {
  FlatValue object;
  if (depth > kMaxDepth) Fail();
  const size_t begin = flat.open_.size();
  if (!Take('}')) {
    do {
      const std::string_view name = String();
      Expect(':');
      const FlatValue value = Nested(flat, depth);
      flat.open_.push_back({name, value});
    } while (Take(','));
    Expect('}');
  }
  if (!flat.Close(begin, object)) Fail();
  return object;
}

}  // namespace kvstore
