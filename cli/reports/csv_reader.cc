#include "cli/reports/csv_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kvstore::cli {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kNone = std::string_view::npos;

/// Appends the text of a field in which quotes are doubled, and returns what was appended. `out` must have
/// room, so that earlier views into it stay valid.
std::string_view AppendUnquoted(std::string_view text, std::string& out) {
  const size_t begin = out.size();
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '"') ++i;
  }
  return std::string_view(out).substr(begin);
}

}  // namespace

absl::StatusOr<bool> CsvReader::Fill() {
  if (end_) return false;
  buffer_.erase(0, at_);
  base_ += at_;
  at_ = 0;
  const size_t old = buffer_.size();
  buffer_.resize(old + kReadBytes);
  ssize_t got = 0;
  do {
    got = ::read(file_, buffer_.data() + old, kReadBytes);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(old + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return absl::UnavailableError(fmt::format("cannot read the input: {}", std::strerror(errno)));
  end_ = got == 0;
  return got > 0;
}

absl::StatusOr<size_t> CsvReader::FindNewline() {
  size_t scanned = 0;
  while (true) {
    const size_t newline = Rest().find('\n', scanned);
    if (newline != kNone) return newline;
    scanned = Rest().size();
    if (scanned > max_record_bytes_) return kNone;
    const auto more = Fill();
    if (!more.ok()) return more.status();
    if (!*more) return kNone;
  }
}

absl::StatusOr<size_t> CsvReader::FindRecordEnd() {
  bool quoted = false;
  size_t scanned = 0;
  while (true) {
    // A doubled quote ends a quoted part and begins the next one, which makes no difference here.
    const std::string_view rest = Rest();
    for (; scanned < rest.size(); ++scanned) {
      if (rest[scanned] == '"') quoted = !quoted;
      if (rest[scanned] == '\n' && !quoted) return scanned;
    }
    if (scanned > max_record_bytes_) return kNone;
    const auto more = Fill();
    if (!more.ok()) return more.status();
    if (!*more) return quoted ? kNone : scanned;
  }
}

void CsvReader::Take(size_t size) {
  text_ = Rest().substr(0, size);
  const bool newline = size < Rest().size();
  at_ += size + (newline ? 1 : 0);
  next_line_ += 1 + static_cast<uint64_t>(std::count(text_.begin(), text_.end(), '\n'));
  if (text_.ends_with('\r')) text_.remove_suffix(1);
}

void CsvReader::SplitPlain() {
  std::string_view rest = text_;
  while (true) {
    const size_t comma = rest.find(',');
    fields_.push_back({rest.substr(0, comma), false});
    if (comma == kNone) return;
    rest.remove_prefix(comma + 1);
  }
}

bool CsvReader::SplitQuoted() {
  unquoted_.clear();
  unquoted_.reserve(text_.size());
  for (size_t at = 0;; ++at) {
    size_t end = 0;
    if (at < text_.size() && text_[at] == '"') {
      size_t close = text_.find('"', at + 1);
      bool doubled = false;
      while (close != kNone && close + 1 < text_.size() && text_[close + 1] == '"') {
        doubled = true;
        close = text_.find('"', close + 2);
      }
      if (close == kNone) {
        problem_ = "a quote is not closed";
        return false;
      }
      const std::string_view inside = text_.substr(at + 1, close - at - 1);
      fields_.push_back({doubled ? AppendUnquoted(inside, unquoted_) : inside, true});
      end = close + 1;
      if (end < text_.size() && text_[end] != ',') {
        problem_ = fmt::format("field {}: text follows its closing quote", fields_.size());
        return false;
      }
    } else {
      end = std::min(text_.find(',', at), text_.size());
      fields_.push_back({text_.substr(at, end - at), false});
      if (fields_.back().text.find('"') != kNone) {
        problem_ = fmt::format("field {}: has a quote, but does not begin with one", fields_.size());
        return false;
      }
    }
    if (end == text_.size()) return true;
    at = end;
  }
}

absl::StatusOr<CsvReader::Result> CsvReader::ReadQuoted(size_t first_line_size) {
  const auto size = FindRecordEnd();
  if (!size.ok()) return size.status();
  if (*size != kNone && *size <= max_record_bytes_) {
    const size_t at = at_;
    const uint64_t line = next_line_;
    Take(*size);
    if (SplitQuoted()) return Result::kRecord;
    at_ = at;
    next_line_ = line;
  } else {
    problem_ = fmt::format("a quote is not closed within {} bytes", max_record_bytes_);
    if (*size == kNone && end_ && Rest().size() <= max_record_bytes_) problem_ = "a quote is not closed";
  }
  // A wrong quote makes only its own line bad: the lines after it may be sound.
  fields_.clear();
  Take(first_line_size);
  return Result::kBad;
}

absl::StatusOr<CsvReader::Result> CsvReader::SkipLongLine() {
  problem_ = fmt::format("longer than the limit of {} bytes", max_record_bytes_);
  text_ = {};
  ++next_line_;
  while (true) {
    const size_t newline = Rest().find('\n');
    if (newline != kNone) {
      at_ += newline + 1;
      return Result::kBad;
    }
    at_ = buffer_.size();
    const auto more = Fill();
    if (!more.ok()) return more.status();
    if (!*more) return Result::kBad;
  }
}

absl::StatusOr<CsvReader::Result> CsvReader::Next() {
  fields_.clear();
  problem_.clear();
  line_ = next_line_;
  auto newline = FindNewline();
  if (!newline.ok()) return newline.status();
  if (consumed() == 0 && Rest().starts_with(kByteOrderMark)) {
    at_ += kByteOrderMark.size();
    if (*newline != kNone) *newline -= kByteOrderMark.size();
  }
  offset_ = consumed();
  if (Rest().empty()) return Result::kEnd;
  const size_t size = std::min(*newline, Rest().size());
  if (size > max_record_bytes_) return SkipLongLine();
  if (Rest().substr(0, size).find('"') != kNone) return ReadQuoted(size);
  Take(size);
  if (text_.empty()) return Result::kBlank;
  SplitPlain();
  return Result::kRecord;
}

}  // namespace kvstore::cli
