#include "blobstore/xml.h"

#include <expat.h>
#include <fmt/format.h>

#include <climits>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace kvstore::s3 {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxElements = 50'000;

/// The document that the callbacks of the parser build.
struct Document {
  XML_Parser parser = nullptr;
  XmlElement root;  // its one child is the document's element
  // The elements that are open, from the outside in. A vector of children that grows moves its elements, but
  // none of those that are open: only the last child of each can be.
  std::vector<XmlElement*> open;
  size_t elements = 0;
  std::string refused;  // why parsing was stopped

  void Refuse(std::string reason) {
    refused = std::move(reason);
    XML_StopParser(parser, XML_FALSE);
  }
};

void Begin(void* user, const XML_Char* name, const XML_Char** /*attributes*/) {
  auto& document = *static_cast<Document*>(user);
  if (++document.elements > kMaxElements)
    return document.Refuse(fmt::format("more than {} elements", kMaxElements));
  if (document.open.size() > kMaxDepth)
    return document.Refuse(fmt::format("nests deeper than {}", kMaxDepth));
  std::vector<XmlElement>& siblings = document.open.back()->children;
  siblings.push_back({.name = name});
  document.open.push_back(&siblings.back());
}

void End(void* user, const XML_Char* /*name*/) { static_cast<Document*>(user)->open.pop_back(); }

void Text(void* user, const XML_Char* text, int size) {
  static_cast<Document*>(user)->open.back()->text.append(text, static_cast<size_t>(size));
}

void RefuseDoctype(void* user, const XML_Char* /*name*/, const XML_Char* /*system*/,
                   const XML_Char* /*public*/, int /*has_internal_subset*/) {
  static_cast<Document*>(user)->Refuse("declares a document type");
}

/// The line that the parser has reached.
uint64_t LineOf(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
  return XML_GetCurrentLineNumber64(parser);
#else
  return XML_GetCurrentLineNumber(parser);
#endif
}

}  // namespace

const XmlElement* XmlElement::Child(std::string_view child) const {
  for (const XmlElement& element : children) {
    if (element.name == child) return &element;
  }
  return nullptr;
}

std::string XmlElement::TextOf(std::string_view child) const {
  const XmlElement* const element = Child(child);
  return element == nullptr ? "" : element->text;
}

absl::StatusOr<XmlElement> ParseXml(std::string_view text) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  Document document;
  document.parser = parser.get();
  document.open.push_back(&document.root);
  XML_SetUserData(parser.get(), &document);
  XML_SetElementHandler(parser.get(), Begin, End);
  XML_SetCharacterDataHandler(parser.get(), Text);
  XML_SetStartDoctypeDeclHandler(parser.get(), RefuseDoctype);
  if (text.size() > INT_MAX) return absl::DataLossError("malformed XML: more than 2 GiB");
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) != XML_STATUS_OK) {
    if (document.refused.empty()) document.refused = XML_ErrorString(XML_GetErrorCode(parser.get()));
    return absl::DataLossError(
        fmt::format("malformed XML: line {}: {}", LineOf(parser.get()), document.refused));
  }
  return std::move(document.root.children.front());
}

}  // namespace kvstore::s3
