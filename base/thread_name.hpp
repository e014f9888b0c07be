#pragma once

#include <pthread.h>

namespace stoat {

// Names the calling thread, for debuggers, profilers and `top -H`. REQUIRES: at most 15 characters;
// a longer name is not taken.
inline void name_this_thread(const char* name) {
  pthread_setname_np(pthread_self(), name);
}

}  // namespace stoat
