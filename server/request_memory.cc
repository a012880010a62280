#include "server/request_memory.h"

#include <utility>

namespace kvstore::server {

size_t RequestMemory::SizeOf(const std::string& id, const Answer& answer) {
  return sizeof(Entry) + sizeof(Age) + 2 * id.size() + answer.response.size() +
         answer.status.message().size();
}

RequestMemory::State RequestMemory::Begin(const std::string& id, Answer& answer) {
  const std::lock_guard lock(mutex_);
  Trim();
  const auto [entry, added] = entries_.try_emplace(id);
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
  answered_.push_back({Clock::now(), id});
  Trim();
}

void RequestMemory::Trim() {
  const auto oldest = Clock::now() - max_age_;
  while (!answered_.empty() &&
         (answered_.size() > max_answers_ || bytes_ > max_bytes_ || answered_.front().at < oldest)) {
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
