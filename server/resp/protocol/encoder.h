#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace kvstore::server::resp {

/// The versions of the protocol; a connection begins with the older one and may change by HELLO.
enum class Version : uint8_t { kResp2 = 2, kResp3 = 3 };

/// The version of Redis whose protocol this is. Clients look at it to see what they may send.
inline constexpr std::string_view kRedisVersion = "7.0.0";

/// Appends answers to a text. Types that only RESP3 has are sent to clients of RESP2 in the form that Redis
/// uses there. Arrays, maps and sets are followed by their elements, each of which is appended by a call of
/// its own. Externally synchronised.
class Encoder {
 public:
  /// out  must outlive this.
  Encoder(std::string& out, Version version) : out_(out), version_(version) {}

  /// text  without ends of lines.
  void Simple(std::string_view text);
  void Ok() { Simple("OK"); }
  /// text  begins with a word in capitals, such as ERR. Ends of lines and other control characters become
  ///       blanks.
  void Error(std::string_view text);
  void Integer(int64_t number);
  void Bulk(std::string_view bytes);
  void Null();
  /// Appends the null that stands for a missing array.
  void NullArray();
  void Array(size_t elements);
  /// Twice as many elements follow: keys and values in turn.
  void Map(size_t pairs);
  void Set(size_t elements);
  /// A score, which is always a whole number here.
  void Score(uint64_t score);
  /// A text for people.
  void Verbatim(std::string_view text);

  /// Appends answers that another encoder has made; without a copy where nothing was appended before.
  void Append(std::string&& encoded) {
    if (!out_.empty() || encoded.size() > end_) return Add(encoded);
    out_ = std::move(encoded);
  }

  /// Bounds what is appended from now on. The first piece that would exceed the bound, and everything after
  /// it, is left out.
  void Limit(size_t bytes) { end_ = out_.size() + bytes; }
  /// Makes the answer count as too large before it is appended.
  void MarkTooLarge() { is_too_large_ = true; }
  /// Whether something was left out since the last Truncate.
  bool is_too_large() const { return is_too_large_; }
  /// Allocates memory for so many more bytes at once.
  void Reserve(size_t bytes) { out_.reserve(out_.size() + bytes); }

  Version version() const { return version_; }
  void SetVersion(Version version) { version_ = version; }
  /// Returns the size of the text so far.
  size_t size() const { return out_.size(); }
  /// Removes what was appended since the text had this size.
  void Truncate(size_t size) {
    out_.resize(size);
    is_too_large_ = false;
  }

 private:
  void Add(std::string_view bytes) {
    is_too_large_ = is_too_large_ || out_.size() + bytes.size() > end_;
    if (!is_too_large_) out_ += bytes;
  }
  void Add(char byte) { Add(std::string_view(&byte, 1)); }
  void Line(char type, int64_t number);
  bool IsResp3() const { return version_ == Version::kResp3; }

  std::string& out_;
  Version version_;
  size_t end_ = std::numeric_limits<size_t>::max();
  bool is_too_large_ = false;
};

}  // namespace kvstore::server::resp
