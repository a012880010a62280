#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "kvstore/v1/endpoint.pb.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore/v1/reports.pb.h"

/// Clients and servers of a release understand those of today: nothing that was released is renumbered,
/// renamed or removed, and bytes that were written then are read as what they were.
///
/// The golden files were written by a release with KV_WRITE_GOLDEN=NAME, the part of their names that is
/// their own, and are not written again: a new release adds files of its own.
namespace kvstore::testing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

/// Protocol files that were released together.
struct Release {
  std::string name;  // of its golden files
  std::vector<const FileDescriptor*> files;
  size_t methods_and_fields;  // at least so many lines are in the golden file
  size_t messages;
};

std::vector<Release> Releases() {
  return {
      {"0.1", {v1::GetRowRequest::descriptor()->file(), v1::EndpointRequest::descriptor()->file()}, 300, 50},
      {"reports", {v1::WritePointsRequest::descriptor()->file()}, 170, 40}};
}

void CollectMessages(const Descriptor* type, std::vector<const Descriptor*>& all) {
  all.push_back(type);
  for (int i = 0; i < type->nested_type_count(); ++i) CollectMessages(type->nested_type(i), all);
}

std::vector<const Descriptor*> Messages(const Release& release) {
  std::vector<const Descriptor*> all;
  for (const FileDescriptor* file : release.files) {
    for (int i = 0; i < file->message_type_count(); ++i) CollectMessages(file->message_type(i), all);
  }
  return all;
}

void DescribeEnum(const EnumDescriptor* type, std::vector<std::string>& lines) {
  for (int i = 0; i < type->value_count(); ++i) {
    lines.push_back(fmt::format("enum {} {} = {}", std::string(type->full_name()),
                                std::string(type->value(i)->name()), type->value(i)->number()));
  }
}

/// Returns a line for each method, field and value of the protocol.
std::vector<std::string> DescribeProtocol(const Release& release) {
  std::vector<std::string> lines;
  for (const FileDescriptor* file : release.files) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const auto* method = file->service(i)->method(j);
        lines.push_back(fmt::format(
            "method {} {}{} -> {}{}", std::string(method->full_name()),
            method->client_streaming() ? "stream " : "", std::string(method->input_type()->full_name()),
            method->server_streaming() ? "stream " : "", std::string(method->output_type()->full_name())));
      }
    }
    for (int i = 0; i < file->enum_type_count(); ++i) DescribeEnum(file->enum_type(i), lines);
  }
  for (const Descriptor* type : Messages(release)) {
    for (int i = 0; i < type->enum_type_count(); ++i) DescribeEnum(type->enum_type(i), lines);
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      std::string of;
      if (field->message_type() != nullptr) of = " " + std::string(field->message_type()->full_name());
      if (field->enum_type() != nullptr) of = " " + std::string(field->enum_type()->full_name());
      lines.push_back(
          fmt::format("field {}.{} = {} {}{}{}{}", std::string(type->full_name()), std::string(field->name()),
                      field->number(), field->is_repeated() ? "repeated " : "",
                      field->has_presence() ? "optional " : "", std::string(field->type_name()), of));
    }
  }
  return lines;
}

/// Sets every field that a message has to a value of its own; of alternatives the last.
void Fill(Message& message, int depth) {
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const auto number = static_cast<unsigned>(field->number());
    const bool many = field->is_repeated();
    const auto set = [&](auto one, auto add, auto value) {
      many ? (reflection.*add)(&message, field, value) : (reflection.*one)(&message, field, value);
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        set(&Reflection::SetInt32, &Reflection::AddInt32, -static_cast<int32_t>(1000 + number));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        set(&Reflection::SetInt64, &Reflection::AddInt64, -static_cast<int64_t>((int64_t{1} << 40) + number));
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        set(&Reflection::SetUInt32, &Reflection::AddUInt32, 3'000'000'000 + number);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        set(&Reflection::SetUInt64, &Reflection::AddUInt64, UINT64_MAX - number);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        set(&Reflection::SetDouble, &Reflection::AddDouble, 0.5 + number);
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        set(&Reflection::SetFloat, &Reflection::AddFloat, 0.5F + static_cast<float>(number));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        set(&Reflection::SetBool, &Reflection::AddBool, true);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        set(&Reflection::SetEnumValue, &Reflection::AddEnumValue,
            field->enum_type()->value(field->enum_type()->value_count() - 1)->number());
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        set(&Reflection::SetString, &Reflection::AddString,
            fmt::format("{} {}{}", std::string(field->name()), number,
                        field->type() == FieldDescriptor::TYPE_BYTES ? std::string("\0\xff", 2) : ""));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth == 0) break;
        Fill(many ? *reflection.AddMessage(&message, field) : *reflection.MutableMessage(&message, field),
             depth - 1);
        break;
    }
  }
}

std::unique_ptr<Message> New(const Descriptor* type) {
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

std::string TextOf(const Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(message, &text);
  return text;
}

std::string Hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::string Unhex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::vector<std::string> ReadLines(const std::string& name) {
  std::ifstream in(std::string(KV_GOLDEN) + "/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool WritesGolden(const Release& release) {
  const char* name = std::getenv("KV_WRITE_GOLDEN");
  return name != nullptr && release.name == name;
}

TEST(ReleasedProtocol, IsPartOfTodays) {
  for (const Release& release : Releases()) {
    const std::string file = "protocol-" + release.name + ".txt";
    const std::vector<std::string> now = DescribeProtocol(release);
    if (WritesGolden(release)) {
      std::ofstream out(std::string(KV_GOLDEN) + "/" + file);
      for (const std::string& line : now) out << line << "\n";
    }
    const std::set<std::string> known(now.begin(), now.end());
    const std::vector<std::string> released = ReadLines(file);
    ASSERT_GT(released.size(), release.methods_and_fields) << file;
    for (const std::string& line : released)
      EXPECT_TRUE(known.contains(line)) << "was released, and has changed: " << line;
  }
}

/// Reads a message as it was released: its type, its bytes in hex, and its text.
void CheckMessage(const std::string& line) {
  const size_t first = line.find('\t');
  const size_t second = line.find('\t', first + 1);
  ASSERT_NE(second, std::string::npos);
  const std::string name = line.substr(0, first);
  const Descriptor* type = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
  ASSERT_NE(type, nullptr) << name;
  const std::string bytes = Unhex(line.substr(first + 1, second - first - 1));
  const std::unique_ptr<Message> message = New(type);
  ASSERT_TRUE(message->ParseFromString(bytes)) << name;
  EXPECT_EQ(TextOf(*message), line.substr(second + 1)) << name;
  EXPECT_EQ(Hex(message->SerializeAsString()), Hex(bytes)) << name;
}

TEST(ReleasedProtocol, ItsMessagesAreReadAsWhatTheyWere) {
  for (const Release& release : Releases()) {
    const std::string file = "messages-" + release.name + ".txt";
    if (WritesGolden(release)) {
      std::ofstream out(std::string(KV_GOLDEN) + "/" + file);
      for (const Descriptor* type : Messages(release)) {
        const std::unique_ptr<Message> message = New(type);
        Fill(*message, 3);
        out << std::string(type->full_name()) << "\t" << Hex(message->SerializeAsString()) << "\t"
            << TextOf(*message) << "\n";
      }
    }
    const std::vector<std::string> released = ReadLines(file);
    ASSERT_GT(released.size(), release.messages) << file;
    for (const std::string& line : released) CheckMessage(line);
  }
}

}  // namespace
}  // namespace kvstore::testing
