#include "cli/changes_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "cli/command.h"

namespace kvstore::cli {
namespace {

/// A longer line of a sink is none.
constexpr size_t kMaxTokenBytes = 4096;
constexpr int kLookMs = 100;
/// How long a sink may take for what it has been given when it is to end.
constexpr std::chrono::seconds kMostWait{30};

std::array<Descriptor, 2> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Failure{absl::UnavailableError(fmt::format("sink: cannot make a pipe: {}", std::strerror(errno)))};
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

ChangesSink::ChangesSink(const std::string& command) {
  auto [their_in, to] = MakePipe();
  auto [from, their_out] = MakePipe();
  own_out_ = Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  child_.emplace(OrFail(exports::ChildProgram::Start(
      {"/bin/sh", "-c", command}, their_in.get(), their_out.get(), exports::ChildProgram::Errors::kShared)));
  from_ = std::move(from);
  ::dup2(to.get(), STDOUT_FILENO);
  reader_ = std::thread([this] { ReadTokens(); });
}

ChangesSink::~ChangesSink() {
  child_.reset();
  ::dup2(own_out_.get(), STDOUT_FILENO);
  stop_ = true;
  if (reader_.joinable()) reader_.join();
}

std::string ChangesSink::Dealt() {
  const MutexLock lock(mutex_);
  return dealt_;
}

absl::Status ChangesSink::Finish() {
  ::dup2(own_out_.get(), STDOUT_FILENO);
  {
    MutexLock lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + kMostWait;
    while (!has_ended_ && !lock.WaitUntil(ended_, end)) {
    }
  }
  stop_ = true;
  reader_.join();
  return child_->Wait();
}

void ChangesSink::ReadTokens() {
  std::string text;
  std::array<char, 4096> piece{};
  while (!stop_) {
    // Others that it has started may have its output, and go on without it.
    pollfd output{.fd = from_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&output, 1, kLookMs) <= 0) continue;
    const ssize_t got = ::read(from_.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece.data(), static_cast<size_t>(got));
    const size_t end = text.rfind('\n');
    if (end == std::string::npos) {
      if (text.size() > kMaxTokenBytes) text.clear();
      continue;
    }
    const size_t before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    const MutexLock lock(mutex_);
    dealt_ = text.substr(begin, end - begin);
    text.erase(0, end + 1);
  }
  const MutexLock lock(mutex_);
  has_ended_ = true;
  ended_.notify_all();
}

}  // namespace kvstore::cli
