#include "kvstore_api/in_doubt.h"

#include "absl/strings/cord.h"

namespace kvstore {

bool IsInDoubt(const absl::Status& status) { return status.GetPayload(kInDoubtPayload).has_value(); }

}  // namespace kvstore
