#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "kvstore/v1/endpoint.pb.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore/v1/reports.pb.h"
#include "wire/message_limits.h"

using namespace kvstore;

namespace {

/// Memory that a message without entries may take in addition to its bytes, for its nested messages that are
/// not in lists.
constexpr size_t kFixed = 4096;

/// Any bytes as a request, counted and parsed, take no more memory than twice their size and what the server
/// accounts for their entries.
template <typename Request>
void Check(std::string_view bytes) {
  const auto entries = wire::CountEntries(*Request::descriptor(), bytes);
  Request request;
  if (!entries.ok() || !request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (request.SpaceUsedLong() > kFixed + 2 * bytes.size() + *entries * wire::kEntryBytes) std::abort();
}

constexpr std::array kRequests = {
    &Check<v1::GetRowRequest>,        &Check<v1::GetRowsRequest>,      &Check<v1::PutRowRequest>,
    &Check<v1::PutRowsRequest>,       &Check<v1::DeleteRowsRequest>,   &Check<v1::ScanRowsRequest>,
    &Check<v1::GetObjectsRequest>,    &Check<v1::UpdateObjectRequest>, &Check<v1::ListObjectsRequest>,
    &Check<v1::CreateDatasetRequest>, &Check<v1::CallsRequest>,        &Check<v1::EndpointRequest>,
    &Check<v1::WritePointsRequest>,   &Check<v1::QueryReportRequest>,  &Check<v1::AlterReportRequest>,
};

}  // namespace

/// The first byte chooses the request.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  kRequests.at(data[0] % kRequests.size())({reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
