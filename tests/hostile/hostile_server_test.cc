#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend_api/marker.h"
#include "backend_api/outcome.h"
#include "backends/remote/backend.h"
#include "backends/remote/stores.h"
#include "client/multiplexed_stream.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/connect.h"
#include "tests/hostile/hostile.h"
#include "tests/support/status_matchers.h"
#include "wire/convert.h"
#include "wire/packed_rows.h"

/// A server whose answers do not fit the requests. Its clients, and servers whose backend it is, report that
/// and go on.
namespace kvstore {
namespace {

using testing::FailsWith;
using testing::Hostile;
using testing::Results;

constexpr auto kInternal = absl::StatusCode::kInternal;
constexpr auto kMany = 200'000;

const CellWrite kCell{"c", "v", 1};
const std::string kValue(3'000'000, 'v');
const CellWrite kLarge{"c", kValue, 1};

class HostileServer : public ::testing::Test {
 protected:
  /// Reads all of a scan, and returns how it ends.
  absl::Status ScanAll() {
    const auto cursor = store_->ScanRows("d", {}, {});
    if (!cursor.ok()) return cursor.status();
    ScannedRow row;
    for (;;) {
      const auto more = (*cursor)->Next(row);
      if (!more.ok()) return more.status();
      if (!*more) return absl::OkStatus();
    }
  }

  Hostile server_;
  const std::unique_ptr<KVStore> store_ = server_.Client();
};

// ---- counts ----

TEST_F(HostileServer, AnswersToABatchOfReadsAreAsManyAsWereAskedFor) {
  for (const int count : {0, 3, kMany}) {
    server_.get_rows = [count](auto& stream) { stream.Write(Results<v1::GetRowsResponse>(count)); };
    server_.get_objects = [count](auto& stream) { stream.Write(Results<v1::GetObjectsResponse>(count)); };
    const std::vector<RowRead> reads(2, {"r", {}});
    EXPECT_THAT(store_->GetRows("d", reads).status(), FailsWith(kInternal, "answered")) << count;
    const std::vector<uint64_t> ids(2, 1);
    EXPECT_THAT(store_->GetObjects("d", ids, {}).status(), FailsWith(kInternal, "answered")) << count;
  }
}

TEST_F(HostileServer, MessagesThatBringNothingAreNotTakenForEver) {
  server_.get_rows = [](auto& stream) {
    while (stream.Write({})) {
    }
  };
  server_.get_objects = [](auto& stream) {
    while (stream.Write({})) {
    }
  };
  server_.scan_rows = [](auto& stream) {
    while (stream.Write({})) {
    }
  };
  const RowRead read{"r", {}};
  EXPECT_THAT(store_->GetRows("d", {&read, 1}).status(), FailsWith(kInternal, "without entries"));
  const uint64_t id = 1;
  EXPECT_THAT(store_->GetObjects("d", {&id, 1}, {}).status(), FailsWith(kInternal, "without entries"));
  EXPECT_THAT(ScanAll(), FailsWith(kInternal, "without rows"));
}

TEST_F(HostileServer, AScanThatBreaksOffAndBringsNothingIsGivenUp) {
  // Every attempt seems to begin.
  std::atomic<int> streams{0};
  server_.scan_rows = [&](auto& stream) {
    ++streams;
    stream.Write({});
    while (stream.Write({})) {
    }
  };
  EXPECT_THAT(ScanAll(), FailsWith(kInternal, "without rows"));
  EXPECT_EQ(streams, 1);
}

TEST_F(HostileServer, AScanTakesRowsInBothForms) {
  v1::ScanRowsResponse packed;
  packed.set_marker("1");
  wire::AddRow("a", {{"c", {{1, "v"}}}}, *packed.mutable_packed());
  wire::AddRow("b", {{"c", {{1, "v"}}}}, *packed.mutable_packed());
  // As servers send it that know no other form, and this one for large rows.
  v1::ScanRowsResponse rows;
  rows.set_marker("2");
  rows.add_rows()->set_key("c");
  // By value, because the server may still write when the client has seen enough.
  const auto both = [&] {
    return [packed, rows](auto& stream) {
      stream.Write(packed);
      stream.Write(rows);
    };
  };
  server_.scan_rows = both();
  ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("d", {}, {}));
  ScannedRow row;
  std::string keys;
  while (*cursor->Next(row)) keys += row.key;
  EXPECT_EQ(keys, "abc");
  // A message has one of the forms.
  *packed.mutable_rows() = rows.rows();
  server_.scan_rows = both();
  EXPECT_THAT(ScanAll(), FailsWith(kInternal, "two forms"));
}

TEST_F(HostileServer, PackedRowsThatDoNotFitTogetherEndAScanBehindThoseThatDo) {
  v1::ScanRowsResponse packed;
  wire::AddRow("a", {{"c", {{1, "v"}}}}, *packed.mutable_packed());
  wire::AddRow("b", {{"c", {{1, "v"}}}}, *packed.mutable_packed());
  packed.mutable_packed()->set_key_bytes(1, 3);
  server_.scan_rows = [packed](auto& stream) { stream.Write(packed); };
  ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("d", {}, {}));
  ScannedRow row;
  ASSERT_TRUE(*cursor->Next(row));
  EXPECT_EQ(row.key, "a");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(cursor->Next(row).status(), FailsWith(kInternal, "fit together")) << i;
  }
}

