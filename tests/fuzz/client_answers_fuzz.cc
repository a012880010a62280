#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/reports.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore/v1/reports.pb.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/connect.h"
#include "tests/fuzz/made_message.h"

/// A client whose server may answer anything: each call ends, and returns as many results as were asked for.
/// Inputs may run on several threads at once.
namespace {

using namespace kvstore;

/// The answers made from one input, as they are needed.
struct Script {
  Mutex mutex;
  kvstore::testing::Choices choices ABSL_GUARDED_BY(mutex){nullptr, 0};
};

std::atomic<uint64_t> messages_made{0};

class Answers final : public grpc::ServerGenericBidiReactor {
 public:
  Answers(const std::string& method, Script& script) {
    // "/kvstore.v1.KVStore/GetRow"
    std::string name = method.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    const auto* described = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
    const MutexLock lock(script.mutex);
    kvstore::testing::Choices& choices = script.choices;
    if (described == nullptr) {
      end_ = {grpc::StatusCode::UNIMPLEMENTED, "none"};
    } else if (described->name() == "GetServer") {
      v1::GetServerResponse server;
      server.set_instance("fuzzed");
      messages_.push_back(Bytes(server.SerializeAsString()));
    } else {
      const size_t count = described->server_streaming() ? choices.Below(6) : 1;
      while (messages_.size() < count && !choices.empty()) {
        const std::unique_ptr<google::protobuf::Message> message(
            google::protobuf::MessageFactory::generated_factory()
                ->GetPrototype(described->output_type())
                ->New());
        kvstore::testing::Fill(*message, choices);
        messages_.push_back(Bytes(message->SerializeAsString()));
      }
      // The client repeats a call after some of the codes, until its deadline; at the end there are none of
      // these.
      const auto code = static_cast<grpc::StatusCode>(choices.Below(17));
      if (messages_.empty() || choices.empty()) {
        end_ = {grpc::StatusCode::INVALID_ARGUMENT, "enough"};
      } else if (choices.Below(4) == 0) {
        end_ = {code, choices.Text(true)};
      }
    }
    messages_made += messages_.size();
    StartRead(&request_);
  }

 private:
  static grpc::ByteBuffer Bytes(const std::string& text) {
    const grpc::Slice slice(text);
    return {&slice, 1};
  }
  void OnReadDone(bool /*ok*/) override { Next(); }
  void OnWriteDone(bool ok) override { ok ? Next() : Finish(end_); }
  void OnDone() override { delete this; }
  void Next() {
    if (sent_ == messages_.size()) return Finish(end_);
    StartWrite(&messages_[sent_++]);
  }

  grpc::ByteBuffer request_;
  std::vector<grpc::ByteBuffer> messages_;
  size_t sent_ = 0;
  grpc::Status end_;
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(Script& script) : script_(script) {}

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Answers(context->method(), script_);
  }

  Script& script_;
};

/// A server that answers by a script, and a client of it.
struct Pair {
  Pair() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service);
    server = builder.BuildAndStart();
    client = *Connect("127.0.0.1:" + std::to_string(port));
  }

  Script script;
  Service service{script};
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<KVStore> client;
};

template <typename T>
void ExpectAsMany(const absl::StatusOr<std::vector<T>>& results, size_t count) {
  if (results.ok() && results->size() != count) std::abort();
}

void Scan(KVStore& store) {
  const auto cursor = store.ScanRows("r", {}, {});
  if (!cursor.ok()) return;
  ScannedRow row;
  for (;;) {
    const auto more = (*cursor)->Next(row);
    if (!more.ok() || !*more) return;
    if ((*cursor)->marker().size() > (size_t{64} << 20)) std::abort();
  }
}

/// The calls on reports by their numbers.
void CallReports(KVStore& store, size_t which) {
  const auto reports = client::OpenReports(store, "reports");
  const std::string name = "r";
  switch (which) {
    case 0:
      return reports->Create({.name = name}).IgnoreError();
    case 1:
      return reports->List().status().IgnoreError();
    case 2: {
      const auto info = reports->Info(name, {"m"});
      // The answer is used to check points, and must not make that crash.
      if (!info.ok() || info->metrics.empty()) return;
      reports::Batch batch(*info);
      const std::vector<std::optional<std::string_view>> segments(info->keys.size(), "v");
      if (!batch.Add(0, 0, segments, reports::Number::Integer(1)).ok()) return;
      return reports->Write(batch, {}).status().IgnoreError();
    }
    case 3:
      return reports->Describe(name, std::nullopt).status().IgnoreError();
    case 4: {
      const auto result = reports->Run({.report = name, .metrics = {{.name = "m"}}, .group_by = {"c"}});
      if (!result.ok()) return;
      for (const auto& series : result->series) {
        if (series.segments.size() != 1) std::abort();
      }
      return;
    }
    case 5:
      return reports->Delete(name, {"m"}, {0, 1}).status().IgnoreError();
    default:
      return reports->Compact(name).status().IgnoreError();
  }
}

