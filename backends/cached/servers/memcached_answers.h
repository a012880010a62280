#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore::cached {

/// An answer to a command of memcached's meta protocol (protocol.txt of memcached 1.6).
struct MemcachedAnswer {
  /// "HD" (done), "VA" (a value), "EN" (no such key), "NS" (not stored), "EX" (has another CAS number), "NF"
  /// (not found), "MN" (nothing to do).
  std::string code;
  std::string value;    ///< The value, in an answer "VA".
  uint64_t cas = 0;     ///< The flag c.
  uint64_t client = 0;  ///< The flag f: the number that was stored with the value.
  bool won = false;     ///< The flag W: the key was made by this command, which may fill it.
};

/// Takes a server's bytes apart into answers. Written here because no library for C or C++ speaks the meta
/// protocol with its leases (awesomized/libmemcached, issue 121). Externally synchronised.
class MemcachedAnswers {
 public:
  /// The largest value that is accepted: what nobody has stored is not read either.
  static constexpr size_t kMaxValueBytes = size_t{1} << 20;
  static constexpr size_t kMaxLineBytes = 2048;

  void Append(std::string_view bytes) { bytes_.append(bytes); }
  /// Where what has arrived may be appended to directly.
  std::string& bytes() { return bytes_; }
  /// Returns the next answer; nullopt if not all of it has arrived. UNAVAILABLE for bytes that are no answer,
  /// and for an answer that reports an error: the connection is of no use then.
  absl::StatusOr<std::optional<MemcachedAnswer>> Next();
  /// Whether all bytes that were appended belong to answers that were returned.
  bool empty() const { return used_ == bytes_.size(); }

 private:
  std::string bytes_;
  size_t used_ = 0;
};

}  // namespace kvstore::cached
