#include "server/request_memory.h"

#include <algorithm>
#include <utility>

namespace kvstore::server {

size_t RequestMemory::SizeOf(const std::string& id, const Answer& answer) {
  return sizeof(Entry) + sizeof(Age) + 2 * id.size() + answer.response.size() +
         answer.status.message().size();
}

RequestMemory::Part& RequestMemory::PartOf(std::string_view caller) {
  const auto found = callers_.find(caller);
  return found != callers_.end() ? found->second : callers_[std::string(caller)];
}

RequestMemory::State RequestMemory::Begin(std::string_view caller, const std::string& id, Answer& answer,
                                          std::optional<Repeated> repeated) {
  const std::lock_guard lock(mutex_);
  Part& part = PartOf(caller);
  const auto now = Clock::now();
  Trim(part, now);
  const auto [entry, added] = part.entries.try_emplace(id);
  if (added && repeated && repeated->sent.value_or(now - bounds_.age) <= part.forgotten) {
    part.entries.erase(entry);
    return State::kForgotten;
  }
  if (added) return State::kNew;
  if (!entry->second.answered) return State::kRunning;
  answer = entry->second.answer;
  return State::kAnswered;
}

void RequestMemory::End(std::string_view caller, const std::string& id, std::optional<Answer> answer) {
  const std::lock_guard lock(mutex_);
  Part& part = PartOf(caller);
  const auto entry = part.entries.find(id);
  if (entry == part.entries.end()) return;
  if (!answer) {
    part.entries.erase(entry);
    return;
  }
  const size_t bytes = SizeOf(id, *answer);
  part.bytes += bytes;
  bytes_ += bytes;
  ++answers_;
  entry->second = {.answered = true, .answer = *std::move(answer)};
  const auto now = Clock::now();
  part.answered.push_back({now, id});
  Trim(part, now);
  TrimAll();
}

void RequestMemory::ForgetOldest(Part& part) {
  const Age& oldest = part.answered.front();
  part.forgotten = std::max(part.forgotten, oldest.at);
  const auto entry = part.entries.find(oldest.id);
  const size_t bytes = SizeOf(entry->first, entry->second.answer);
  part.bytes -= bytes;
  bytes_ -= bytes;
  --answers_;
  part.entries.erase(entry);
  part.answered.pop_front();
}

void RequestMemory::Trim(Part& part, Clock::time_point now) {
  const auto oldest = now - bounds_.age;
  while (!part.answered.empty() && (part.answered.size() > bounds_.answers_each ||
                                    part.bytes > bounds_.bytes_each || part.answered.front().at < oldest)) {
    ForgetOldest(part);
  }
}

void RequestMemory::TrimAll() {
  // Three callers at least are then at their bounds, or near them: few servers ever come here.
  while (answers_ > bounds_.answers || bytes_ > bounds_.bytes) {
    const bool by_bytes = bytes_ > bounds_.bytes;
    const auto most = std::max_element(callers_.begin(), callers_.end(), [&](const auto& a, const auto& b) {
      return by_bytes ? a.second.bytes < b.second.bytes : a.second.answered.size() < b.second.answered.size();
    });
    ForgetOldest(most->second);
  }
}

size_t RequestMemory::size() const {
  const std::lock_guard lock(mutex_);
  size_t size = 0;
  for (const auto& [caller, part] : callers_) size += part.entries.size();
  return size;
}

}  // namespace kvstore::server
