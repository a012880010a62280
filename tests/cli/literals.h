#pragma once

#include <algorithm>
#include <cctype>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvstore::cli {

/// Parses C++ as far as needed to find its string literals.
class Literals {
 public:
  explicit Literals(const std::string& source) : source_(source) {
    while (at_ < source_.size()) Step();
  }

  /// Adjacent literals are one text. So are literals that are added with an expression between them, which
  /// becomes "{}".
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  bool At(std::string_view what) const { return source_.compare(at_, what.size(), what) == 0; }
  bool BehindWord() const {
    if (at_ == 0) return false;
    const char before = source_[at_ - 1];
    return std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '_';
  }

  void Step() {
    if (At("//")) {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else if (At("/*")) {
      at_ = std::min(source_.find("*/", at_), source_.size());
    } else if (At("'") && BehindWord()) {
      ++at_;  // a separator of digits
    } else if (At("'")) {
      ++at_;
      Quoted('\'');
    } else if (At("\"") || (At("R\"") && !BehindWord())) {
      std::string text = Literal();
      while (Joined(text)) text += Literal();
      texts_.push_back(std::move(text));
    } else {
      ++at_;
    }
  }

  /// Moves to the next literal if it belongs to the same text as the last one.
  bool Joined(std::string& text) {
    static const std::regex kNext(R"(\s*(?=R?"))");
    static const std::regex kAdded(
        R"(\s*\+\s*[A-Za-z_][\w:]*(?:(?:\.|->)[A-Za-z_]\w*)*(?:\(\))?(?:(?:\.|->)[A-Za-z_]\w*\(\))*\s*\+\s*(?="))");
    const auto from = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    for (const std::regex* const next : {&kNext, &kAdded}) {
      std::smatch match;
      if (!std::regex_search(from, source_.end(), match, *next, std::regex_constants::match_continuous))
        continue;
      if (next == &kAdded) text += "{}";
      at_ += static_cast<size_t>(match.length());
      return true;
    }
    return false;
  }

  std::string Literal() {
    if (At("R\"")) {
      const size_t open = source_.find('(', at_);
      const std::string close = ")" + source_.substr(at_ + 2, open - at_ - 2) + "\"";
      const size_t end = source_.find(close, open);
      std::string text = source_.substr(open + 1, end - open - 1);
      at_ = end + close.size();
      return text;
    }
    ++at_;
    return Quoted('"');
  }

  std::string Quoted(char quote) {
    std::string text;
    for (; at_ < source_.size() && source_[at_] != quote; ++at_) {
      if (source_[at_] == '\\') {
        ++at_;
        text += source_[at_] == 'n' ? '\n' : source_[at_];
      } else {
        text += source_[at_];
      }
    }
    ++at_;
    return text;
  }

  const std::string& source_;
  size_t at_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace kvstore::cli
