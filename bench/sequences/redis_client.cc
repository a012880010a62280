#include "bench/sequences/redis_client.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <array>
#include <string>
#include <vector>

#include "bench/harness/report.h"

namespace kvstore::bench {
namespace {

struct FreeReply {
  void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
};

/// Appends the texts of a reply and of what is in it.
void CopyTexts(const redisReply& reply, std::vector<std::string>& texts) {
  if (reply.type == REDIS_REPLY_ARRAY) {
    for (const redisReply* element : std::span(reply.element, reply.elements)) CopyTexts(*element, texts);
  } else if (reply.str != nullptr) {
    texts.emplace_back(reply.str, reply.len);
  }
}

}  // namespace

void RedisClient::Free::operator()(redisContext* context) const { ::redisFree(context); }

absl::StatusOr<RedisClient> RedisClient::Connect(uint16_t port) {
  RedisClient client(::redisConnect("127.0.0.1", port));
  if (client.context_ == nullptr || client.context_->err != 0) {
    return absl::UnavailableError(
        fmt::format("port {}: {}", port, client.context_ ? client.context_->errstr : "no memory"));
  }
  return client;
}

void RedisClient::Send(std::span<const std::string_view> words) {
  std::array<const char*, 32> texts{};
  std::array<size_t, 32> sizes{};
  for (size_t i = 0; i < words.size(); ++i) {
    texts.at(i) = words[i].data();
    sizes.at(i) = words[i].size();
  }
  if (::redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data()) !=
      REDIS_OK) {
    Check(absl::UnavailableError(context_->errstr));
  }
}

size_t RedisClient::ReceiveReply() {
  void* taken = nullptr;
  if (::redisGetReply(context_.get(), &taken) != REDIS_OK) Check(absl::UnavailableError(context_->errstr));
  const std::unique_ptr<redisReply, FreeReply> reply(static_cast<redisReply*>(taken));
  if (reply->type == REDIS_REPLY_ERROR) Check(absl::UnavailableError(reply->str));
  if (reply->type == REDIS_REPLY_INTEGER) return static_cast<size_t>(reply->integer);
  std::vector<std::string> texts;
  CopyTexts(*reply, texts);
  return reply->elements;
}

}  // namespace kvstore::bench
