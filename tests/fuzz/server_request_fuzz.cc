#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/call/access.h"
#include "server/grpc/handlers.h"
#include "tests/fuzz/fuzz_store.h"

namespace {

using namespace kvstore;

/// The most bytes that an answer may have on the wire.
constexpr size_t kMaxAnswer = size_t{12} << 20;

template <typename Request, typename Response>
void Unary(const std::string& bytes) {
  Request request;
  if (!request.ParseFromString(bytes)) return;
  Response response;
  server::Handle(kvstore::testing::FuzzStore(), request, response).IgnoreError();
  if (response.ByteSizeLong() > kMaxAnswer) std::abort();
}

/// arguments  What the method needs beside the store and the request.
template <typename Request, typename Response, auto... arguments>
void Stream(const std::string& bytes) {
  Request request;
  if (!request.ParseFromString(bytes)) return;
  const auto produce = server::Produce(kvstore::testing::FuzzStore(), request, arguments()...);
  // Every stream ends: it has no more messages than entries that were asked for, or that are stored.
  for (int i = 0; i < 100'000; ++i) {
    Response response;
    const auto more = produce(response, nullptr);
    if (response.ByteSizeLong() > kMaxAnswer) std::abort();
    if (!more.ok() || !*more) return;
  }
  std::abort();
}

server::ReserveBytes Room() {
  return [](size_t bytes) { return std::make_shared<size_t>(bytes); };
}
reports::QueryLimits FewSteps() { return {.max_steps = 1'000, .max_memory_bytes = size_t{8} << 20}; }
std::function<bool(const std::string&)> All() {
  return [](const std::string&) { return true; };
}

constexpr std::array kMethods = {
    &Unary<v1::AlterDatasetRequest, v1::AlterDatasetResponse>,
    &Unary<v1::GetDatasetRequest, v1::GetDatasetResponse>,
    &Unary<v1::ListDatasetsRequest, v1::ListDatasetsResponse>,
    &Unary<v1::GetStatsRequest, v1::GetStatsResponse>,
    &Unary<v1::ReadChangesRequest, v1::ReadChangesResponse>,
    &Unary<v1::GetRowRequest, v1::GetRowResponse>,
    &Unary<v1::PutRowRequest, v1::PutRowResponse>,
    &Unary<v1::DeleteRowRequest, v1::DeleteRowResponse>,
    &Unary<v1::PutRowsRequest, v1::PutRowsResponse>,
    &Unary<v1::DeleteRowsRequest, v1::DeleteRowsResponse>,
    &Unary<v1::ListPartitionsRequest, v1::ListPartitionsResponse>,
    &Unary<v1::CreateObjectRequest, v1::CreateObjectResponse>,
    &Unary<v1::GetObjectRequest, v1::GetObjectResponse>,
    &Unary<v1::UpdateObjectRequest, v1::UpdateObjectResponse>,
    &Unary<v1::DeleteObjectRequest, v1::DeleteObjectResponse>,
    &Unary<v1::AddMappingRequest, v1::AddMappingResponse>,
    &Unary<v1::RemoveMappingRequest, v1::RemoveMappingResponse>,
    &Unary<v1::ListMappingRequest, v1::ListMappingResponse>,
    &Unary<v1::CountMappingRequest, v1::CountMappingResponse>,
    &Unary<v1::ListObjectsRequest, v1::ListObjectsResponse>,
    &Stream<v1::GetRowsRequest, v1::GetRowsResponse>,
    &Stream<v1::GetObjectsRequest, v1::GetObjectsResponse>,
    &Stream<v1::ScanRowsRequest, v1::ScanRowsResponse>,
    &Unary<v1::AlterReportRequest, v1::AlterReportResponse>,
    &Unary<v1::WritePointsRequest, v1::WritePointsResponse>,
    &Unary<v1::DeletePointsRequest, v1::DeletePointsResponse>,
    &Stream<v1::ListReportsRequest, v1::ListReportsResponse, All>,
    &Stream<v1::GetReportRequest, v1::GetReportResponse, Room>,
    &Stream<v1::QueryReportRequest, v1::QueryReportResponse, FewSteps, Room>,
    &Unary<v1::ScanObjectsRequest, v1::ScanObjectsResponse>,
    &Unary<v1::ScanMappingsRequest, v1::ScanMappingsResponse>,
    &Unary<v1::SetConsumerRequest, v1::SetConsumerResponse>,
    &Unary<v1::ListConsumersRequest, v1::ListConsumersResponse>,
    &Unary<v1::DropConsumerRequest, v1::DropConsumerResponse>,
};

}  // namespace

/// The first byte chooses the method; the rest is its request as it comes from the wire, or a list of tokens.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] < kMethods.size()) {
    kMethods[data[0]](bytes);
  } else if (data[0] == kMethods.size()) {
    server::AccessList::Parse(bytes).status().IgnoreError();
  }
  return 0;
}
