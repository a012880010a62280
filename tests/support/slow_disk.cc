#include <dlfcn.h>
#include <unistd.h>

/// Is loaded into a program before the C library, and makes its flushes of files slow (slow_disk.h).
namespace {

int Late(const char* call, int file) {
  constexpr unsigned kFlushUs = 5000;
  ::usleep(kFlushUs);
  return reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, call))(file);
}

}  // namespace

extern "C" int fsync(int file) { return Late("fsync", file); }
extern "C" int fdatasync(int file) { return Late("fdatasync", file); }
