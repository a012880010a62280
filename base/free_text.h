#pragma once

#include <string>

namespace kvstore {

/// Empties a text and gives back its memory, which clear() and the assignment of a short text keep.
inline void FreeText(std::string& text) { std::string().swap(text); }

}  // namespace kvstore
