#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/free_text.h"
#include "json/json.h"
#include "json/json_text.h"
#include "json/value_count.h"
#include "json_api/answers.h"
#include "server/http/connection.h"
#include "server/http/connection_limits.h"

/// Requests as lines of JSON, and an answer to each, which goes out while others come in. Lines are carried
/// out one after the other.
namespace kvstore::server {

void Connection::BeginExec() {
  exec_ = std::make_unique<Call>(door_.core, Operation::kCalls, Info());
  absl::Status status = exec_->Authenticate();
  if (status.ok()) MarkKnown(exec_->share());
  if (status.ok() && head_.is_http10)
    status = absl::InvalidArgumentError("version: lines need HTTP/1.1, whose bodies come in chunks");
  if (status.ok() && !head_.request_id.empty())
    status = absl::InvalidArgumentError("Kv-Request-Id: stands for one write, and lines may be many");
  if (!status.ok()) {
    exec_->End(status);
    return Reject(HttpStatusOf(status), status);
  }
  Continue();
  AnswerHead head{.type = kJsonLinesType, .length = std::nullopt, .keep_alive = !close_after_};
  head.instance = door_.instance;
  head.origin = head_.origin;
  Send(WriteHead(head));
  lines_.emplace(kMaxBodyBytes);
  exec_error_ = absl::OkStatus();
  exec_ended_ = false;
  state_ = State::kExec;
}

bool Connection::AdvanceExec() {
  if (out_.empty()) out_held_.clear();
  while (!running_ && !exec_ended_ && out_bytes_ < kMaxUnreadAnswers) {
    if (auto line = lines_->Next()) {
      StartLine(*std::move(line));
    } else if (lines_->is_too_long()) {
      answers_ += BodyOf(absl::InvalidArgumentError(
          fmt::format("request: the line is longer than the limit of {} bytes", kMaxBodyBytes)));
      EndExec();
    } else if (!exec_error_.ok()) {
      answers_ += BodyOf(exec_error_);
      EndExec();
    } else if (parser_->is_done()) {
      // Bytes without an end of line may be the last line.
      if (lines_->partial_bytes() > 0) {
        lines_->End();
      } else {
        EndExec();
      }
    } else if (input().empty()) {
      if (!ended_) break;
      Close();
      return false;
    } else if (!TakeLines()) {
      break;
    }
  }
  // A stream that waits for its client ends when the server stops; a line that has come is told so. The rest
  // of the input is the end of a chunk, or the beginning of the next one's head.
  const bool waits = !running_ && !exec_ended_ && out_bytes_ < kMaxUnreadAnswers;
  if (draining_ && waits && lines_->partial_bytes() == 0) EndExec();
  // While some answers are being sent, the next ones gather.
  if (!answers_.empty() && (out_.empty() || exec_ended_ || answers_.size() >= kSentTogether)) SendAnswers();
  if (!exec_ended_ || running_) return false;
  Send(std::string(kLastChunk));
  lines_.reset();
  state_ = State::kAnswer;
  pace_ = Pace();
  return true;
}

bool Connection::TakeLines() {
  const size_t before = input().size();
  std::string piece;
  absl::Status status = DecodeBody(piece);
  lines_->Append(piece);
  if (status.ok() && !HoldBody(*exec_, lines_->held_bytes())) status = MarkRefused(TooManyInFlightError());
  // The lines that have come before the mistake are carried out first.
  exec_error_ = std::move(status);
  return !exec_error_.ok() || input().size() < before;  // else the rest of a chunk's line has to come first
}

void Connection::SendAnswers() {
  auto chunk = std::make_shared<const std::string>(ChunkOf(std::exchange(answers_, {})));
  // Nothing of it can be refused any more. Where there is no room the next lines are.
  out_held_.push_back(exec_->HoldBytes(chunk->size()));
  Send(std::move(chunk));
}

void Connection::EndExec() {
  exec_ended_ = true;
  // The rest of the request, if the client still sends it, is not read.
  if (!parser_->is_done()) close_after_ = true;
}

// ---- a line ----

void Connection::StartLine(std::string line) {
  line_ = std::move(line);
  running_ = true;
  if (line_.size() <= kParsedHere) {
    ParseLine();
  } else {
    exec_->Post([self = shared_from_this()] { self->ParseLine(); });
  }
}

void Connection::ParseLine() {
  const size_t values = CountJsonValues(line_);
  const RequestSize size = {.bytes = line_.size(), .memory = line_.size() + values * kJsonValueBytes};
  // From here on the line is counted with the values that it becomes; later the admitted call counts both.
  ReleaseBody();
  if (values > kMaxBodyValues) {
    return RefuseLine(absl::InvalidArgumentError(
        fmt::format("request: has more than {} values; send it as several requests", kMaxBodyValues)));
  }
  if (!HoldBody(*exec_, size.memory)) return RefuseLine(MarkRefused(TooManyInFlightError()));
  auto request = ParseJson(line_, kMaxEnvelopeDepth);
  FreeText(line_);
  ReleaseBody();
  if (!request.ok()) return RefuseLine(request.status());
  JsonFields fields(*request, "");
  const std::string name = fields.String("op");
  const auto operation = AllJsonOperations().find(name);
  if (operation == AllJsonOperations().end()) {
    const absl::Status mistake = fields.FirstMistake();
    const std::string unknown(NoSuchOperationError(name).message());
    return RefuseLine(mistake.ok() ? absl::InvalidArgumentError(unknown) : mistake, *request);
  }
  CallInfo info = Info();
  info.is_part_of_stream = true;
  call_ = std::make_unique<JsonCall>(door_.core, operation->second, info);
  call_->SetRequest(*std::move(request));
  absl::Status status = call_->Identify();
  if (status.ok()) status = call_->Admit(size);
  if (!status.ok()) {
    call_->Refuse(status);
    return FinishCall();
  }
  call_->Run([self = shared_from_this()] { self->Execute(); });
}

void Connection::RefuseLine(const absl::Status& error, const Json& request) {
  FreeText(line_);
  Json answer = json_api::ErrorToJson(error);
  if (request.is_object() && request.contains("id")) answer["id"] = request["id"];
  refusal_ = TextOf(answer) + "\n";
  FinishCall();
}

void Connection::AddAnswer() {
  answers_ += call_ != nullptr ? call_->TakeText() : std::exchange(refusal_, {});
  // The client may take as long for the next line as it could for this one.
  pace_ = Pace();
  call_.reset();
}

}  // namespace kvstore::server
