#include <google/protobuf/dynamic_message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "kvstore/v1/endpoint.pb.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore/v1/reports.pb.h"
#include "server/call/access.h"
#include "server/call/operation.h"
#include "tests/fuzz/made_message.h"
#include "tests/server/served.h"

/// A whole server: all methods, over a connection, by callers with all rights, with few, and with none.
/// Inputs may run on several threads at once.
namespace {

using namespace kvstore;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

/// The most that one input may do.
constexpr int kCalls = 8;
constexpr int kMessages = 4;
/// No stream has more answers than this in so small a store.
constexpr int kAnswers = 10'000;

struct Caller {
  std::string token;
  server::Right right = server::Right::kNone;
};
std::atomic<uint64_t> calls_made{0};
std::atomic<uint64_t> messages_sent{0};

const Caller kCallers[] = {
    {"", server::Right::kNone}, {"reader", server::Right::kRead}, {"ops", server::Right::kAdmin}};

class Fuzzed {
 public:
  Fuzzed() {
    std::atexit([] {
      std::fprintf(stderr, "%llu calls, %llu messages\n", static_cast<unsigned long long>(calls_made),
                   static_cast<unsigned long long>(messages_sent));
    });
    // The log lines of refused calls would fill the screen.
    spdlog::set_level(spdlog::level::off);
    {
      std::ofstream list(dir_ / "tokens.json");
      list << R"({"tokens": [)";
      list << R"({"name": "reader", "sha256": ")" << server::TokenDigest("reader")
           << R"(", "rights": {"*": "read"}},)";
      list << R"({"name": "ops", "sha256": ")" << server::TokenDigest("ops")
           << R"(", "rights": {"*": "admin"}}]})";
    }
    ServerOptions options = kvstore::testing::TestServerOptions();
    options.tokens = dir_ / "tokens.json";
    options.slow_ms = 0;
    served_ = std::make_unique<kvstore::testing::Served>(options);
    channel_ = grpc::CreateChannel(served_->address(), grpc::InsecureChannelCredentials());
    const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
    for (const char* service : {"kvstore.v1.KVStore", "kvstore.v1.Endpoints", "kvstore.v1.Reports"}) {
      const auto* described = pool.FindServiceByName(service);
      for (int i = 0; i < described->method_count(); ++i) methods_.push_back(described->method(i));
    }
    Mend();
  }

  const MethodDescriptor& method(size_t i) const { return *methods_.at(i); }
  size_t methods() const { return methods_.size(); }

  /// Makes the datasets "r", "o" and "m" exist, and no others.
  void Mend() {
    const MutexLock lock(mending_);
    const auto specs = served_->router().ListDatasets();
    if (!specs.ok()) std::abort();
    for (const DatasetSpec& spec : *specs) {
      const bool ours = (spec.name == "r" && spec.shape == Shape::kRows) ||
                        (spec.name == "o" && spec.shape == Shape::kObjects) ||
                        (spec.name == "m" && spec.shape == Shape::kMappings);
      if (ours) continue;
      // A call of another input may have dropped it.
      const absl::Status dropped = served_->router().DropDataset(spec.name, {});
      if (!dropped.ok() && !absl::IsNotFound(dropped)) std::abort();
    }
    for (const auto& [name, shape] :
         {std::pair("r", Shape::kRows), std::pair("o", Shape::kObjects), std::pair("m", Shape::kMappings)}) {
      if (served_->router().GetDataset(name).ok()) continue;
      const absl::Status created = served_->router().CreateDataset({.name = name, .shape = shape});
      if (!created.ok() && !absl::IsAlreadyExists(created)) std::abort();
    }
  }

  /// Sends the messages, reads all answers, and returns how the server ended the call.
  grpc::Status Make(const MethodDescriptor& method, const Caller& caller,
                    const std::vector<std::string>& messages) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    if (!caller.token.empty()) context.AddMetadata("authorization", "Bearer " + caller.token);
    grpc::GenericStub stub(channel_);
    thread_local grpc::CompletionQueue queue;
    const auto wait = [] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    const std::string path = "/" + method.service()->full_name() + "/" + method.name();
    grpc::Status status;
    // All that can be sent at once is: waiting for each part of a call would take most of the time.
    if (!method.client_streaming() && !method.server_streaming()) {
      const grpc::Slice slice(messages.at(0));
      const auto call = stub.PrepareUnaryCall(&context, path, grpc::ByteBuffer(&slice, 1), &queue);
      call->StartCall();
      grpc::ByteBuffer answer;
      call->Finish(&answer, &status, nullptr);
      wait();
      return status;
    }
    context.set_initial_metadata_corked(!messages.empty());
    const auto call = stub.PrepareCall(&context, path, &queue);
    call->StartCall(nullptr);
    bool open = !messages.empty() || wait();
    for (size_t i = 0; i < messages.size() && open; ++i) {
      const grpc::Slice slice(messages[i]);
      const grpc::ByteBuffer message(&slice, 1);
      if (i + 1 < messages.size()) {
        call->Write(message, nullptr);
      } else {
        call->WriteLast(message, grpc::WriteOptions(), nullptr);
      }
      open = wait();
    }
    if (open && messages.empty()) {
      call->WritesDone(nullptr);
      wait();
    }
    grpc::ByteBuffer answer;
    for (int answers = 0;; ++answers) {
      call->Read(&answer, nullptr);
      if (!wait()) break;
      if (answers == kAnswers) std::abort();
      // It lasts as long as its client likes.
      if (method.name() == "WatchChanges") context.TryCancel();
    }
    call->Finish(&status, nullptr);
    wait();
    return status;
  }

 private:
  const kvstore::testing::TempDir dir_;
  std::unique_ptr<kvstore::testing::Served> served_;
  std::shared_ptr<grpc::Channel> channel_;
  Mutex mending_;
  std::vector<const MethodDescriptor*> methods_;
};