TEST_F(HostileServer, ACallScopeEndsAScanThatHasNoEnd) {
  server_.scan_rows = [](auto& stream) {
    v1::ScanRowsResponse rows;
    rows.add_rows()->set_key("r");
    rows.mutable_rows(0)->set_continues(true);
    while (stream.Write(rows)) {
    }
  };
  const CallScope scope(std::chrono::milliseconds(100));
  const auto cursor = store_->ScanRows("d", {}, {});
  ScannedRow row;
  absl::Status status = cursor.status();
  while (status.ok()) status = (*cursor)->Next(row).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
}

TEST_F(HostileServer, ACallScopeEndsTheWaitOfAScanThatWasOpenedWithoutOne) {
  std::promise<void> ended;
  const auto end = ended.get_future().share();
  std::atomic<int> streams{0};
  server_.scan_rows = [&streams, end](auto& stream) {
    v1::ScanRowsResponse rows;
    rows.add_rows()->set_key(++streams == 1 ? "a" : "b");
    stream.Write(rows);
    end.wait_for(std::chrono::seconds(30));
  };
  ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("d", {}, {}));
  ScannedRow row;
  ASSERT_TRUE(*cursor->Next(row));
  {
    const CallScope scope(std::chrono::milliseconds(100));
    EXPECT_THAT(cursor->Next(row).status(), FailsWith(absl::StatusCode::kDeadlineExceeded, "the call's"));
  }
  // The next call goes on, over a stream of its own.
  ASSERT_OK_AND_ASSIGN(const bool more, cursor->Next(row));
  EXPECT_TRUE(more);
  EXPECT_EQ(row.key, "b");
  ended.set_value();
}

TEST_F(HostileServer, AnswersToABatchOfWritesAreAsManyAsWereSent) {
  for (const int count : {0, 3, kMany}) {
    server_.put_rows = [&](auto&, auto& answer) { answer = Results<v1::PutRowsResponse>(count); };
    server_.delete_rows = [&](auto&, auto& answer) { answer = Results<v1::DeleteRowsResponse>(count); };
    const std::vector<RowWrite> writes(2, {"r", {&kCell, 1}, {}});
    const absl::Status put = store_->PutRows("d", writes).status();
    EXPECT_THAT(put, FailsWith(kInternal, "answered")) << count;
    EXPECT_TRUE(IsInDoubt(put)) << "it may have written them";
    const std::vector<RowDelete> deletes(2, {"r", {}});
    const absl::Status deleted = store_->DeleteRows("d", deletes).status();
    EXPECT_THAT(deleted, FailsWith(kInternal, "answered")) << count;
    EXPECT_TRUE(IsInDoubt(deleted)) << "it may have deleted them";
  }
}

