#include "promql/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "promql/tokens.h"

namespace kvstore::promql {
namespace {

using reports::Function;
using Kind = Function::Kind;

/// A hundred years, as the steps of reports.
constexpr int64_t kMostMs = int64_t{100} * 366 * 86'400'000;
constexpr size_t kMostQueryBytes = 10'000;
constexpr uint64_t kMostTop = 100'000;
constexpr int kMostDepth = 20;

struct Named {
  std::string_view name;
  Kind kind;
};
/// Over series: with "by".
constexpr std::array<Named, 5> kAggregations = {{{"sum", Kind::kSum},
                                                 {"avg", Kind::kAvg},
                                                 {"min", Kind::kMin},
                                                 {"max", Kind::kMax},
                                                 {"count", Kind::kCount}}};
/// Over the points of a range.
constexpr std::array<Named, 6> kOverTime = {{{"sum_over_time", Kind::kSum},
                                             {"avg_over_time", Kind::kAvg},
                                             {"min_over_time", Kind::kMin},
                                             {"max_over_time", Kind::kMax},
                                             {"count_over_time", Kind::kCount},
                                             {"last_over_time", Kind::kLast}}};

template <size_t size>
const Named* Find(const std::array<Named, size>& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Named& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// Returns the number that a token is; nothing if it is none, or does not fit.
template <typename Value>
std::optional<Value> NumberOf(const Token& token) {
  Value value = 0;
  const char* const end = token.text.data() + token.text.size();
  const auto read = std::from_chars(token.text.data(), end, value);
  if (token.kind != Token::Kind::kNumber || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

/// Returns whether a backslash before this character makes it the character itself. Before letters and digits
/// it means something else (`\d`), and before what is not ASCII it is a mistake.
bool IsEscapable(char c) {
  const bool letter_or_digit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return !letter_or_digit && static_cast<unsigned char>(c) < 0x80;
}

/// Divides a regular expression into the texts that it matches, where it is one of: "a|b", ".*". There is no
/// ".+", since a report cannot be asked for all values but the empty one.
absl::StatusOr<std::optional<std::vector<std::string>>> Alternatives(std::string_view expression) {
  if (expression == ".*") return std::nullopt;
  std::vector<std::string> texts(1);
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '|') {
      texts.emplace_back();
    } else if (c == '\\' && i + 1 < expression.size() && IsEscapable(expression[i + 1])) {
      texts.back() += expression[++i];
    } else if (std::string_view("^$.*+?()[]{}\\").find(c) != std::string_view::npos) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}': a report compares whole values; of regular expressions it answers \"DE|FR\" and \".*\"",
          expression));
    } else {
      texts.back() += c;
    }
  }
  return texts;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<Expression> Whole() {
    Expression expression;
    if (auto status = ReadExpression(expression); !status.ok()) return status;
    if (auto status = ExpectEnd(); !status.ok()) return status;
    return expression;
  }
  absl::StatusOr<Selector> WholeSelector() {
    Selector selector;
    if (auto status = ReadSelector(selector); !status.ok()) return status;
    if (auto status = ExpectEnd(); !status.ok()) return status;
    return selector;
  }

 private:
  const Token& Next() const { return tokens_[at_]; }
  Token Take() { return tokens_[Next().kind == Token::Kind::kEnd ? at_ : at_++]; }
  bool Is(std::string_view mark) const { return Next().kind == Token::Kind::kMark && Next().text == mark; }
  bool IsName(std::string_view name) const {
    return Next().kind == Token::Kind::kName && Next().text == name;
  }
  bool TakeIf(std::string_view mark) {
    if (!Is(mark)) return false;
    Take();
    return true;
  }

  absl::Status Error(const Token& token, std::string_view problem) const {
    const std::string shown = token.kind == Token::Kind::kEnd ? "the end" : fmt::format("'{}'", token.text);
    return absl::InvalidArgumentError(fmt::format("query: {} at {}: {}", shown, token.at + 1, problem));
  }
  absl::Status Expect(std::string_view mark) {
    if (TakeIf(mark)) return absl::OkStatus();
    return Error(Next(), fmt::format("'{}' must be here", mark));
  }
  absl::Status ExpectEnd() const {
    if (Next().kind == Token::Kind::kEnd) return absl::OkStatus();
    return Error(
        Next(),
        "nothing may follow; a report answers one selector with one aggregation, and no arithmetic, which "
        "the console has");
  }
  const Token& Second() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool FollowedByParenthesis() const { return Second().kind == Token::Kind::kMark && Second().text == "("; }

  absl::Status ReadExpression(Expression& expression) {
    if (IsName("topk") && FollowedByParenthesis()) {
      Take();
      Take();
      const Token count = Take();
      const auto top = NumberOf<uint64_t>(count);
      if (!top || *top < 1 || *top > kMostTop)
        return Error(count, fmt::format("topk needs a whole number from 1 to {}", kMostTop));
      if (auto status = Expect(","); !status.ok()) return status;
      if (auto status = ReadAggregation(expression); !status.ok()) return status;
      expression.top = top;
      return Expect(")");
    }
    return ReadAggregation(expression);
  }

  /// [sum|avg|min|max|count|quantile] [by (...)] ( over time ) [by (...)]
  absl::Status ReadAggregation(Expression& expression) {
    if (TakeIf("(")) {
      if (++depth_ > kMostDepth) return Error(Next(), fmt::format("more than {} parentheses", kMostDepth));
      if (auto status = ReadAggregation(expression); !status.ok()) return status;
      return Expect(")");
    }
    const Token name = Next();
    const bool calls = name.kind == Token::Kind::kName &&
                       (FollowedByParenthesis() || Second().text == "by" || Second().text == "without");
    const Named* const over_series = calls ? Find(kAggregations, name.text) : nullptr;
    const bool is_quantile = calls && name.text == "quantile";
    if (over_series == nullptr && !is_quantile) {
      expression.function.kind = Kind::kLast;
      return ReadOverTime(expression, /*within=*/false);
    }
    Take();
    expression.by.emplace();
    if (auto status = ReadBy(*expression.by); !status.ok()) return status;
    if (auto status = Expect("("); !status.ok()) return status;
    if (is_quantile) {
      const Token share = Take();
      const auto part = NumberOf<double>(share);
      if (!part || *part < 0 || *part > 1) return Error(share, "quantile needs a number from 0 to 1");
      expression.function = {.kind = Kind::kPercentile, .percentile = *part * 100};
      if (auto status = Expect(","); !status.ok()) return status;
    } else {
      expression.function = {.kind = over_series->kind};
    }
    if (auto status = ReadOverTime(expression, /*within=*/true); !status.ok()) return status;
    if (auto status = Expect(")"); !status.ok()) return status;
    if (expression.by->empty()) return ReadBy(*expression.by);
    return absl::OkStatus();
  }

  absl::Status ReadBy(std::vector<std::string>& by) {
    if (IsName("without"))
      return Error(Next(), "'without' is not answered; name the keys that stay: sum by (country) (...)");
    if (!IsName("by")) return absl::OkStatus();
    Take();
    if (auto status = Expect("("); !status.ok()) return status;
    while (!Is(")")) {
      const Token key = Take();
      if (key.kind != Token::Kind::kName && key.kind != Token::Kind::kString)
        return Error(key, "a segment key must be here");
      by.push_back(key.text);
      if (!TakeIf(",")) break;
    }
    return Expect(")");
  }

  /// sum_over_time(selector[range]), or a selector alone.
  ///
  /// within  Within an aggregation over series, which must be of the same kind: sums of sums, and so on. A
  /// report
  ///         knows points, and no order of these two.
  absl::Status ReadOverTime(Expression& expression, bool within) {
    const Token name = Next();
    if (name.kind != Token::Kind::kName || !FollowedByParenthesis()) return ReadSelector(expression.selector);
    const Named* const over_time = Find(kOverTime, name.text);
    const bool is_quantile = name.text == "quantile_over_time";
    if (over_time == nullptr && !is_quantile) {
      return Error(
          name,
          "this function is not answered; these are: sum, avg, min, max, count, quantile, topk, and "
          "sum_over_time, avg_over_time, min_over_time, max_over_time, count_over_time, last_over_time");
    }
    if (is_quantile) return Error(name, "write quantile(0.99, REPORT:METRIC[1h]) instead");
    Take();
    Take();
    if (auto status = ReadSelector(expression.selector); !status.ok()) return status;
    if (!expression.selector.range_ms) return Error(Next(), fmt::format("{} needs a range: [1h]", name.text));
    const Function function{.kind = over_time->kind};
    if (within && !(expression.function == function)) {
      return Error(name,
                   "a report has one function over series and time; the two must be the same, as in sum by "
                   "(country) (sum_over_time(...))");
    }
    expression.function = function;
    return Expect(")");
  }

  absl::Status ReadSelector(Selector& selector) {
    std::string name;
    const Token first = Next();
    if (first.kind == Token::Kind::kName) name = Take().text;
    if (TakeIf("{")) {
      if (auto status = ReadMatchers(selector, name); !status.ok()) return status;
    }
    const size_t colon = name.find(':');
    if (colon == std::string::npos || colon == 0)
      return Error(first,
                   "a series is named REPORT:METRIC, as visits:views, or {__name__=\"my report:views\"}");
    selector.report = name.substr(0, colon);
    selector.metric = name.substr(colon + 1);
    if (TakeIf("[")) {
      const Token range = Take();
      const auto ms = ParseDurationMs(range.text);
      if (range.kind != Token::Kind::kDuration || !ms.ok()) return Error(range, "a range must be here: [1h]");
      selector.range_ms = *ms;
      if (Next().text.starts_with(':')) return Error(Next(), "subqueries are not answered");
      if (auto status = Expect("]"); !status.ok()) return status;
    }
    if (IsName("offset")) {
      Take();
      const bool later = TakeIf("-");
      const Token offset = Take();
      const auto ms = ParseDurationMs(offset.text);
      if (offset.kind != Token::Kind::kDuration || !ms.ok())
        return Error(offset, "a stretch of time must be here: offset 1w");
      selector.offset_ms = later ? -*ms : *ms;
    }
    if (Is("@")) return Error(Next(), "'@' is not answered");
    return absl::OkStatus();
  }

  absl::Status ReadMatchers(Selector& selector, std::string& name) {
    while (!Is("}")) {
      const Token label = Take();
      // In newer PromQL the name of the series stands alone, in quotes.
      if (label.kind == Token::Kind::kString && (Is(",") || Is("}"))) {
        name = label.text;
      } else if (label.kind != Token::Kind::kName && label.kind != Token::Kind::kString) {
        return Error(label, "a segment key must be here");
      } else if (auto status = ReadMatcher(selector, label, name); !status.ok()) {
        return status;
      }
      if (!TakeIf(",")) break;
    }
    return Expect("}");
  }

  absl::Status ReadMatcher(Selector& selector, const Token& label, std::string& name) {
    const Token operation = Take();
    if (operation.text == "!=" || operation.text == "!~")
      return Error(operation, "a report knows only what matches: use = and =~ \"DE|FR\"");
    if (operation.text != "=" && operation.text != "=~") return Error(operation, "'=' must be here");
    const Token value = Take();
    if (value.kind != Token::Kind::kString) return Error(value, "a string must be here, in quotes");
    if (label.text == "__name__") {
      if (operation.text != "=") return Error(operation, "the name of a series must be given whole");
      name = value.text;
      return absl::OkStatus();
    }
    std::optional<std::vector<std::string>> values;
    if (operation.text == "=") {
      values = {value.text};
    } else {
      auto texts = Alternatives(value.text);
      if (!texts.ok()) return Error(value, std::string(texts.status().message()));
      values = *std::move(texts);
    }
    if (!selector.where.emplace(label.text, std::move(values)).second) return Error(label, "is given twice");
    return absl::OkStatus();
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

absl::StatusOr<Parser> ParserOf(std::string_view text) {
  if (text.size() > kMostQueryBytes)
    return absl::InvalidArgumentError(fmt::format("query: has more than {} bytes", kMostQueryBytes));
  auto tokens = Tokenize(text);
  if (!tokens.ok()) return tokens.status();
  return Parser(*std::move(tokens));
}

}  // namespace

