#include "cli/line_loader.h"

namespace kvstore::cli {

bool IsLinesFault(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsAlreadyExists(status) ||
         absl::IsFailedPrecondition(status) || absl::IsNotFound(status);
}

}  // namespace kvstore::cli
