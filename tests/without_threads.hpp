// A process that cannot start a thread, for tests of what is then said.
#pragma once

#include <cstddef>
#include <stdexcept>

#include <pthread.h>

namespace penstock::test {

/// While it lives, no thread with the default stack starts in this process: that stack is to be larger than the address space.
///
/// Not by a limit of the process (RLIMIT_NPROC): root has none, so that a forked child would have to be another user. And a child
/// that is forked while another thread holds the lock of AddressSanitizer's allocator waits for that lock for ever.
class WithoutThreads {
 public:
  WithoutThreads() {
    if (::pthread_getattr_default_np(&usual_) != 0)
      throw std::runtime_error("cannot ask for the attributes of threads");
    set_stack(std::size_t{1} << 52);
  }
  WithoutThreads(const WithoutThreads&) = delete;
  WithoutThreads& operator=(const WithoutThreads&) = delete;
  ~WithoutThreads() {
    (void)::pthread_setattr_default_np(&usual_);
    (void)::pthread_attr_destroy(&usual_);
  }

 private:
  static void set_stack(std::size_t bytes) {
    pthread_attr_t attributes;
    if (::pthread_getattr_default_np(&attributes) != 0 ||
        ::pthread_attr_setstacksize(&attributes, bytes) != 0 ||
        ::pthread_setattr_default_np(&attributes) != 0)
      throw std::runtime_error("cannot set the stack of threads");
    (void)::pthread_attr_destroy(&attributes);
  }

  pthread_attr_t usual_{};
};

}  // namespace penstock::test
