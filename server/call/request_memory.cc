#include "server/call/request_memory.h"

#include <algorithm>
#include <utility>

namespace kvstore::server {

size_t RequestMemory::SizeOf(const std::string& id, const Answer& answer) {
  return sizeof(Entry) + sizeof(Age) + 2 * id.size() + answer.response.size() +
         answer.status.message().size();
}

RequestMemory::CallerMemory& RequestMemory::MemoryOf(std::string_view caller) {
  const auto found = callers_.find(caller);
  return found != callers_.end() ? found->second : callers_[std::string(caller)];
}

RequestMemory::State RequestMemory::Begin(std::string_view caller, const std::string& id, Answer& answer,
                                          std::optional<Repeated> repeated) {
  const MutexLock lock(mutex_);
  CallerMemory& memory = MemoryOf(caller);
  const auto now = Clock::now();
  Trim(memory, now);
  const auto [entry, added] = memory.entries.try_emplace(id);
  if (added && repeated && repeated->sent.value_or(now - bounds_.age) <= memory.forgotten) {
    memory.entries.erase(entry);
    return State::kForgotten;
  }
  if (added) return State::kNew;
  if (!entry->second.answered) return State::kRunning;
  answer = entry->second.answer;
  return State::kAnswered;
}

void RequestMemory::End(std::string_view caller, const std::string& id, std::optional<Answer> answer) {
  const MutexLock lock(mutex_);
  CallerMemory& memory = MemoryOf(caller);
  const auto entry = memory.entries.find(id);
  if (entry == memory.entries.end()) return;
  if (!answer) {
    memory.entries.erase(entry);
    return;
  }
  const size_t bytes = SizeOf(id, *answer);
  memory.bytes += bytes;
  bytes_ += bytes;
  ++answers_;
  entry->second = {.answered = true, .answer = *std::move(answer)};
  const auto now = Clock::now();
  memory.answered.push_back({now, id});
  Trim(memory, now);
  TrimAll();
}

void RequestMemory::ForgetOldest(CallerMemory& memory) {
  const Age& oldest = memory.answered.front();
  memory.forgotten = std::max(memory.forgotten, oldest.at);
  const auto entry = memory.entries.find(oldest.id);
  const size_t bytes = SizeOf(entry->first, entry->second.answer);
  memory.bytes -= bytes;
  bytes_ -= bytes;
  --answers_;
  memory.entries.erase(entry);
  memory.answered.pop_front();
}

void RequestMemory::Trim(CallerMemory& memory, Clock::time_point now) {
  const auto oldest = now - bounds_.age;
  while (!memory.answered.empty() &&
         (memory.answered.size() > bounds_.answers_each || memory.bytes > bounds_.bytes_each ||
          memory.answered.front().at < oldest)) {
    ForgetOldest(memory);
  }
}

void RequestMemory::TrimAll() {
  // This needs three callers that are near their bounds, which few servers ever have.
  while (answers_ > bounds_.answers || bytes_ > bounds_.bytes) {
    const bool by_bytes = bytes_ > bounds_.bytes;
    const auto most = std::max_element(callers_.begin(), callers_.end(), [&](const auto& a, const auto& b) {
      return by_bytes ? a.second.bytes < b.second.bytes : a.second.answered.size() < b.second.answered.size();
    });
    ForgetOldest(most->second);
  }
}

size_t RequestMemory::size() const {
  const MutexLock lock(mutex_);
  size_t size = 0;
  for (const auto& [caller, memory] : callers_) size += memory.entries.size();
  return size;
}

}  // namespace kvstore::server
