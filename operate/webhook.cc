#include "operate/webhook.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "blobstore/http_session.h"

namespace kvstore::operate {
namespace {

using std::chrono::milliseconds;

/// How often a text is sent, and the pause after the first attempt, which doubles.
constexpr int kAttempts = 8;
constexpr milliseconds kFirstPause{500};
/// How long an address may take to answer.
constexpr uint32_t kAnswerMs = 5'000;

}  // namespace

Webhook::Webhook(std::string url, std::function<void(const std::string&)> log)
    : url_(std::move(url)), log_(std::move(log)), thread_([this] { Run(); }) {}

Webhook::~Webhook() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Webhook::Send(std::string text) {
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() == kMostWaiting) {
      waiting_.pop_front();
      ++given_up_;
    }
    waiting_.push_back(std::move(text));
  }
  changed_.notify_all();
}

uint64_t Webhook::given_up() const {
  const MutexLock lock(mutex_);
  return given_up_;
}

std::string Webhook::Post(const std::string& text) const {
  s3::HttpSession session({.connect_timeout_ms = kAnswerMs, .connections = 1});
  s3::HttpExchange exchange{.method = "POST",
                            .url = url_,
                            .headers = {"content-type: application/json"},
                            .body = text,
                            .stall_timeout_ms = kAnswerMs};
  session.Begin(exchange);
  const s3::HttpExchange* const ended =
      session.Wait(std::chrono::steady_clock::now() + milliseconds(2 * kAnswerMs));
  if (ended == nullptr) {
    session.EndAll();
    return "it does not answer";
  }
  if (exchange.failed) return exchange.failure;
  if (exchange.status / 100 != 2) return fmt::format("it answers with status {}", exchange.status);
  return "";
}

bool Webhook::SleepUnlessStopping(milliseconds wait) {
  const auto end = std::chrono::steady_clock::now() + wait;
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (lock.WaitUntil(changed_, end)) return true;
  }
  return false;
}

void Webhook::Deliver(const std::string& text) {
  milliseconds pause = kFirstPause;
  std::string failure = Post(text);
  for (int attempt = 1; !failure.empty() && attempt < kAttempts; ++attempt) {
    if (attempt == 1) log_(fmt::format("{} did not take an event: {}; it is sent again", url_, failure));
    if (!SleepUnlessStopping(pause)) break;
    pause *= 2;
    failure = Post(text);
  }
  if (failure.empty()) return;
  log_(fmt::format("{} did not take an event, which is given up: {}", url_, failure));
  const MutexLock lock(mutex_);
  ++given_up_;
  // At the end nobody waits for an address that does not answer.
  if (stopping_) waiting_.clear();
}

void Webhook::Run() {
  for (;;) {
    std::string text;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && waiting_.empty()) lock.Wait(changed_);
      if (waiting_.empty()) return;
      text = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Deliver(text);
  }
}

}  // namespace kvstore::operate
