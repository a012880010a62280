#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "server/call/access.h"
#include "server/call/quota.h"

namespace kvstore::server {

/// Counts one call against the limits of its caller and of its dataset. The quotas are Access's, and must
/// outlive this. Externally synchronised.
class CallQuotas {
 public:
  CallQuotas() = default;
  ~CallQuotas() { Release(); }
  CallQuotas(const CallQuotas&) = delete;
  CallQuotas& operator=(const CallQuotas&) = delete;

  /// Finds the quotas that count from now on; none for null. A call in flight stays counted where it is.
  void Find(const Principal* principal, std::string_view dataset);
  /// Counts the call in, until Release, and the bytes of its request. RESOURCE_EXHAUSTED, with RetryAfter, if
  /// a limit is reached; then nothing is counted, in none of them.
  absl::Status Admit(size_t bytes);
  /// The call is not in flight any more. If Admit has refused it, it has ended with that, and is counted.
  void End();
  /// Counts further bytes.
  void Take(size_t bytes);
  /// Returns whether the limits of bytes a second let a stream go on now.
  bool MaySend() const;

 private:
  void Release();
  absl::Status Refuse(Quota& quota, const Quota::Refusal& refusal);

  std::array<Quota*, 2> quotas_{};     // of the caller and of the dataset; null: there is none
  std::array<Quota*, 2> in_flight_{};  // those that count the call
  std::optional<std::pair<Quota*, Quota::Limit>> refused_by_;
};

}  // namespace kvstore::server
