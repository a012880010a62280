#include "bench/harness/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/markup.h"

namespace kvstore::bench {
namespace {

constexpr int kWidth = 720;
constexpr int kNames = 150;  // to the left of bars
constexpr int kBarHeight = 26;

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1d2430; --soft: #667080; --line: #d8dde5; --page: #ffffff;
        --c0: #2563a8; --c1: #b5482f; --c2: #2f7d52; --c3: #7a4ea3; --c4: #a06a00; --c5: #56616e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #9aa4b2; --line: #343b46; --page: #14181e;
          --c0: #6aa5e3; --c1: #e58a70; --c2: #6fc391; --c3: #b890de; --c4: #d9a441; --c5: #9aa6b4; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 760px;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { text-align: left; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; }
th { font-weight: 600; color: var(--soft); }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; height: auto; margin: .6rem 0; font-size: 12px; }
svg text { fill: var(--ink); } svg .soft { fill: var(--soft); }
svg line { stroke: var(--line); }
)";

std::string Color(size_t index) { return fmt::format("var(--c{})", index % 6); }

std::string Number(double value) {
  return value < 10 ? fmt::format("{:.2f}", value) : fmt::format("{:.{}f}", value, value < 100 ? 1 : 0);
}

std::string BarsOf(const Section& section) {
  double most = 0;
  for (const Bar& bar : section.bars) most = std::max(most, bar.max);
  const auto x = [&](double value) {
    return kNames + (most > 0 ? value / most : 0) * (kWidth - kNames - 80);
  };
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}: calls a second\">\n", kWidth,
                  section.bars.size() * kBarHeight + 6, EscapeMarkup(section.title));
  for (size_t i = 0; i < section.bars.size(); ++i) {
    const Bar& bar = section.bars[i];
    const int top = static_cast<int>(i) * kBarHeight + 4;
    const int middle = top + (kBarHeight - 6) / 2;
    svg += fmt::format(
        "<g><title>{0}: {1} calls a second, from {2} to {3}</title><text x=\"{4}\" y=\"{5}\" "
        "text-anchor=\"end\">{0}</text><rect x=\"{6}\" y=\"{7}\" width=\"{8:.1f}\" height=\"{9}\" rx=\"2\" "
        "fill=\"{10}\"/><line x1=\"{11:.1f}\" x2=\"{12:.1f}\" y1=\"{13}\" y2=\"{13}\" "
        "style=\"stroke: var(--ink)\"/><text x=\"{14:.1f}\" y=\"{5}\">{1}</text></g>\n",
        EscapeMarkup(bar.name), Number(bar.value), Number(bar.min), Number(bar.max), kNames - 10, middle + 4,
        kNames, top, x(bar.value) - kNames, kBarHeight - 6, Color(i), x(bar.min), x(bar.max), middle,
        x(bar.max) + 8);
  }
  return svg + "</svg>\n";
}

std::string CurvesOf(const Section& section) {
  constexpr int kHeight = 230;
  constexpr int kTop = 12;
  constexpr int kBottom = kHeight - 26;
  constexpr int kLeft = 70;
  constexpr int kRight = kWidth - kNames;
  double least = 1e18;
  double most = 0;
  for (const Curve& curve : section.curves) {
    for (const double us : curve.us) {
      least = std::min(least, std::max(us, 0.1));
      most = std::max(most, us);
    }
  }
  const double low = std::floor(std::log10(least));
  const double high = std::max(low + 1, std::ceil(std::log10(std::max(most, least))));
  const auto x = [&](size_t point) {
    return kLeft +
           static_cast<double>(point) * (kRight - kLeft) / static_cast<double>(kCurvePoints.size() - 1);
  };
  const auto y = [&](double us) {
    return kBottom - (std::log10(std::max(us, 0.1)) - low) / (high - low) * (kBottom - kTop);
  };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}: latencies\">\n",
                                kWidth, kHeight, EscapeMarkup(section.title));
  for (int power = static_cast<int>(low); power <= static_cast<int>(high); ++power) {
    const double us = std::pow(10.0, power);
    svg += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"soft\" x=\"{3}\" "
        "y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        kLeft, kRight, y(us), kLeft - 8, y(us) + 4,
        us < 1000  ? fmt::format("{:g} µs", us)
        : us < 1e6 ? fmt::format("{:g} ms", us / 1e3)
                   : fmt::format("{:g} s", us / 1e6));
  }
  for (size_t point = 0; point < kCurvePoints.size(); ++point) {
    svg += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       x(point), kHeight - 8, kCurvePoints.at(point));
  }
  // Names beside the ends of their curves, apart from each other.
  std::vector<size_t> order(section.curves.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return section.curves[a].us.back() > section.curves[b].us.back(); });
  double last = kTop - 14;
  for (const size_t i : order) {
    const Curve& curve = section.curves[i];
    std::string points;
    std::string dots;
    for (size_t point = 0; point < curve.us.size(); ++point) {
      const double us = curve.us.at(point);
      points += fmt::format("{:.1f},{:.1f} ", x(point), y(us));
      dots += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{}, {}: {} µs</title></circle>",
          x(point), y(us), Color(i), EscapeMarkup(curve.name), kCurvePoints.at(point), Number(us));
    }
    last = std::max(last + 14, y(curve.us.back()) + 4);
    svg += fmt::format(
        "<polyline fill=\"none\" stroke=\"{0}\" stroke-width=\"2\" points=\"{1}\"/>{2}<text x=\"{3}\" "
        "y=\"{4:.1f}\" style=\"fill: {0}\">{5}</text>\n",
        Color(i), points, dots, kRight + 10, last, EscapeMarkup(curve.name));
  }
  return svg + "</svg>\n";
}

/// The same in figures.
std::string TableOf(const Section& section) {
  std::string html = "<div class=\"wide\"><table>\n<tr><th></th>";
  if (!section.bars.empty())
    html += "<th class=\"n\">calls/s</th><th class=\"n\">min</th><th class=\"n\">max</th>";
  if (!section.curves.empty()) {
    for (const std::string_view point : kCurvePoints)
      html += fmt::format("<th class=\"n\">{} µs</th>", point);
  }
  html += "</tr>\n";
  const size_t rows = std::max(section.bars.size(), section.curves.size());
  for (size_t i = 0; i < rows; ++i) {
    html += fmt::format("<tr><td>{}</td>", EscapeMarkup(i < section.bars.size() ? section.bars[i].name
                                                                                : section.curves[i].name));
    if (i < section.bars.size()) {
      const Bar& bar = section.bars[i];
      for (const double value : {bar.value, bar.min, bar.max}) {
        html += fmt::format("<td class=\"n\">{}</td>", Number(value));
      }
    }
    if (i < section.curves.size()) {
      for (const double us : section.curves[i].us) html += fmt::format("<td class=\"n\">{}</td>", Number(us));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string ToHtml(const Page& page) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<h1>{0}</h1>\n<div class=\"wide\"><table>\n",
      EscapeMarkup(page.title), kStyle);
  for (const auto& [name, value] : page.facts) {
    html += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", EscapeMarkup(name), EscapeMarkup(value));
  }
  html += "</table></div>\n";
  for (const Section& section : page.sections) {
    html += fmt::format("<h2>{}</h2>\n", EscapeMarkup(section.title));
    if (!section.bars.empty()) html += BarsOf(section);
    if (!section.curves.empty()) html += CurvesOf(section);
    html += TableOf(section);
  }
  return html + "</body>\n</html>\n";
}

}  // namespace kvstore::bench
