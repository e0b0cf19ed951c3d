// testing/simulated_cuda/sanitizers: what ThreadSanitizer and AddressSanitizer are told, in builds that have them.
//
// This library is compiled without ThreadSanitizer, and its locks are invisible to it: only what orders operations in
// CUDA orders them there.
#pragma once

#include <cstddef>

extern "C" {
void __tsan_acquire(void* address) __attribute__((weak));
void __tsan_release(void* address) __attribute__((weak));
void __tsan_read_range(void* begin, unsigned long bytes) __attribute__((weak));
void __tsan_write_range(void* begin, unsigned long bytes) __attribute__((weak));
void AnnotateIgnoreReadsBegin(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreReadsEnd(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreWritesBegin(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreWritesEnd(const char* file, int line) __attribute__((weak));
void* __tsan_get_current_fiber() __attribute__((weak));
void* __tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_destroy_fiber(void* fiber) __attribute__((weak));
void __tsan_switch_to_fiber(void* fiber, unsigned flags) __attribute__((weak));
void __tsan_set_fiber_name(void* fiber, const char* name) __attribute__((weak));
void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t size)
    __attribute__((weak));
void __sanitizer_finish_switch_fiber(void* save, const void** bottom, std::size_t* size)
    __attribute__((weak));
}

namespace penstock::simulated_cuda {

inline bool has_sanitizer() {
  return __tsan_acquire != nullptr || __sanitizer_start_switch_fiber != nullptr;
}
inline void acquire(void* address) {
  if (__tsan_acquire != nullptr) __tsan_acquire(address);
}
inline void release(void* address) {
  if (__tsan_release != nullptr) __tsan_release(address);
}
/// That the operation which runs reads or writes memory, where nothing else says so.
inline void reads(const void* begin, std::size_t bytes) {
  if (__tsan_read_range != nullptr) __tsan_read_range(const_cast<void*>(begin), bytes);
}
inline void writes(void* begin, std::size_t bytes) {
  if (__tsan_write_range != nullptr) __tsan_write_range(begin, bytes);
}
/// What memcpy, malloc and the like do in its scope is a library's own affair.
class Unseen {
 public:
  Unseen() {
    if (AnnotateIgnoreReadsBegin == nullptr) return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unseen() {
    if (AnnotateIgnoreReadsEnd == nullptr) return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};
/// Within the scope of one Unseen: what is done to the program's memory.
class Seen {
 public:
  Seen() {
    if (AnnotateIgnoreReadsEnd == nullptr) return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  ~Seen() {
    if (AnnotateIgnoreReadsBegin == nullptr) return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
};
inline void* create_fiber(const char* name) {
  if (__tsan_create_fiber == nullptr) return nullptr;
  void* const fiber = __tsan_create_fiber(0);
  if (__tsan_set_fiber_name != nullptr) __tsan_set_fiber_name(fiber, name);
  return fiber;
}
inline void destroy_fiber(void* fiber) {
  if (fiber != nullptr) __tsan_destroy_fiber(fiber);
}
inline void* current_fiber() {
  return __tsan_get_current_fiber != nullptr ? __tsan_get_current_fiber() : nullptr;
}
/// Without ordering what the one did before what the other does, unless `ordered`.
inline void switch_to_fiber(void* fiber, bool ordered = false) {
  constexpr unsigned kNoSync = 1;
  if (fiber != nullptr) __tsan_switch_to_fiber(fiber, ordered ? 0 : kNoSync);
}

}  // namespace penstock::simulated_cuda