void Call(KVStore& store, size_t which) {
  constexpr size_t kMany = 3;
  const CellWrite cell{"c", "v", 1};
  const std::vector<RowRead> reads(kMany, {"row", {}});
  const std::vector<RowWrite> writes(kMany, {"row", {&cell, 1}, {}});
  const std::vector<RowDelete> deletes(kMany, {"row", {}});
  const std::vector<uint64_t> ids(kMany, 1);
  switch (which) {
    case 0:
      return store.CreateDataset({.name = "r"}).IgnoreError();
    case 1:
      return store.GetDataset("r").status().IgnoreError();
    case 2:
      return store.ListDatasets().status().IgnoreError();
    case 3:
      return store.GetStats("r").status().IgnoreError();
    case 4:
      return store.Compact("r", [](uint64_t, uint64_t) { return true; }).status().IgnoreError();
    case 5: {
      const auto row = store.GetRow("r", "row", {.limit = 2});
      if (row.ok() && row->items.size() > 2) std::abort();
      return;
    }
    case 6:
      return store.PutRow("r", "row", {&cell, 1}, {}).status().IgnoreError();
    case 7:
      return store.DeleteRow("r", "row", {}).IgnoreError();
    case 8:
      return ExpectAsMany(store.GetRows("r", reads), kMany);
    case 9:
      return ExpectAsMany(store.PutRows("r", writes), kMany);
    case 10:
      return ExpectAsMany(store.DeleteRows("r", deletes), kMany);
    case 11:
      return Scan(store);
    case 12:
      return store.ListPartitions("r", 4).status().IgnoreError();
    case 13:
      return store.CreateObject("o", "{}", {}).status().IgnoreError();
    case 14: {
      const auto object = store.GetObject("o", 1, {});
      if (object.ok() && object->id != 1) std::abort();
      return;
    }
    case 15:
      return ExpectAsMany(store.GetObjects("o", ids, {}), kMany);
    case 16:
      return store.PatchObject("o", 1, "{}", {}).status().IgnoreError();
    case 17:
      return store.UpdateObject("o", 1, [](std::string_view) { return std::string("{}"); }, {})
          .status()
          .IgnoreError();
    case 18:
      return store.DeleteObject("o", 1, true).IgnoreError();
    case 19:
      return store.AddMapping("m", 1, 2, std::nullopt).IgnoreError();
    case 20:
      return store.RemoveMapping("m", 1, 2).status().IgnoreError();
    case 21: {
      const auto page = store.ListMapping("m", 1, {.limit = 2});
      if (page.ok() && page->entries.size() > 2) std::abort();
      return;
    }
    case 22:
      return store.CountMapping("m", 1).status().IgnoreError();
    case 23:
      return store.ListObjects("m", 1, {.limit = 2}).status().IgnoreError();
    case 31: {
      const auto page = store.ScanObjects("o", {5, 500}, {.limit = 2});
      if (!page.ok()) return;
      if (page->objects.size() > 2) std::abort();
      for (const Object& object : page->objects) {
        if (object.id < 5 || object.id >= 500) std::abort();
      }
      return;
    }
    case 32: {
      const auto page = store.ScanMappings("m", {5, 500}, {.limit = 2});
      if (page.ok() && page->entries.size() > 2) std::abort();
      return;
    }
    case 33: {
      const auto page = store.ReadChanges("r", kChangesFromBegin, {.limit = 2});
      if (page.ok() && (page->changes.size() > 2 || page->token.empty())) std::abort();
      return;
    }
    case 34: {
      const auto stream = store.WatchChanges("r", kChangesFromBegin);
      if (!stream.ok()) return;
      const auto page = (*stream)->Next();
      if (!page.ok() || page->token.empty()) std::abort();
      return;
    }
    case 35:
      return store.ListConsumers("r").status().IgnoreError();
    case 36:
      return store.SetConsumer("r", "search", kChangesFromNow).IgnoreError();
    default:
      return CallReports(store, which - 24);
  }
}

}  // namespace

/// In place of libc's: a client that repeats a call pauses before, and the time of most inputs would be
/// pauses.
extern "C" int nanosleep(const timespec* /*time*/, timespec* /*left*/) { return 0; }

/// The first byte chooses the call; the others make its answers.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kKinds = 37;
  static const int counted = std::atexit(
      [] { std::fprintf(stderr, "%llu messages\n", static_cast<unsigned long long>(messages_made)); });
  static_cast<void>(counted);
  thread_local Pair pair;
  size_t which = 0;
  {
    const MutexLock lock(pair.script.mutex);
    pair.script.choices = kvstore::testing::Choices(data, size);
    which = pair.script.choices.Below(kKinds);
  }
  // Where a message cannot be parsed, gRPC lets the call wait for its deadline. A busy machine takes longer
  // than that, but not for ever.
  const auto begun = std::chrono::steady_clock::now();
  const CallScope scope(std::chrono::milliseconds(50));
  Call(*pair.client, which);
  if (std::chrono::steady_clock::now() - begun > std::chrono::seconds(10)) std::abort();
  return 0;
}
