#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/caller.h"
#include "client/cancel_watch.h"
#include "client/client.h"
#include "client/outcome.h"
#include "wire/convert.h"

/// The changes of a dataset over the network.
namespace kvstore::client {
namespace {

/// Returns the page that a message has.
template <typename Message>
absl::StatusOr<ChangePage> PageOf(const Caller& caller, Message& message) {
  if (message.token().empty()) return caller.InvalidAnswerError("answered with changes without a token");
  ChangePage page{.changes = {},
                  .token = std::move(*message.mutable_token()),
                  .complete_until_ms = message.complete_until_ms()};
  page.changes.reserve(static_cast<size_t>(message.changes_size()));
  for (v1::Change& sent : *message.mutable_changes()) {
    auto change = wire::FromWire(sent);
    if (!change || change->token.empty()) return caller.InvalidAnswerError("answered with an empty change");
    page.changes.push_back(*std::move(change));
  }
  return page;
}

/// A stream of changes that goes on over another connection when the one that it had is lost.
class WatchedChanges : public ChangeStream {
 public:
  /// caller  Must outlive this.
  WatchedChanges(Caller& caller, v1::WatchChangesRequest request)
      : caller_(caller), request_(std::move(request)) {}
  ~WatchedChanges() override {
    if (!rpc_) return;
    rpc_->context.TryCancel();
    static_cast<void>(rpc_->reader->Finish());
  }

  /// Waits for the first page, so that mistakes in the request are reported here.
  absl::Status Open() {
    auto page = Read();
    if (!page.ok()) return page.status();
    first_ = *std::move(page);
    return absl::OkStatus();
  }

  absl::StatusOr<ChangePage> Next() override {
    if (first_) return *std::exchange(first_, std::nullopt);
    return Read();
  }

 private:
  struct Rpc {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderInterface<v1::WatchChangesResponse>> reader;
  };
  /// A server says something every second. One that says nothing for so long is given up.
  static constexpr std::chrono::seconds kMaxSilence{5};
  static constexpr int kMaxFailures = 12;

  absl::StatusOr<ChangePage> Read() {
    const CallLimits& limits = CallScope::Current();
    const auto most =
        limits.deadline.value_or(std::max(caller_.Deadline(), Caller::Clock::now() + kMaxSilence));
    for (int failures = 0;; ++failures) {
      if (auto status = CheckCall(); !status.ok()) return status;
      const bool is_new = !rpc_;
      if (is_new) {
        rpc_ = std::make_unique<Rpc>();
        caller_.Prepare(rpc_->context, std::nullopt);
      }
      v1::WatchChangesResponse message;
      std::optional<CancelWatch> watch(std::in_place, rpc_->context, limits.cancelled, most);
      // This waits until there is a connection, and the request was sent.
      if (is_new) rpc_->reader = caller_.Stub().WatchChanges(&rpc_->context, request_);
      const bool read = rpc_->reader->Read(&message);
      watch.reset();
      if (read) {
        auto page = PageOf(caller_, message);
        if (page.ok()) request_.set_token(page->token);
        return page;
      }
      const grpc::Status status = rpc_->reader->Finish();
      const auto verdict = caller_.Classify(status, OutcomeOf(rpc_->context), /*writes=*/false);
      rpc_.reset();
      if (auto over = CheckCall(); !over.ok()) return over;
      if (status.ok()) return caller_.InvalidAnswerError("ended a stream of changes");
      if (Caller::Clock::now() >= most) {
        return absl::UnavailableError(fmt::format("server {}: says nothing", caller_.address()));
      }
      if (!verdict.retry || failures == kMaxFailures || !caller_.Pause(verdict, failures, most)) {
        return verdict.status;
      }
    }
  }

  Caller& caller_;
  v1::WatchChangesRequest request_;  // its token is that of the page that was read last
  std::unique_ptr<Rpc> rpc_;
  std::optional<ChangePage> first_;
};

}  // namespace

absl::StatusOr<ChangePage> Client::ReadChanges(std::string_view dataset, std::string_view from,
                                               const ChangeOptions& options) {
  v1::ReadChangesRequest request;
  request.set_dataset(std::string(dataset));
  request.set_token(std::string(from));
  request.set_limit(options.limit);
  request.set_max_bytes(options.max_bytes);
  v1::ReadChangesResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  if (static_cast<uint32_t>(response.changes_size()) > options.limit) {
    return caller_->InvalidAnswerError("answered with more changes than were asked for");
  }
  return PageOf(*caller_, response);
}

absl::Status Client::SetConsumer(std::string_view dataset, std::string_view name, std::string_view token) {
  v1::SetConsumerRequest request;
  request.set_dataset(std::string(dataset));
  request.set_name(std::string(name));
  request.set_token(std::string(token));
  v1::SetConsumerResponse response;
  return caller_->Call(request, response);
}

absl::StatusOr<std::vector<ChangeConsumer>> Client::ListConsumers(std::string_view dataset) {
  v1::ListConsumersRequest request;
  request.set_dataset(std::string(dataset));
  v1::ListConsumersResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  std::vector<ChangeConsumer> consumers;
  for (v1::Consumer& sent : *response.mutable_consumers()) {
    consumers.push_back({.name = std::move(*sent.mutable_name()),
                         .token = std::move(*sent.mutable_token()),
                         .set_ms = sent.set_ms(),
                         .lag_ms = sent.lag_ms()});
  }
  return consumers;
}

absl::Status Client::DropConsumer(std::string_view dataset, std::string_view name) {
  v1::DropConsumerRequest request;
  request.set_dataset(std::string(dataset));
  request.set_name(std::string(name));
  v1::DropConsumerResponse response;
  return caller_->Call(request, response);
}

absl::StatusOr<std::unique_ptr<ChangeStream>> Client::WatchChanges(std::string_view dataset,
                                                                   std::string_view from) {
  v1::WatchChangesRequest request;
  request.set_dataset(std::string(dataset));
  request.set_token(std::string(from));
  auto stream = std::make_unique<WatchedChanges>(*caller_, std::move(request));
  if (auto status = stream->Open(); !status.ok()) return status;
  return stream;
}

}  // namespace kvstore::client
