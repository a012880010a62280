#include "kvstore_api/in_doubt.h"

#include "absl/strings/cord.h"

namespace kvstore {
namespace {

constexpr char kPayload[] = "kvstore/in-doubt";

}  // namespace

absl::Status MarkInDoubt(absl::Status status) {
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

bool IsInDoubt(const absl::Status& status) { return status.GetPayload(kPayload).has_value(); }

}  // namespace kvstore
