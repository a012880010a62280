#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/snapshot.h"
#include "server/caller_share.h"
#include "server/operation.h"

namespace kvstore::server {

/// Somebody who calls, and what they may do.
struct Principal {
  std::string name;  ///< For the log; entries of one name are one caller.
  std::map<std::string, Right, std::less<>> rights;
  Right everywhere = Right::kNone;  ///< On datasets that `rights` does not name.
  CallerShare* share = nullptr;     ///< What the caller has in flight; set where a server has the list.

  Right On(std::string_view dataset) const {
    const auto found = rights.find(dataset);
    return found == rights.end() ? everywhere : found->second;
  }
};

/// Who may do what, from a file:
///
///   {"tokens": [{"name": "web", "sha256": "HEX", "rights": {"*": "read", "events": "write"}},
///               {"name": "ops", "common_name": "ops.example.com", "rights": {"*": "admin"}}]}
///
/// A caller is known by a bearer token, of which the file has only the SHA-256, or by the common name of a
/// client certificate. An immutable value.
class AccessList {
 public:
  /// INVALID_ARGUMENT has a line for each mistake; no message quotes a secret.
  static absl::StatusOr<AccessList> Parse(std::string_view text);

  /// Null if nobody has this token. Takes as long for any token.
  const Principal* FindToken(std::string_view token) const;
  /// Null if nobody has this name.
  const Principal* FindCommonName(std::string_view name) const;
  size_t size() const { return entries_.size(); }
  /// Gives each entry the share of its name.
  void SetShares(const std::function<CallerShare&(const std::string& name)>& share_of) {
    for (Entry& entry : entries_) entry.principal.share = &share_of(entry.principal.name);
  }

 private:
  using Digest = std::array<uint8_t, 32>;
  struct Entry {
    Principal principal;
    bool has_digest = false;
    Digest digest{};
    std::string common_name;
  };
  std::vector<Entry> entries_;
};

/// The list in force. Without a file everybody may do everything. Thread-safe.
class Access {
 public:
  /// Fails if the file cannot be read, or is wrong.
  static absl::StatusOr<std::unique_ptr<Access>> Open(std::filesystem::path file);

  /// Reads the file again if it has changed. A bad edit is refused and logged: the last good list stays.
  void Refresh();

  /// Who calls; null: anybody, there is no list. UNAUTHENTICATED if the list does not know them.
  ///
  /// authorization  the header of that name; empty: there was none.
  /// common_name    of the client's certificate, checked; empty: none.
  absl::StatusOr<std::shared_ptr<const Principal>> Identify(std::string_view authorization,
                                                            std::string_view common_name) const;

  bool open_to_all() const { return file_.empty(); }

  /// The share of a caller by its name, the same for as long as this lives, whatever the list becomes.
  CallerShare& ShareOf(const std::string& name);
  /// The share of all whose names are not known.
  CallerShare& nobody() { return nobody_; }
  /// What all callers hold.
  size_t BytesInFlight() const;

 private:
  /// Which file was read last, and in which state.
  struct Seen {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t written_ns = 0;
    int64_t changed_ns = 0;  // also by what sets the time of writing
    bool operator==(const Seen&) const = default;
  };

  explicit Access(std::filesystem::path file);
  absl::Status Load();
  std::optional<Seen> Look() const;

  const std::filesystem::path file_;
  std::optional<Seen> read_;
  Snapshot<AccessList> list_;
  CallerShare nobody_{""};
  mutable std::mutex mutex_;
  std::map<std::string, CallerShare> shares_;  // guarded by mutex_; only grows, by one for each name
};

/// What the token's entry in the file says: its SHA-256 in hexadecimal digits.
std::string TokenDigest(std::string_view token);

/// PERMISSION_DENIED unless the principal has the right; null has all.
absl::Status CheckRight(const Principal* principal, std::string_view dataset, Right right);

}  // namespace kvstore::server
