#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace kvstore {

/// Sends the valid entries of a batch on together, and answers the others with what is wrong with them.
/// Returns one answer for each entry, in order.
///
/// problems  the Status of each entry.
/// send      returns the answers to a list of valid entries, one for each, in order.
template <typename Answer, typename Entry, typename Send>
std::vector<Answer> SendValid(std::span<const Entry> entries, std::span<const absl::Status> problems,
                              Send send) {
  if (std::all_of(problems.begin(), problems.end(), [](const auto& problem) { return problem.ok(); })) {
    return send(entries);
  }
  std::vector<Entry> valid;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (problems[i].ok()) valid.push_back(entries[i]);
  }
  std::vector<Answer> sent = send(std::span<const Entry>(valid));
  std::vector<Answer> answers;
  answers.reserve(entries.size());
  size_t next = 0;
  for (const absl::Status& problem : problems) {
    answers.push_back(problem.ok() ? std::move(sent[next++]) : Answer(problem));
  }
  return answers;
}

}  // namespace kvstore
