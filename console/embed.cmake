# Makes a source of files: cmake -DOUT=files.cc -DROOT=folder "-DFILES=a;b" -P embed.cmake. Each file is there as it is and
# compressed, under its path in the folder.
set(arrays "")
set(entries "")
set(number 0)

function(numbers_of file result)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," hex "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" hex "${hex}")
  set(${result} "${hex}" PARENT_SCOPE)
endfunction()

foreach(name IN LISTS FILES)
  set(packed ${OUT}.gz)
  execute_process(COMMAND gzip -9 -n -c ${ROOT}/${name} OUTPUT_FILE ${packed} COMMAND_ERROR_IS_FATAL ANY)
  numbers_of(${ROOT}/${name} plain)
  numbers_of(${packed} gzip)
  file(REMOVE ${packed})
  file(SHA256 ${ROOT}/${name} tag)
  string(SUBSTRING ${tag} 0 16 tag)
  string(APPEND arrays "constexpr uint8_t kPlain${number}[] = {\n${plain}};\nconstexpr uint8_t kGzip${number}[] = {\n${gzip}};\n")
  string(APPEND entries "    {\"${name}\", \"${tag}\", kPlain${number}, sizeof(kPlain${number}), kGzip${number}, sizeof(kGzip${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "// Made by console/embed.cmake.
#include \"console/embedded.h\"

namespace kvstore {
namespace {

${arrays}
constexpr EmbeddedFile kFiles[] = {
${entries}};

}  // namespace

std::span<const EmbeddedFile> EmbeddedFiles() { return kFiles; }

}  // namespace kvstore
")