TEST_F(HostileServer, AnAnswerThatDoesNotFitKeepsWhatWasDeletedBefore) {
  std::atomic<int> messages{0};
  server_.delete_rows = [&](auto&, auto& answer) {
    answer = Results<v1::DeleteRowsResponse>(++messages == 1 ? 2'000 : 1);
  };
  const std::vector<RowDelete> deletes(6'000, {"r", {}});
  ASSERT_OK_AND_ASSIGN(const auto results, store_->DeleteRows("d", deletes));
  EXPECT_EQ(messages, 2) << "the third message is not sent";
  EXPECT_OK(results[1'999]);
  EXPECT_THAT(results[2'000], FailsWith(kInternal, "fewer entries"));
  EXPECT_TRUE(IsInDoubt(results[2'000]) && IsInDoubt(results[3'999]));
  EXPECT_THAT(results[4'000], FailsWith(absl::StatusCode::kUnavailable, "not sent"));
  EXPECT_FALSE(IsInDoubt(results[4'000]));
}

TEST_F(HostileServer, EachMessageOfAnImportHasItsAnswer) {
  for (const int count : {0, 2, kMany}) {
    server_.import_rows = [count](Hostile::Import& stream) {
      v1::PutRowsRequest request;
      while (stream.Read(&request) && stream.Write(Results<v1::PutRowsResponse>(count))) {
      }
    };
    // More entries than fit into one message.
    const std::vector<RowWrite> writes(5, {"r", {&kLarge, 1}, {}});
    const absl::Status status = store_->PutRows("d", writes).status();
    EXPECT_THAT(status, FailsWith(kInternal, "entries than were sent")) << count;
    EXPECT_TRUE(IsInDoubt(status)) << "it may have written them";
  }
}

// ---- pages ----

TEST_F(HostileServer, APageThatDoesNotGoOnIsAnError) {
  server_.get_row = [](auto&, auto& answer) {
    answer.add_items()->add_cells();
    answer.set_marker("same");
  };
  EXPECT_OK(store_->GetRow("d", "r", {}).status());
  EXPECT_THAT(store_->GetRow("d", "r", {.marker = "same"}).status(), FailsWith(kInternal, "does not go on"));
  server_.get_row = [](auto&, auto& answer) { answer.set_marker("same"); };
  EXPECT_THAT(store_->GetRow("d", "r", {.marker = "same"}).status(), FailsWith(kInternal, "does not go on"));
  EXPECT_OK(store_->GetRow("d", "r", {.marker = "other"}).status()) << "much was deleted there";
  server_.list_mapping = [](auto&, auto& answer) { answer.set_marker("other"); };
  EXPECT_THAT(store_->ListMapping("d", 1, {}).status(), FailsWith(kInternal, "does not go on"));
  server_.list_objects = [](auto&, auto& answer) { answer.set_marker("other"); };
  EXPECT_THAT(store_->ListObjects("d", 1, {}).status(), FailsWith(kInternal, "does not go on"));
}

TEST_F(HostileServer, APageHasNoMoreThanItsLimit) {
  server_.get_row = [](auto&, auto& answer) {
    for (int i = 0; i < 3; ++i) answer.add_items()->add_cells();
  };
  EXPECT_THAT(store_->GetRow("d", "r", {.limit = 2}).status(), FailsWith(kInternal, "more entries"));
  EXPECT_OK(store_->GetRow("d", "r", {.limit = 3}).status());
  server_.list_mapping = [](auto&, auto& answer) {
    for (int i = 0; i < 3; ++i) answer.add_entries();
  };
  EXPECT_THAT(store_->ListMapping("d", 1, {.limit = 2}).status(), FailsWith(kInternal, "more entries"));
  server_.list_objects = [](auto&, auto& answer) { answer = Results<v1::ListObjectsResponse>(3); };
  EXPECT_THAT(store_->ListObjects("d", 1, {.limit = 2}).status(), FailsWith(kInternal, "more entries"));
}

TEST_F(HostileServer, APageOfAScanHasItsRangeAndItsOrder) {
  for (const std::vector<uint64_t>& ids : {std::vector<uint64_t>{4}, {20}, {7, 7}, {8, 7}}) {
    server_.scan_objects = [&](auto&, auto& answer) {
      for (const uint64_t id : ids) answer.add_objects()->set_id(id);
    };
    EXPECT_THAT(store_->ScanObjects("d", {5, 20}, {}).status(), FailsWith(kInternal, "range or order"));
    server_.scan_mappings = [&](auto&, auto& answer) {
      for (const uint64_t id : ids) answer.add_entries()->set_from(id);
    };
    EXPECT_THAT(store_->ScanMappings("d", {5, 20}, {}).status(), FailsWith(kInternal, "range or order"));
  }
  server_.scan_objects = [](auto&, auto& answer) {
    answer.add_objects()->set_id(5);
    answer.add_objects()->set_id(19);
    answer.set_marker("same");
  };
  EXPECT_OK(store_->ScanObjects("d", {5, 20}, {.limit = 2}).status());
  EXPECT_THAT(store_->ScanObjects("d", {5, 20}, {.limit = 1}).status(), FailsWith(kInternal, "more entries"));
  EXPECT_THAT(store_->ScanObjects("d", {5, 20}, {.marker = "same"}).status(),
              FailsWith(kInternal, "does not go on"));
  server_.scan_mappings = [](auto&, auto& answer) { answer.set_marker("same"); };
  EXPECT_OK(store_->ScanMappings("d", {}, {.marker = "other"}).status()) << "much was removed there";
  EXPECT_THAT(store_->ScanMappings("d", {}, {.marker = "same"}).status(),
              FailsWith(kInternal, "does not go on"));
}

// ---- answers about something else ----

TEST_F(HostileServer, AnotherObjectOrDatasetIsNoAnswer) {
  const auto other = [](auto&, auto& answer) { answer.mutable_object()->set_id(2); };
  server_.get_object = other;
  server_.update_object = other;
  EXPECT_THAT(store_->GetObject("d", 1, {}).status(), FailsWith(kInternal, "another object"));
  const absl::Status patched = store_->PatchObject("d", 1, "{}", {}).status();
  EXPECT_THAT(patched, FailsWith(kInternal, "another object"));
  EXPECT_TRUE(IsInDoubt(patched)) << "it may have changed the object";
  server_.get_objects = [](auto& stream) {
    auto results = Results<v1::GetObjectsResponse>(2);
    for (auto& result : *results.mutable_results()) result.mutable_object()->set_id(2);
    stream.Write(results);
  };
  const std::vector<uint64_t> ids = {1, 2};
  ASSERT_OK_AND_ASSIGN(const auto objects, store_->GetObjects("d", ids, {}));
  EXPECT_THAT(objects[0].status(), FailsWith(kInternal, "another object"));
  EXPECT_OK(objects[1].status());
  server_.get_dataset = [](auto&, auto& answer) { answer.mutable_dataset()->set_name("other"); };
  EXPECT_THAT(store_->GetDataset("d").status(), FailsWith(kInternal, "another dataset"));
}

TEST_F(HostileServer, ATransformIsNotAppliedAgainToAnUpdateThatMayHaveHappened) {
  server_.get_object = [](auto&, auto& answer) { answer.mutable_object()->set_id(1); };
  // The update may have happened, so that the timestamp may be its own.
  server_.update_object = [](grpc::ServerContext& context, auto&) {
    context.AddTrailingMetadata(wire::kOutcome, wire::kInDoubt);
  };
  server_.update_end = {grpc::StatusCode::FAILED_PRECONDITION, "it has another timestamp"};
  int transforms = 0;
  const ObjectTransform count = [&](std::string_view) -> absl::StatusOr<std::string> {
    ++transforms;
    return "{}";
  };
  const CallScope scope(std::chrono::seconds(5));
  const absl::Status status = store_->UpdateObject("d", 1, count, {}).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kFailedPrecondition, "another timestamp"));
  EXPECT_TRUE(IsInDoubt(status));
  EXPECT_EQ(transforms, 1);
}

TEST_F(HostileServer, WhatItCompressedIsNotTaken) {
  server_.get_row = [](grpc::ServerContext& context, auto& answer) {
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    answer.set_marker(std::string(100'000'000, '\0'));
  };
  // Either the header is refused or the message does not decode. An error with the unpacked size would show
  // that it was unpacked.
  const absl::Status status = store_->GetRow("d", "r", {}).status();
  EXPECT_TRUE(absl::IsUnimplemented(status) || absl::IsInternal(status)) << status;
}

// ---- streams of calls ----

TEST_F(HostileServer, AnAnswerToACallThatWasNotSentIsNone) {
  // The first call is sent, and the second one waits, because the server does not take up the first message.
  std::atomic<bool> first_came{false};
  server_.calls = [&](Hostile::MultiplexedStream& stream) -> grpc::Status {
    v1::CallsRequest request;
    stream.Read(&request);
    first_came = true;
    first_came.notify_all();
    v1::CallsResponse response;
    response.add_answers()->set_number(2);
    for (int i = 0; i < 20'000; ++i) stream.Write(response);
    return {grpc::StatusCode::UNAVAILABLE, "enough"};
  };
  const auto channel = grpc::CreateChannel(server_.address(), grpc::InsecureChannelCredentials());
  client::MultiplexedStream stream(*channel, {});
  v1::Call get;
  get.mutable_get_row()->set_row("r");
  v1::Call second = get;
  const auto deadline = client::MultiplexedStream::Clock::now() + std::chrono::seconds(60);
  std::thread first([&] {
    v1::Answer answer;
    EXPECT_EQ(stream.Execute(get, deadline, answer).error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(answer.outcome(), "");
  });
  first_came.wait(false);
  v1::Answer answer;
  EXPECT_EQ(stream.Execute(second, deadline, answer).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(answer.outcome(), wire::kRefused) << "it was never sent";
  first.join();
}

// ---- a backend that is such a server ----

TEST_F(HostileServer, AsABackendItGivesEachEntryAnError) {
  server_.get_rows = [](auto& stream) { stream.Write(Results<v1::GetRowsResponse>(kMany)); };
  server_.get_objects = [](auto& stream) { stream.Write(Results<v1::GetObjectsResponse>(kMany)); };
  const DatasetSpec spec{.name = "d", .incarnation = 1};
  const std::shared_ptr<KVStore> there = server_.Client();
  remote::RemoteRowStore rows(there, spec);
  const std::vector<RowRead> reads(3, {"r", {}});
  const auto pages = rows.GetMany(reads);
  ASSERT_EQ(pages.size(), reads.size());
  for (const auto& page : pages) EXPECT_THAT(page.status(), FailsWith(kInternal, "answered more"));
  remote::RemoteObjectStore objects(there, spec);
  const std::vector<uint64_t> ids(3, 1);
  const auto found = objects.GetMany(ids, {});
  ASSERT_EQ(found.size(), ids.size());
  for (const auto& object : found) EXPECT_THAT(object.status(), FailsWith(kInternal, "answered more"));
}

TEST_F(HostileServer, AsABackendItsScansGoOnInsideOfTheirRanges) {
  const DatasetSpec spec{.name = "d", .incarnation = 1};
  const std::shared_ptr<KVStore> there = server_.Client();
  remote::RemoteObjectStore objects(there, spec);
  remote::RemoteMappingStore mappings(there, spec);
  uint64_t next = 0;
  server_.scan_objects = [&](auto&, auto& answer) { answer.set_marker(SealObjectScanMarker(1, next)); };
  server_.scan_mappings = [&](auto&, auto& answer) {
    answer.set_marker(SealMappingScanMarker(1, {.from = next}));
  };
  for (next = 6; next < 20; next += 13) {
    EXPECT_EQ(objects.Scan({5, 20}, {})->next, next);
    EXPECT_EQ(mappings.Scan({.from = 5}, 20, 10)->next, (MappingPosition{.from = next}));
  }
  for (const uint64_t stray : {uint64_t{4}, uint64_t{5}, uint64_t{20}}) {
    next = stray;
    EXPECT_THAT(objects.Scan({5, 20}, {}).status(), FailsWith(kInternal, "does not go on"));
    EXPECT_THAT(mappings.Scan({.from = 5}, 20, 10).status(), FailsWith(kInternal, "does not go on"));
  }
}

}  // namespace
}  // namespace kvstore