server::Right RightOf(const std::string& method) {
  for (const auto& traits : server::kOperations) {
    if (traits.name == method) return traits.right;
  }
  return server::Right::kAdmin;  // Endpoints.Ask
}

/// Whether a call was refused because it says that it is a later attempt at one that was made to another
/// server, which is right if it says so.
bool IsOfAnotherServer(const grpc::Status& status) {
  return status.error_code() == grpc::UNAVAILABLE &&
         status.error_message().starts_with("the server was restarted, or is another one");
}

/// Aborts unless a call with these rights may end with this status.
void Check(const MethodDescriptor& method, const Caller& caller, const grpc::Status& status) {
  if (IsOfAnotherServer(status)) return;
  switch (status.error_code()) {
    case grpc::OK:
      // Each call of a multiplexed stream is refused by itself.
      if (method.name() != "GetServer" && caller.token.empty()) std::abort();
      if (caller.right < RightOf(method.name())) std::abort();
      break;
    case grpc::UNKNOWN:
    case grpc::INTERNAL:
    case grpc::DATA_LOSS:
    case grpc::DEADLINE_EXCEEDED:
    case grpc::UNAVAILABLE:
      std::fprintf(stderr, "%s: %d %s\n", method.name().c_str(), static_cast<int>(status.error_code()),
                   status.error_message().c_str());
      std::abort();
    default:
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto& fuzzed = *new Fuzzed;
  kvstore::testing::Choices choices(data, size);
  bool changes = false;
  for (int i = 0; i < kCalls && !choices.empty(); ++i) {
    const MethodDescriptor& method = fuzzed.method(choices.Below(fuzzed.methods()));
    const Caller& caller = kCallers[choices.Below(std::size(kCallers))];
    // Its text takes milliseconds, more than all other calls of an input together.
    if (method.name() == "GetMetrics" && choices.Below(16) != 0) continue;
    std::vector<std::string> messages;
    const size_t count = method.client_streaming() ? choices.Below(kMessages) : 1;
    while (messages.size() < count) {
      const std::unique_ptr<Message> message(
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.input_type())->New());
      kvstore::testing::Fill(*message, choices);
      messages.push_back(message->SerializeAsString());
    }
    const grpc::Status status = fuzzed.Make(method, caller, messages);
    ++calls_made;
    messages_sent += messages.size();
    // A caller that sends nothing needs no right.
    if (!messages.empty() || !status.ok()) Check(method, caller, status);
    changes = changes || method.name() == "CreateDataset" || method.name() == "DropDataset" ||
              method.name() == "Ask";
  }
  if (changes) fuzzed.Mend();
  return 0;
}
