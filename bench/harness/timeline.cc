#include "bench/harness/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace kvstore::bench {
namespace {

using std::chrono::duration;

double Seconds(Timeline::Clock::duration time) { return duration<double>(time).count(); }

double QuantileOf(std::vector<float>& values, double quantile) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(quantile * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace

void Timeline::Add(Clock::time_point begin, Clock::time_point end, bool write) {
  const MutexLock lock(mutex_);
  calls_.push_back({end, static_cast<float>(Seconds(end - begin) * 1e6), write});
}

void Timeline::Mark(std::string what) {
  const MutexLock lock(mutex_);
  marks_.emplace_back(Clock::now(), std::move(what));
}

double Timeline::Quantile(Clock::time_point from, Clock::time_point to, double quantile) const {
  const MutexLock lock(mutex_);
  std::vector<float> values;
  for (const Call& call : calls_) {
    if (call.end >= from && call.end < to) values.push_back(call.us);
  }
  return QuantileOf(values, quantile);
}

double Timeline::LongestMs(Clock::time_point from, Clock::time_point to, bool write) const {
  const MutexLock lock(mutex_);
  float most = 0;
  for (const Call& call : calls_) {
    if (call.end >= from && call.end < to && call.write == write) most = std::max(most, call.us);
  }
  return static_cast<double>(most) / 1000;
}

bool Timeline::WriteSvg(const std::filesystem::path& file, const std::string& title) const {
  const MutexLock lock(mutex_);
  if (calls_.empty()) return false;
  auto begin = calls_.front().end;
  auto end = begin;
  for (const Call& call : calls_) {
    begin = std::min(begin, call.end);
    end = std::max(end, call.end);
  }
  constexpr int kWidth = 960;
  constexpr int kLeft = 70;
  constexpr int kPanel = 170;
  constexpr int kTop = 70;
  constexpr double kBucket = 0.1;
  const double total = std::max(Seconds(end - begin), kBucket);
  const auto buckets = static_cast<size_t>(total / kBucket) + 1;
  std::vector<std::vector<float>> latencies(buckets);
  for (const Call& call : calls_) {
    latencies[static_cast<size_t>(Seconds(call.end - begin) / kBucket)].push_back(call.us);
  }
  std::vector<double> rates;
  std::vector<double> p99s;
  for (auto& values : latencies) {
    rates.push_back(static_cast<double>(values.size()) / kBucket);
    p99s.push_back(QuantileOf(values, 0.99) / 1000);
  }
  const auto x = [&](double seconds) { return kLeft + seconds / total * (kWidth - kLeft - 20); };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"20\" "
      "font-size=\"15\">{3}</text>\n",
      kWidth, kTop + 2 * kPanel + 70, kLeft, title);
  const auto panel = [&](const std::vector<double>& values, int top, const char* name, const char* color,
                         bool logarithmic) {
    double most = 1e-3;
    for (const double value : values) most = std::max(most, value);
    const auto y = [&](double value) {
      const double part = logarithmic ? std::log10(1 + value * 99 / most * 1) / 2 : value / most;
      return top + kPanel - 10 - part * (kPanel - 30);
    };
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft, top + 8, name);
    for (const double value : {0.0, logarithmic ? most / 10 : most / 2, most}) {
      svg += fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/><text x=\"{3}\" "
          "y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5:.{6}f}</text>\n",
          kLeft, kWidth - 20, y(value), kLeft - 6, y(value) + 4, value, most < 10 ? 1 : 0);
    }
    std::string points;
    for (size_t i = 0; i < values.size(); ++i) {
      points += fmt::format("{:.1f},{:.1f} ", x((static_cast<double>(i) + 0.5) * kBucket), y(values[i]));
    }
    svg += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\" points=\"{}\"/>\n", color,
                       points);
  };
  panel(rates, kTop, "calls a second", "#1f77b4", false);
  panel(p99s, kTop + kPanel + 20, "p99, ms", "#d62728", true);
  int step = 0;
  for (const auto& [at, what] : marks_) {
    const double seconds = Seconds(at - begin);
    if (seconds < 0 || seconds > total) continue;
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#555\" stroke-dasharray=\"4 "
        "3\"/><text "
        "x=\"{3:.1f}\" y=\"{4}\">{5}</text>\n",
        x(seconds), kTop - 12, kTop + 2 * kPanel + 20, x(seconds) + 3, kTop - 28 + 14 * (step++ % 2), what);
  }
  for (int second = 0; second <= static_cast<int>(total);
       second += std::max(1, static_cast<int>(total / 10))) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{} s</text>\n", x(second),
                       kTop + 2 * kPanel + 40, second);
  }
  std::ofstream out(file);
  out << svg << "</svg>\n";
  return static_cast<bool>(out.flush());
}

}  // namespace kvstore::bench
