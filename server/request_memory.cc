#include "server/request_memory.h"

#include <algorithm>
#include <utility>

namespace kvstore::server {

size_t RequestMemory::SizeOf(const std::string& id, const Answer& answer) {
  return sizeof(Entry) + sizeof(Age) + 2 * id.size() + answer.response.size() +
         answer.status.message().size();
}

RequestMemory::State RequestMemory::Begin(const std::string& id, Answer& answer,
                                          std::optional<Repeated> repeated) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  Trim(now);
  const auto [entry, added] = entries_.try_emplace(id);
  if (added && repeated && repeated->sent.value_or(now - max_age_) <= forgotten_) {
    entries_.erase(entry);
    return State::kForgotten;
  }
  if (added) return State::kNew;
  if (!entry->second.answered) return State::kRunning;
  answer = entry->second.answer;
  return State::kAnswered;
}

void RequestMemory::End(const std::string& id, std::optional<Answer> answer) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  if (!answer) {
    entries_.erase(entry);
    return;
  }
  bytes_ += SizeOf(id, *answer);
  entry->second = {.answered = true, .answer = *std::move(answer)};
  const auto now = Clock::now();
  answered_.push_back({now, id});
  Trim(now);
}

void RequestMemory::Trim(Clock::time_point now) {
  const auto oldest = now - max_age_;
  while (!answered_.empty() &&
         (answered_.size() > max_answers_ || bytes_ > max_bytes_ || answered_.front().at < oldest)) {
    forgotten_ = std::max(forgotten_, answered_.front().at);
    const auto entry = entries_.find(answered_.front().id);
    bytes_ -= SizeOf(entry->first, entry->second.answer);
    entries_.erase(entry);
    answered_.pop_front();
  }
}

size_t RequestMemory::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace kvstore::server
