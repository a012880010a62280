#pragma once

#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace kvstore {

/// Sends the valid entries of a batch on together, and answers the others with what is wrong with them.
/// Returns one answer for each entry, in order.
///
/// check  returns the Status of an entry.
/// send   returns the answers to a list of valid entries, one for each, in order.
template <typename Answer, typename Entry, typename Check, typename Send>
std::vector<Answer> SendValid(std::span<const Entry> entries, Check check, Send send) {
  std::vector<absl::Status> problems;
  problems.reserve(entries.size());
  std::vector<Entry> valid;
  for (const Entry& entry : entries) {
    problems.push_back(check(entry));
    if (problems.back().ok()) valid.push_back(entry);
  }
  std::vector<Answer> sent = send(std::span<const Entry>(valid));
  if (valid.size() == entries.size()) return sent;
  std::vector<Answer> answers;
  answers.reserve(entries.size());
  size_t next = 0;
  for (absl::Status& problem : problems) {
    answers.push_back(problem.ok() ? std::move(sent[next++]) : Answer(std::move(problem)));
  }
  return answers;
}

}  // namespace kvstore
