#include "server/http/change_events.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "json/json_text.h"
#include "json_api/answers.h"
#include "server/http/http_answer.h"

namespace kvstore::server {

absl::Status ChangeEvents::Begin(RequestSize size) {
  status_ = Authenticate();
  if (status_.ok()) status_ = Admit(wanted_, size);
  if (!status_.ok()) End(status_);
  return status_;
}

absl::Status ChangeEvents::Check() {
  auto status = CheckServes();
  if (status.ok()) status = CheckLimits();
  if (status.ok()) status = CheckStillAllowed();
  return status;
}

void ChangeEvents::AddEvent(std::string_view token, const Json& data) {
  text_ += fmt::format("id: {}\ndata: {}\n\n", token, TextOf(data));
}

ChangeEvents::Made ChangeEvents::Produce() {
  const auto made = MakeEvents();
  if (made.ok()) return *made;
  status_ = made.status();
  if (has_begun_) text_ = fmt::format("event: error\ndata: {}\n", BodyOf(status_));
  End(status_);
  return Made::kEnd;
}

absl::StatusOr<ChangeEvents::Made> ChangeEvents::MakeEvents() {
  const CallScope scope(Limits(/*stream=*/true));
  if (auto status = Check(); !status.ok()) return status;
  const auto may = MayGoOn();
  if (!may.ok()) return may.status();
  if (!*may || !HasRoom()) return Made::kNoRoom;
  const auto page = follower_.Next();
  if (!page.ok()) return page.status();
  if (*page == nullptr) return Made::kNothingYet;
  has_begun_ = true;
  for (const Change& change : (*page)->changes) {
    const auto json = json_api::ChangeToJson(change);
    if (!json.ok()) return json.status();
    AddEvent(change.token, *json);
  }
  if ((*page)->complete_until_ms != 0) {
    AddEvent((*page)->token, {{"token", (*page)->token}, {"complete_until", (*page)->complete_until_ms}});
  }
  // As long as it is in memory the connection counts it.
  CountResponse(text_.size());
  CountSent(text_.size());
  return Made::kEvents;
}

}  // namespace kvstore::server
