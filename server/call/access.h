#pragma once

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_state.h"
#include "base/mutex.h"
#include "base/snapshot.h"
#include "server/call/caller_share.h"
#include "server/call/operation.h"

namespace kvstore {
class JsonFields;
}

namespace kvstore::server {

/// A caller that is known, and its rights.
struct Principal {
  std::string name;  ///< Entries of the list with the same name are one caller.
  std::map<std::string, Right, std::less<>> rights;
  Right everywhere = Right::kNone;  ///< The right on datasets that `rights` does not name.
  /// By dataset, then report: rights beyond the one on the dataset, which is one on all of its reports.
  std::map<std::string, std::map<std::string, Right, std::less<>>, std::less<>> report_rights;
  CallerShare* share = nullptr;  ///< The calls and bytes that it has in flight. Set by Access, which owns it.
  QuotaLimits limits;            ///< The limits of all entries of its name together.
  /// The limits of datasets, by name. Set by Access, which owns them; null: no dataset has limits.
  const std::map<std::string, Quota*, std::less<>>* datasets = nullptr;

  Right On(std::string_view dataset) const {
    const auto found = rights.find(dataset);
    return found == rights.end() ? everywhere : found->second;
  }
  Right On(std::string_view dataset, std::string_view report) const;
  /// Returns what keeps the limits of a dataset; null: it has none. Access owns it.
  Quota* QuotaOf(std::string_view dataset) const;
  /// Returns whether the caller has any right on a dataset, or on one of its reports.
  bool MayKnowOf(std::string_view dataset) const;
};

/// The list of callers and their rights, from a file:
///
///   {"tokens": [{"name": "web", "sha256": "HEX", "rights": {"*": "read", "events": "write"}},
///               {"name": "chart", "sha256": "HEX", "rights": {"reports/flights": "read"}},
///               {"name": "ops", "common_name": "ops.example.com", "rights": {"*": "admin"}}]}
///
/// "reports/flights" is the report flights of the dataset reports. A right on a report is more than the one
/// on its dataset: whoever may read a dataset can read the rows of all of its reports.
///
/// An entry may have "limits": {"calls_per_s": 1000, "bytes_per_s": 10000000, "max_calls": 100}, which hold
/// for all entries of its name together; and beside "tokens" there may be "dataset_limits": {"events":
/// {"calls_per_s": 5000}}, which hold for all callers of a dataset together.
///
/// A caller is identified by a bearer token, of which the file has only the SHA-256, or by the common name of
/// a client certificate. An immutable value, but for SetShares.
class AccessList {
 public:
  /// Reads the file's text. INVALID_ARGUMENT has a line for each mistake; no message quotes a secret.
  static absl::StatusOr<AccessList> Parse(std::string_view text);

  /// Returns the caller with this token; null if there is none. Takes the same time for every token, so that
  /// the time tells nothing about the list.
  const Principal* FindToken(std::string_view token) const;
  /// Returns the caller with this common name; null if there is none.
  const Principal* FindCommonName(std::string_view name) const;
  size_t size() const { return entries_.size(); }
  /// Sets the share of each entry by its name, and the quota of each dataset that has limits. Only before the
  /// list is shared with other threads, and when it does not move any more.
  void SetShares(const std::function<CallerShare&(const std::string& name)>& share_of,
                 const std::function<Quota&(const std::string& dataset)>& quota_of);
  /// Returns the limits of the caller of this name; none if the list does not have it.
  QuotaLimits LimitsOf(const std::string& name) const;
  const std::map<std::string, QuotaLimits>& dataset_limits() const { return dataset_limits_; }

 private:
  using Digest = std::array<uint8_t, 32>;
  struct Entry {
    Principal principal;
    bool has_digest = false;
    Digest digest{};
    std::string common_name;
  };
  /// Records a mistake for each name whose entries have different limits, and gives the limits to all of
  /// them.
  void SpreadLimits(JsonFields& fields);

  std::vector<Entry> entries_;
  std::map<std::string, QuotaLimits> dataset_limits_;
  std::map<std::string, Quota*, std::less<>> dataset_quotas_;
};

/// The list of callers that is in force. Without a file everybody may do everything. Thread-safe, but for
/// Refresh, which one thread calls.
class Access {
 public:
  /// Reads the file; an empty path means that there is no list. UNAVAILABLE if the file cannot be read,
  /// INVALID_ARGUMENT if it has mistakes.
  static absl::StatusOr<std::unique_ptr<Access>> Open(std::filesystem::path file);

  /// Reads the file again if it has changed. A list with mistakes is refused: the last good list stays in
  /// force, as it does while the file is missing or cannot be read. Each of these is logged once.
  void Refresh();

  /// Returns the caller; null where there is no list, and everybody may do everything. UNAUTHENTICATED if the
  /// list does not have it.
  ///
  /// authorization  The value of the header of that name, "Bearer TOKEN"; empty: there was none.
  /// common_name    The common name of the client's certificate, which the TLS handshake has verified; empty:
  ///                there was none. Looked at only without a token.
  absl::StatusOr<std::shared_ptr<const Principal>> Identify(std::string_view authorization,
                                                            std::string_view common_name) const;

  /// Returns a number that changes with the list; never 0.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Returns whether there is no list.
  bool open_to_all() const { return file_.empty(); }

  /// Returns the share of the caller of this name: always the same one, whatever the list becomes. It lives
  /// as long as this.
  CallerShare& ShareOf(const std::string& name);
  /// Returns the share of all callers without a name.
  CallerShare& nobody() { return nobody_; }
  /// Tells how many calls were turned away by the limits of each caller and dataset that has had any.
  void Describe(MetricsSink& sink) const;
  /// Returns the bytes that all callers together have in flight.
  size_t BytesInFlight() const;

 private:
  explicit Access(std::filesystem::path file);
  absl::Status Load();
  /// Sets the limits of the list, and takes away those that it does not have any more.
  void SetLimits(const AccessList& list);

  const std::filesystem::path file_;
  // Touched by Open and Refresh only.
  std::optional<FileState> loaded_;
  // The state of the file (nothing: it was missing) whose refusal was logged last; nothing after a success.
  std::optional<std::optional<FileState>> told_;
  Snapshot<AccessList> list_;
  std::atomic<uint64_t> version_{1};
  CallerShare nobody_{""};
  mutable Mutex mutex_;
  // Only grows, by one entry for each name, so that references to its values stay good.
  std::map<std::string, CallerShare> shares_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Quota> dataset_quotas_ ABSL_GUARDED_BY(mutex_);  // the same, by dataset
};

/// Returns the token's SHA-256 in hexadecimal digits, as its entry in the file has it.
std::string TokenDigest(std::string_view token);

/// Returns a report of the dataset that the caller may read. Empty: there is none, or it may read all.
std::string ReadableReport(const Principal* principal, std::string_view dataset);

/// Returns PERMISSION_DENIED unless the caller has the right on the dataset, or on this report of it. Null
/// has all rights.
///
/// report  Empty: none.
absl::Status CheckRight(const Principal* principal, std::string_view dataset, Right right,
                        std::string_view report = {});

/// Counts a call against the limit of a dataset beside the one that the call was admitted for.
/// RESOURCE_EXHAUSTED if it is reached.
absl::Status TakeFurtherCall(const Principal* principal, std::string_view dataset);

}  // namespace kvstore::server
