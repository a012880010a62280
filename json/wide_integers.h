#pragma once

#include <string>
#include <string_view>

namespace kvstore {

/// Returns where a JSON text first has an integer that neither int64_t nor uint64_t holds, and which a parser
/// would round to a real number: "points[3].value", or "it" if the text is that number alone. Empty if there
/// is none, or if the text is malformed before it. Numbers with a fraction or an exponent are real numbers,
/// whatever their size.
///
/// text  must not nest deeper than kMaxEnvelopeDepth.
std::string FindWideInteger(std::string_view text);

}  // namespace kvstore
