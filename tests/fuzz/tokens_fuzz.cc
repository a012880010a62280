#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/call/access.h"

using namespace kvstore;

/// Any bytes as a list of tokens are refused with a reason, or give a list that knows nobody by an empty
/// token or an empty common name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto list = server::AccessList::Parse(text);
  if (!list.ok()) {
    if (!absl::IsInvalidArgument(list.status()) || list.status().message().empty()) std::abort();
    return 0;
  }
  if (list->FindToken("") != nullptr || list->FindCommonName("") != nullptr) std::abort();
  for (const server::Principal* found :
       {list->FindToken(text), list->FindToken("token"), list->FindCommonName("ops")}) {
    if (found == nullptr) continue;
    // Each right includes the ones before it.
    for (const std::string_view dataset : {"", "rows", "events"}) {
      bool allowed = true;
      for (const auto right : {server::Right::kRead, server::Right::kWrite, server::Right::kAdmin}) {
        const bool next = server::CheckRight(found, dataset, right).ok();
        if (next && !allowed) std::abort();
        allowed = next;
      }
    }
  }
  return 0;
}
