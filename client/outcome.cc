#include "client/outcome.h"

#include "wire/calls.h"
#include "wire/convert.h"

namespace kvstore::client {

std::string OutcomeOf(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(wire::kOutcome);
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

}  // namespace kvstore::client