absl::StatusOr<Expression> Parse(std::string_view query) {
  auto parser = ParserOf(query);
  if (!parser.ok()) return parser.status();
  return parser->Whole();
}

std::optional<double> ParseSum(std::string_view query) {
  if (query.size() > kMostQueryBytes) return std::nullopt;
  const auto tokens = Tokenize(query);
  if (!tokens.ok()) return std::nullopt;
  double sum = 0;
  double sign = 1;
  for (size_t i = 0;; i += 2) {
    const auto value = NumberOf<double>((*tokens)[i]);
    if (!value) return std::nullopt;
    sum += sign * *value;
    const Token& next = (*tokens)[i + 1];
    if (next.kind == Token::Kind::kEnd) return sum;
    if (next.text != "+" && next.text != "-") return std::nullopt;
    sign = next.text == "+" ? 1 : -1;
  }
}

absl::StatusOr<Selector> ParseSelector(std::string_view text) {
  auto parser = ParserOf(text);
  if (!parser.ok()) return parser.status();
  return parser->WholeSelector();
}

absl::StatusOr<int64_t> ParseDurationMs(std::string_view text) {
  struct Unit {
    std::string_view name;
    int64_t ms;
  };
  constexpr std::array<Unit, 7> kUnits = {{{"ms", 1},
                                           {"s", 1'000},
                                           {"m", 60'000},
                                           {"h", 3'600'000},
                                           {"d", 86'400'000},
                                           {"w", 604'800'000},
                                           {"y", 31'536'000'000}}};
  const auto wrong =
      absl::InvalidArgumentError(fmt::format("'{}' is no stretch of time: 5m, 1h30m, 1d", text));
  int64_t sum = 0;
  for (std::string_view rest = text; !rest.empty();) {
    int64_t count = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    if (read.ec != std::errc() || count < 0) return wrong;
    rest.remove_prefix(static_cast<size_t>(read.ptr - rest.data()));
    const size_t end = std::min(rest.find_first_of("0123456789"), rest.size());
    const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                   [&](const Unit& one) { return one.name == rest.substr(0, end); });
    if (unit == kUnits.end() || count > kMostMs / unit->ms) return wrong;
    sum += count * unit->ms;
    if (sum > kMostMs) return wrong;
    rest.remove_prefix(end);
  }
  if (sum == 0) return wrong;
  return sum;
}

}  // namespace kvstore::promql
